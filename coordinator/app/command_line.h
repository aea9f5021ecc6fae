// The command line: flags to options, options to the command that is asked for.
#pragma once

namespace layerfarm::coordinator::app {

/// Parses and runs; returns the exit code (base/exit_code.h). Bad flags: usage on standard
/// error, 2.
int run_command_line(int argc, char** argv);

}  // namespace layerfarm::coordinator::app
