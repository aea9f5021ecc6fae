#include "coordinator/report/json.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "shared/base/number_text.h"

namespace layerfarm::coordinator::report::json {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kIndexFrom = 12;  ///< members from which a table beats a scan
constexpr int kDeepest = 256;           ///< nesting that is read; the parser calls itself

std::size_t hash(std::string_view key) { return std::hash<std::string_view>{}(key); }

}  // namespace

// ---- Object ----

Object::Object() = default;
Object::~Object() = default;
Object::Object(const Object&) = default;
Object::Object(Object&&) noexcept = default;
Object& Object::operator=(const Object&) = default;
Object& Object::operator=(Object&&) noexcept = default;
bool operator==(const Object& a, const Object& b) { return a.members_ == b.members_; }

std::size_t Object::place(std::string_view key) const {
  if (table_.empty()) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].key == key) return i;
    }
    return kNowhere;
  }
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash(key) & mask; table_[slot] != 0; slot = (slot + 1) & mask) {
    if (members_[table_[slot] - 1].key == key) return table_[slot] - 1;
  }
  return kNowhere;
}

void Object::index_last() {
  if (members_.size() < kIndexFrom) return;
  if (table_.size() < members_.size() * 2) return rebuild_index();
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = hash(members_.back().key) & mask;
  while (table_[slot] != 0) slot = (slot + 1) & mask;
  table_[slot] = static_cast<std::uint32_t>(members_.size());
}

void Object::rebuild_index() {
  table_.clear();
  if (members_.size() < kIndexFrom) return;
  std::size_t slots = 64;
  while (slots < members_.size() * 4) slots *= 2;
  table_.assign(slots, 0);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    std::size_t slot = hash(members_[i].key) & (slots - 1);
    while (table_[slot] != 0) slot = (slot + 1) & (slots - 1);
    table_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

Value* Object::find(std::string_view key) {
  const std::size_t at = place(key);
  return at == kNowhere ? nullptr : &members_[at].value;
}

const Value* Object::find(std::string_view key) const {
  const std::size_t at = place(key);
  return at == kNowhere ? nullptr : &members_[at].value;
}

Value& Object::operator[](std::string_view key) {
  if (Value* there = find(key)) return *there;
  members_.push_back({std::string(key), Value{}});
  index_last();
  return members_.back().value;
}

Value& Object::set(std::string_view key, Value value) {
  Value& place = (*this)[key];
  place = std::move(value);
  return place;
}

bool Object::erase(std::string_view key) {
  const std::size_t at = place(key);
  if (at == kNowhere) return false;
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
  rebuild_index();
  return true;
}

// ---- Value ----

std::optional<bool> Value::flag() const {
  const bool* flag = std::get_if<bool>(&data_);
  return flag ? std::optional(*flag) : std::nullopt;
}

std::optional<std::int64_t> Value::integer() const {
  const std::int64_t* number = std::get_if<std::int64_t>(&data_);
  return number ? std::optional(*number) : std::nullopt;
}

std::optional<double> Value::number() const {
  if (const double* number = std::get_if<double>(&data_)) {
    return std::isnan(*number) ? std::nullopt : std::optional(*number);
  }
  if (const auto whole = integer()) return static_cast<double>(*whole);
  if (const auto* big = std::get_if<BigInteger>(&data_))
    return std::strtod(big->digits.c_str(), nullptr);
  return std::nullopt;
}

const Value* Value::get(std::string_view key) const {
  const Object* fields = object();
  return fields ? fields->find(key) : nullptr;
}

std::string_view Value::get_text(std::string_view key) const {
  const Value* member = get(key);
  return member && member->text() ? std::string_view(*member->text()) : std::string_view();
}

std::optional<double> Value::get_number(std::string_view key) const {
  const Value* member = get(key);
  return member ? member->number() : std::nullopt;
}

// ---- reading ----

namespace {

/// Length of the valid UTF-8 sequence at the start of `text`, which begins with a byte >= 0x80; 0
/// when it is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;  // a surrogate
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

/// A lone surrogate (an escape that Python accepts) becomes the three bytes that UTF-8 would have
/// for it; write() turns it back.
void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
        put(0x80 | (code & 0x3F));
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  base::Result<Value> document() {
    Value value;
    if (!parse_value(value, 0)) return error();
    skip_space();
    if (at_ != text_.size()) {
      fault("text after the end of the JSON value");
      return error();
    }
    return value;
  }

 private:
  tl::unexpected<base::Error> error() const {
    std::size_t line = 1;
    std::size_t start = 0;
    for (std::size_t i = 0; i < fault_at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') ++line, start = i + 1;
    }
    return base::fail(base::ErrorCode::InvalidInput,
                      name_ + " is not valid JSON: line " + std::to_string(line) + ", column " +
                          std::to_string(fault_at_ - start + 1) + ": " + fault_);
  }

  bool fault(const char* what) {
    fault_ = what;
    fault_at_ = at_;
    return false;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool parse_value(Value& out, int depth) {
    skip_space();
    if (depth > kDeepest) return fault("nested too deeply");
    switch (peek()) {
      case '{':
        return parse_object(out, depth);
      case '[':
        return parse_array(out, depth);
      case '"': {
        std::string text;
        if (!parse_string(text)) return false;
        out = Value(std::move(text));
        return true;
      }
      default:
        return parse_word(out);
    }
  }

  bool parse_word(Value& out) {
    if (take("null")) return out = Value(), true;
    if (take("true")) return out = Value(true), true;
    if (take("false")) return out = Value(false), true;
    if (take("NaN")) return out = Value(std::numeric_limits<double>::quiet_NaN()), true;
    if (take("Infinity")) return out = Value(std::numeric_limits<double>::infinity()), true;
    if (take("-Infinity")) return out = Value(-std::numeric_limits<double>::infinity()), true;
    return parse_number(out);
  }

  bool parse_number(Value& out) {
    const std::size_t start = at_;
    if (peek() == '-') ++at_;
    if (!is_digit(peek()))
      return at_ = start, fault(at_ == text_.size() ? "the text ends here" : "a value is expected");
    if (peek() == '0') {
      ++at_;
    } else {
      while (is_digit(peek())) ++at_;
    }
    bool whole = true;
    if (peek() == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
      whole = false;
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    if (peek() == 'e' || peek() == 'E') {
      std::size_t next = at_ + 1;
      if (next < text_.size() && (text_[next] == '+' || text_[next] == '-')) ++next;
      if (next < text_.size() && is_digit(text_[next])) {
        whole = false;
        at_ = next;
        while (is_digit(peek())) ++at_;
      }
    }
    const std::string_view digits = text_.substr(start, at_ - start);
    const char* end = digits.data() + digits.size();
    if (whole) {
      std::int64_t number = 0;
      const auto read = std::from_chars(digits.data(), end, number);
      out = read.ec == std::errc() ? Value(number) : Value(BigInteger{std::string(digits)});
      return true;
    }
    double number = 0;
    if (std::from_chars(digits.data(), end, number).ec != std::errc()) {
      number = std::strtod(std::string(digits).c_str(),
                           nullptr);  // out of range: 0 or infinity, as Python has it
    }
    out = Value(number);
    return true;
  }

  bool parse_hex(std::uint32_t& code) {
    if (text_.size() - at_ < 4) return fault("an escape is cut off");
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_ + static_cast<std::size_t>(i)];
      code <<= 4;
      if (is_digit(c)) {
        code |= static_cast<std::uint32_t>(c - '0');
      } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        code |= static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        return fault("four hex digits are expected after \\u");
      }
    }
    at_ += 4;
    return true;
  }

  bool parse_escape(std::string& out) {
    ++at_;  // the backslash
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'n':
        out += '\n';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'u':
        break;
      default:
        return --at_, fault("an unknown escape");
    }
    std::uint32_t code = 0;
    if (!parse_hex(code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      const std::size_t second = at_;
      at_ += 2;
      std::uint32_t low = 0;
      if (!parse_hex(low)) return false;
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = second;
      }
    }
    append_utf8(code, out);
    return true;
  }

  bool parse_string(std::string& out) {
    ++at_;  // the quote
    while (true) {
      const std::size_t start = at_;
      while (at_ < text_.size()) {
        const auto c = static_cast<unsigned char>(text_[at_]);
        if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80) break;
        ++at_;
      }
      out.append(text_, start, at_ - start);
      if (at_ >= text_.size()) return fault("a string without an end");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') return ++at_, true;
      if (c == '\\') {
        if (!parse_escape(out)) return false;
      } else if (c < 0x20) {
        return fault("a control character in a string");
      } else {
        const std::size_t length = utf8_length(text_.substr(at_, 4));
        if (length == 0) return fault("bytes that are not UTF-8");
        out.append(text_, at_, length);
        at_ += length;
      }
    }
  }

  bool parse_array(Value& out, int depth) {
    ++at_;
    Array items;
    skip_space();
    if (peek() == ']') return ++at_, out = Value(std::move(items)), true;
    while (true) {
      items.emplace_back();
      if (!parse_value(items.back(), depth + 1)) return false;
      skip_space();
      const char c = peek();
      if (c != ',' && c != ']') return fault("',' or ']' is expected");
      ++at_;
      if (c == ']') return out = Value(std::move(items)), true;
    }
  }

  bool parse_object(Value& out, int depth) {
    ++at_;
    Object members;
    skip_space();
    if (peek() == '}') return ++at_, out = Value(std::move(members)), true;
    while (true) {
      skip_space();
      if (peek() != '"') return fault("a key in quotes is expected");
      std::string key;
      if (!parse_string(key)) return false;
      skip_space();
      if (peek() != ':') return fault("':' is expected");
      ++at_;
      if (!parse_value(members[key], depth + 1))
        return false;  // of equal keys the last one counts, as in Python
      skip_space();
      const char c = peek();
      if (c != ',' && c != '}') return fault("',' or '}' is expected");
      ++at_;
      if (c == '}') return out = Value(std::move(members)), true;
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::string fault_;
  std::size_t fault_at_ = 0;
};

}  // namespace

base::Result<Value> parse(std::string_view text, const std::string& name) {
  return Parser(text, name).document();
}

// ---- writing ----

namespace {

/// Code point at `at` (which is moved on); bytes that are no UTF-8 come as U+FFFD. Surrogates kept
/// by the parser come as they are.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return ++at, first;
  std::size_t length = utf8_length(text.substr(at, 4));
  if (length == 0 && first == 0xED && (byte(at + 1) & 0xE0) == 0xA0 &&
      (byte(at + 2) & 0xC0) == 0x80)
    length = 3;
  if (length == 0) return ++at, 0xFFFD;
  std::uint32_t code = length == 2 ? first & 0x1FU : length == 3 ? first & 0x0FU : first & 0x07U;
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(at + i) & 0x3FU);
  at += length;
  return code;
}

void append_hex4(std::uint32_t code, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 0xF];
}

void new_line(std::string& out, int depth) {
  out += '\n';
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
}

void append_integer(std::int64_t number, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

std::string float_text(double number) { return base::number_text(number); }

void write_string(std::string_view text, std::string& out) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t start = at;
    while (at < text.size() && text[at] >= ' ' && text[at] <= '~' && text[at] != '"' &&
           text[at] != '\\')
      ++at;
    out.append(text, start, at - start);
    if (at == text.size()) break;
    const std::uint32_t code = next_code_point(text, at);
    switch (code) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (code >= 0x10000) {
          append_hex4(0xD800 + ((code - 0x10000) >> 10), out);
          append_hex4(0xDC00 + ((code - 0x10000) & 0x3FF), out);
        } else {
          append_hex4(code, out);
        }
    }
  }
  out += '"';
}

void write(const Value& value, std::string& out, int depth) {
  struct Writer {
    std::string& out;
    int depth;
    void operator()(std::monostate) const { out += "null"; }
    void operator()(bool flag) const { out += flag ? "true" : "false"; }
    void operator()(std::int64_t number) const { append_integer(number, out); }
    void operator()(double number) const {
      if (std::isfinite(number)) {
        out += float_text(number);
      } else {
        out += "null";
      }
    }
    void operator()(const BigInteger& number) const { out += number.digits; }
    void operator()(const std::string& text) const { write_string(text, out); }
    void operator()(const Array& items) const {
      if (items.empty()) {
        out += "[]";
        return;
      }
      char before = '[';
      for (const Value& item : items) {
        out += before;
        before = ',';
        new_line(out, depth + 1);
        write(item, out, depth + 1);
      }
      new_line(out, depth);
      out += ']';
    }
    void operator()(const Object& object) const {
      if (object.empty()) {
        out += "{}";
        return;
      }
      char before = '{';
      for (const Member& member : object) {
        out += before;
        before = ',';
        new_line(out, depth + 1);
        write_string(member.key, out);
        out += ": ";
        write(member.value, out, depth + 1);
      }
      new_line(out, depth);
      out += '}';
    }
  };
  std::visit(Writer{out, depth}, value.data());
}

std::size_t count_unwritable(const Value& value) {
  std::size_t out = 0;
  if (const auto* number = std::get_if<double>(&value.data())) {
    out = std::isfinite(*number) ? 0 : 1;
  } else if (value.array()) {
    for (const Value& item : *value.array()) out += count_unwritable(item);
  } else if (value.object()) {
    for (const Member& member : *value.object()) out += count_unwritable(member.value);
  }
  return out;
}

std::string text_of(const Value& value) {
  std::string out;
  write(value, out);
  return out;
}

namespace {

std::string python_string(const std::string& text) {
  const bool single = text.find('\'') == std::string::npos || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      static constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out += kHex[c >> 4 & 0xF];
      out += kHex[c & 0xF];
    } else {
      out += c;
    }
  }
  return out += quote;
}

}  // namespace

std::string python_text(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool flag) const { return flag ? "True" : "False"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return float_text(number); }
    std::string operator()(const BigInteger& number) const { return number.digits; }
    std::string operator()(const std::string& text) const { return python_string(text); }
    std::string operator()(const Array& items) const {
      std::string out = "[";
      for (const Value& item : items)
        out.append(out.size() > 1 ? ", " : "").append(python_text(item));
      return out + "]";
    }
    std::string operator()(const Object& object) const {
      std::string out = "{";
      for (const Member& member : object) {
        out.append(out.size() > 1 ? ", " : "")
            .append(python_string(member.key))
            .append(": ")
            .append(python_text(member.value));
      }
      return out + "}";
    }
  };
  return std::visit(Writer{}, value.data());
}

// ---- Builder ----

void Builder::integer(std::string_view key, std::int64_t value) {
  name(key);
  append_integer(value, out_);
}

void Builder::number(std::string_view key, double value) {
  name(key);
  if (std::isfinite(value)) {
    out_ += float_text(value);
  } else {
    out_ += "null";
  }
}

void Builder::name(std::string_view key) {
  if (!empty_) out_ += ',';
  empty_ = false;
  new_line(out_, depth_);
  write_string(key, out_);
  out_ += ": ";
}

void Builder::begin(char bracket) {
  out_ += bracket;
  ++depth_;
  empty_ = true;
}

void Builder::end(char bracket) {
  --depth_;
  if (!empty_) new_line(out_, depth_);
  out_ += bracket;
  empty_ = false;
}

}  // namespace layerfarm::coordinator::report::json
