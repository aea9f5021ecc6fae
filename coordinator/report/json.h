// JSON as the report files need it: key order and unknown keys kept, look-up by key that stays
// quick with 10,000 layers, bytes equal to Python's json.dump(indent=2), the bare token NaN read.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shared/base/result.h"

namespace layerfarm::coordinator::report::json {

class Value;
struct Member;
using Array = std::vector<Value>;

/// Members in the order they were added. From some size on a hash table finds them.
class Object {
 public:
  Object();
  ~Object();
  Object(const Object&);
  Object(Object&&) noexcept;
  Object& operator=(const Object&);
  Object& operator=(Object&&) noexcept;

  [[nodiscard]] Value* find(std::string_view key);
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Replaces the value where the key is there (its place stays), else adds the member at the end.
  Value& set(std::string_view key, Value value);
  /// The value of `key`; a null is added when it is not there.
  Value& operator[](std::string_view key);
  bool erase(std::string_view key);
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::vector<Member>::const_iterator begin() const;
  [[nodiscard]] std::vector<Member>::const_iterator end() const;
  [[nodiscard]] std::vector<Member>::iterator begin();
  [[nodiscard]] std::vector<Member>::iterator end();
  friend bool operator==(const Object&, const Object&);

 private:
  [[nodiscard]] std::size_t place(std::string_view key) const;
  void index_last();
  void rebuild_index();

  std::vector<Member> members_;
  std::vector<std::uint32_t>
      table_;  ///< open addressing, places + 1; empty while a scan is quicker
};

/// An integer beyond 64 bits, kept as its digits.
struct BigInteger {
  std::string digits;
  friend bool operator==(const BigInteger&, const BigInteger&) = default;
};

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}                                    // NOLINT: literals read as JSON
  Value(bool flag) : data_(flag) {}                           // NOLINT
  Value(int number) : data_(std::int64_t{number}) {}          // NOLINT
  Value(std::int64_t number) : data_(number) {}               // NOLINT
  Value(double number) : data_(number) {}                     // NOLINT
  Value(BigInteger number) : data_(std::move(number)) {}      // NOLINT
  Value(std::string text) : data_(std::move(text)) {}         // NOLINT
  Value(std::string_view text) : data_(std::string(text)) {}  // NOLINT
  Value(const char* text) : data_(std::string(text)) {}       // NOLINT
  Value(Array items) : data_(std::move(items)) {}             // NOLINT
  Value(Object object) : data_(std::move(object)) {}          // NOLINT

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  [[nodiscard]] const Object* object() const { return std::get_if<Object>(&data_); }
  [[nodiscard]] Object* object() { return std::get_if<Object>(&data_); }
  [[nodiscard]] const Array* array() const { return std::get_if<Array>(&data_); }
  [[nodiscard]] Array* array() { return std::get_if<Array>(&data_); }
  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&data_); }
  [[nodiscard]] std::optional<bool> flag() const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  /// Integers count too; NaN (the bare token) is a number that is not one: empty.
  [[nodiscard]] std::optional<double> number() const;
  /// Member of an object; null when this is no object or has no such member.
  [[nodiscard]] const Value* get(std::string_view key) const;
  /// Text of a member; empty when it is not there or no text.
  [[nodiscard]] std::string_view get_text(std::string_view key) const;
  /// Number of a member; none when it is not there or no number.
  [[nodiscard]] std::optional<double> get_number(std::string_view key) const;
  friend bool operator==(const Value&, const Value&) = default;

  using Data = std::variant<std::monostate, bool, std::int64_t, double, BigInteger, std::string,
                            Array, Object>;
  [[nodiscard]] const Data& data() const { return data_; }

 private:
  Data data_;
};

struct Member {
  std::string key;
  Value value;
  friend bool operator==(const Member&, const Member&) = default;
};

// Here, because a Member must be complete for them.
inline std::size_t Object::size() const { return members_.size(); }
inline bool Object::empty() const { return members_.empty(); }
inline std::vector<Member>::const_iterator Object::begin() const { return members_.begin(); }
inline std::vector<Member>::const_iterator Object::end() const { return members_.end(); }
inline std::vector<Member>::iterator Object::begin() { return members_.begin(); }
inline std::vector<Member>::iterator Object::end() { return members_.end(); }

/// Reads one JSON text. InvalidInput with line and column; `name` is what the text is called in the
/// error.
[[nodiscard]] base::Result<Value> parse(std::string_view text, const std::string& name);

/// Appends the text of `value`, nested lines indented as if it stood at `depth` (2 spaces each).
/// NaN and infinities become null.
void write(const Value& value, std::string& out, int depth = 0);
/// How many numbers in `value` become null there.
[[nodiscard]] std::size_t count_unwritable(const Value& value);
[[nodiscard]] std::string text_of(const Value& value);
/// A quoted string, everything but printable ASCII escaped.
void write_string(std::string_view text, std::string& out);
/// Python's repr of a float: shortest decimal that reads back equal.
[[nodiscard]] std::string float_text(double number);
/// Python's repr of the value: {'a': 0.01, 'b': None}.
[[nodiscard]] std::string python_text(const Value& value);

/// Writes an object member by member without building values: for texts that are made often.
class Builder {
 public:
  /// Appends to `out`; lines are indented as if the object stood at `depth`.
  Builder(std::string& out, int depth) : out_(out), depth_(depth) {}
  void open() { begin('{'); }
  void open(std::string_view key) { name(key), begin('{'); }
  void close() { end('}'); }
  void text(std::string_view key, std::string_view value) { name(key), write_string(value, out_); }
  void integer(std::string_view key, std::int64_t value);
  void number(std::string_view key, double value);
  void flag(std::string_view key, bool value) { name(key), out_ += value ? "true" : "false"; }
  void null(std::string_view key) { name(key), out_ += "null"; }
  void value(std::string_view key, const Value& value) { name(key), write(value, out_, depth_); }
  /// Text that is JSON already and was made for this depth.
  void raw(std::string_view key, std::string_view json) { name(key), out_ += json; }

 private:
  void name(std::string_view key);
  void begin(char bracket);
  void end(char bracket);

  std::string& out_;
  int depth_;
  bool empty_ = true;
};

}  // namespace layerfarm::coordinator::report::json
