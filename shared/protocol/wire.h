// How a described struct becomes a msgpack map and comes back. Private to this folder: codec.cpp
// includes it, nobody else.
//
// A struct is described once, in fields.h, as a list of (key, member). The writer leaves out
// members that have their default value, so a key that is missing means "default"; keys marked
// required are always written, and a map without one is refused. Unknown keys are skipped.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <msgpack.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "shared/base/digest.h"
#include "shared/base/ids.h"

namespace layerfarm::protocol::wire {

/// Appends to a string: msgpack's packer wants a `write`.
struct StringBuffer {
  std::string& bytes;
  void write(const char* data, std::size_t size) { bytes.append(data, size); }
};
using Packer = msgpack::packer<StringBuffer>;

/// Thrown while reading; never leaves codec.cpp.
struct BadWire {
  std::string what;
};

struct Counter;
struct Writer;
struct Reader;

template <typename T>
void pack(Packer& out, const T& value);
template <typename T>
void unpack(const msgpack::object& in, T& value);

template <typename T>
concept Described = requires(T& value, Counter& counter) { describe(counter, value); };

/// First pass of writing: how many keys the map will have.
struct Counter {
  std::uint32_t keys = 0;
  template <typename T>
  void optional(std::string_view, const T& value) {
    if (!(value == T{})) ++keys;
  }
  template <typename T>
  void required(std::string_view, const T&) {
    ++keys;
  }
};

/// Second pass.
struct Writer {
  Packer& out;
  template <typename T>
  void optional(std::string_view key, const T& value) {
    if (!(value == T{})) required(key, value);
  }
  template <typename T>
  void required(std::string_view key, const T& value) {
    out.pack_str(static_cast<std::uint32_t>(key.size()));
    out.pack_str_body(key.data(), static_cast<std::uint32_t>(key.size()));
    pack(out, value);
  }
};

/// Finds keys in any order; looks first where the writer would have put the next one.
struct Reader {
  const msgpack::object_map& map;
  std::uint32_t next = 0;

  [[nodiscard]] const msgpack::object* find(std::string_view key) {
    for (std::uint32_t step = 0; step < map.size; ++step) {
      const std::uint32_t i = (next + step) % map.size;
      const msgpack::object& k = map.ptr[i].key;
      if (k.type == msgpack::type::STR && std::string_view(k.via.str.ptr, k.via.str.size) == key) {
        next = i + 1;
        return &map.ptr[i].val;
      }
    }
    return nullptr;
  }
  template <typename T>
  void optional(std::string_view key, T& value) {
    read(key, value, find(key));
  }
  template <typename T>
  void required(std::string_view key, T& value) {
    const msgpack::object* found = find(key);
    if (found == nullptr) throw BadWire{"the key '" + std::string(key) + "' is missing"};
    read(key, value, found);
  }

 private:
  template <typename T>
  void read(std::string_view key, T& value, const msgpack::object* found) {
    if (found == nullptr) return;
    try {
      unpack(*found, value);
    } catch (BadWire& bad) {
      bad.what = std::string(key) + ": " + bad.what;
      throw;
    }
  }
};

// ---- values ----

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsArray : std::false_type {};
template <typename T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsId : std::false_type {};
template <typename Tag, typename Rep>
struct IsId<base::StrongId<Tag, Rep>> : std::true_type {};

template <typename T>
void pack(Packer& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value ? out.pack_true() : out.pack_false();
  } else if constexpr (std::is_enum_v<T>) {
    out.pack_int64(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
    out.pack_uint64(value);
  } else if constexpr (std::is_integral_v<T>) {
    out.pack_int64(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    out.pack_double(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.pack_str(static_cast<std::uint32_t>(value.size()));
    out.pack_str_body(value.data(), static_cast<std::uint32_t>(value.size()));
  } else if constexpr (std::is_same_v<T, base::Digest>) {
    out.pack_bin(static_cast<std::uint32_t>(value.bytes.size()));
    out.pack_bin_body(value.view().data(), static_cast<std::uint32_t>(value.bytes.size()));
  } else if constexpr (IsId<T>::value) {
    out.pack_uint64(value.value());
  } else if constexpr (IsVector<T>::value || IsArray<T>::value) {
    out.pack_array(static_cast<std::uint32_t>(value.size()));
    for (const auto& item : value) pack(out, item);
  } else if constexpr (IsOptional<T>::value) {
    if (value) {
      pack(out, *value);
    } else {
      out.pack_nil();
    }
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    out.pack_map(static_cast<std::uint32_t>(value.size()));
    for (const auto& [key, text] : value) {
      pack(out, key);
      pack(out, text);
    }
  } else if constexpr (std::is_same_v<T, std::pair<std::string, std::int64_t>>) {
    out.pack_array(2);
    pack(out, value.first);
    pack(out, value.second);
  } else {
    static_assert(Described<T>, "describe() is missing for this type in fields.h");
    T& described =
        const_cast<T&>(value);  // one description serves both directions; writing changes nothing
    Counter counter;
    describe(counter, described);
    out.pack_map(counter.keys);
    Writer writer{out};
    describe(writer, described);
  }
}

template <typename T>
T checked_integer(const msgpack::object& in) {
  if (in.type == msgpack::type::POSITIVE_INTEGER) {
    if (in.via.u64 > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      throw BadWire{"number out of range"};
    return static_cast<T>(in.via.u64);
  }
  if (in.type == msgpack::type::NEGATIVE_INTEGER && std::is_signed_v<T>) {
    if (in.via.i64 < static_cast<std::int64_t>(std::numeric_limits<T>::min()))
      throw BadWire{"number out of range"};
    return static_cast<T>(in.via.i64);
  }
  throw BadWire{"expected an integer"};
}

inline void expect(const msgpack::object& in, msgpack::type::object_type type, const char* what) {
  if (in.type != type) throw BadWire{std::string("expected ") + what};
}

template <typename T>
void unpack(const msgpack::object& in, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    expect(in, msgpack::type::BOOLEAN, "a boolean");
    value = in.via.boolean;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(checked_integer<std::underlying_type_t<T>>(in));
  } else if constexpr (std::is_integral_v<T>) {
    value = checked_integer<T>(in);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (in.type == msgpack::type::FLOAT64 || in.type == msgpack::type::FLOAT32) {
      value = static_cast<T>(in.via.f64);
    } else if (in.type == msgpack::type::POSITIVE_INTEGER) {
      value =
          static_cast<T>(in.via.u64);  // the packer writes whole numbers as integers, up to 2^64
    } else {
      value = static_cast<T>(checked_integer<std::int64_t>(in));
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    expect(in, msgpack::type::STR, "a text");
    value.assign(in.via.str.ptr, in.via.str.size);
  } else if constexpr (std::is_same_v<T, base::Digest>) {
    expect(in, msgpack::type::BIN, "a digest");
    if (in.via.bin.size != value.bytes.size()) throw BadWire{"a digest has 32 bytes"};
    std::memcpy(value.bytes.data(), in.via.bin.ptr, value.bytes.size());
  } else if constexpr (IsId<T>::value) {
    value = T(checked_integer<decltype(value.value())>(in));
  } else if constexpr (IsVector<T>::value) {
    expect(in, msgpack::type::ARRAY, "a list");
    value.clear();  // what is missing in an element has its default
    value.resize(in.via.array.size);
    for (std::uint32_t i = 0; i < in.via.array.size; ++i) unpack(in.via.array.ptr[i], value[i]);
  } else if constexpr (IsArray<T>::value) {
    expect(in, msgpack::type::ARRAY, "a list");
    if (in.via.array.size != value.size()) throw BadWire{"a list of another length"};
    for (std::uint32_t i = 0; i < in.via.array.size; ++i) unpack(in.via.array.ptr[i], value[i]);
  } else if constexpr (IsOptional<T>::value) {
    if (in.type == msgpack::type::NIL) {
      value.reset();
    } else {
      value.emplace();
      unpack(in, *value);
    }
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    expect(in, msgpack::type::MAP, "a map");
    for (std::uint32_t i = 0; i < in.via.map.size; ++i) {
      std::string key;
      std::string text;
      unpack(in.via.map.ptr[i].key, key);
      unpack(in.via.map.ptr[i].val, text);
      value[std::move(key)] = std::move(text);
    }
  } else if constexpr (std::is_same_v<T, std::pair<std::string, std::int64_t>>) {
    expect(in, msgpack::type::ARRAY, "a pair");
    if (in.via.array.size != 2) throw BadWire{"a pair has two members"};
    unpack(in.via.array.ptr[0], value.first);
    unpack(in.via.array.ptr[1], value.second);
  } else {
    static_assert(Described<T>, "describe() is missing for this type in fields.h");
    expect(in, msgpack::type::MAP, "a map");
    Reader reader{in.via.map};
    describe(reader, value);
  }
}

}  // namespace layerfarm::protocol::wire
