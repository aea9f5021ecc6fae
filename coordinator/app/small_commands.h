// The commands that run nothing: their flags, and what they call (view, edit, compare, chips,
// cache, toolchains).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "coordinator/app/cmd_cache.h"
#include "coordinator/app/cmd_chips.h"
#include "coordinator/app/cmd_compare.h"
#include "coordinator/app/cmd_edit.h"
#include "coordinator/app/cmd_toolchains.h"
#include "coordinator/app/cmd_view.h"

namespace layerfarm::coordinator::app {

/// The command that was asked for; set while the command line is parsed, called after that.
using ChosenCommand = std::function<int()>;

/// Values that the flags write to; lives as long as the parser.
struct SmallCommands {
  ViewOptions view;
  EditOptions edit;
  CompareOptions compare;
  ChipsOptions chips;
  CacheOptions cache;
  ToolchainsOptions toolchains;
};

void add_small_commands(CLI::App& app, SmallCommands& commands, ChosenCommand& chosen);

}  // namespace layerfarm::coordinator::app
