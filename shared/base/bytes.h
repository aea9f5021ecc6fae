// Raw bytes. std::string carries them: every library here (msgpack, SQLite, files) takes it as it
// is.
#pragma once

#include <string>
#include <string_view>

namespace layerfarm::base {
using Bytes = std::string;
using BytesView = std::string_view;
}  // namespace layerfarm::base
