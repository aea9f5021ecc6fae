#include "worker/ort/model_bytes.h"

#include <cstdint>

namespace layerfarm::worker::ort {
namespace {

// Fields of onnx.proto, all of them length-delimited.
constexpr std::uint32_t kModelGraph = 7;
constexpr std::uint32_t kGraphOutput = 12;
constexpr std::uint32_t kValueInfoName = 1;

void append_varint(base::Bytes& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void append_field(base::Bytes& out, std::uint32_t field, base::BytesView content) {
  append_varint(out, (std::uint64_t{field} << 3) | 2U);
  append_varint(out, content.size());
  out += content;
}

}  // namespace

void add_outputs(base::Bytes& model, const std::vector<std::string>& names) {
  base::Bytes graph;
  for (const std::string& name : names) {
    base::Bytes info;
    append_field(info, kValueInfoName, name);
    append_field(graph, kGraphOutput, info);
  }
  append_field(model, kModelGraph, graph);
}

}  // namespace layerfarm::worker::ort
