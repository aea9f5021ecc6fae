#include "coordinator/report/json.h"

#include <doctest/doctest.h>

#include <rapidcheck.h>
#include <cmath>
#include <limits>

using namespace layerfarm;
using namespace layerfarm::coordinator::report;

namespace {

std::string again(const std::string& text) {
  const auto value = json::parse(text, "text");
  REQUIRE_MESSAGE(value, text);
  return json::text_of(*value);
}

std::string why(const std::string& text) {
  const auto value = json::parse(text, "f.json");
  REQUIRE_FALSE(value);
  CHECK(value.error().code == base::ErrorCode::InvalidInput);
  return value.error().text();
}

json::Value random_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3: {
      const double number = *rc::gen::arbitrary<double>();
      return std::isfinite(number) ? number : 0.5;
    }
    case 4:
    case 5: {
      std::string text;
      for (const int code : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5))) {
        text +=
            std::vector<std::string>{"a", "\"\\\n", "\xC3\xA9", "\xF0\x9F\x98\x80",
                                     std::string("\x01\x7F", 2)}[static_cast<std::size_t>(code)];
      }
      return text;
    }
    case 6: {
      json::Array items;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) items.push_back(random_value(depth - 1));
      return items;
    }
    default: {
      json::Object object;
      for (int i = *rc::gen::inRange(0, 20); i > 0; --i)
        object.set("key" + std::to_string(*rc::gen::inRange(0, 100)), random_value(depth - 1));
      return object;
    }
  }
}

}  // namespace

TEST_CASE("floats are written as Python's repr writes them") {
  const std::pair<double, const char*> cases[] = {
      {0.01, "0.01"},
      {4.0, "4.0"},
      {1e-5, "1e-05"},
      {1e16, "1e+16"},
      {1e15, "1000000000000000.0"},
      {0.0001, "0.0001"},
      {123456.789, "123456.789"},
      {-0.0, "-0.0"},
      {1.5e-7, "1.5e-07"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {9007199254740993.0, "9007199254740992.0"},
      {2.6577918106340803e-05, "2.6577918106340803e-05"},
      {1e22, "1e+22"},
      {0.1 + 0.2, "0.30000000000000004"},
      {100.0, "100.0"}};
  for (const auto& [number, text] : cases) CHECK(json::float_text(number) == text);
  CHECK(json::float_text(std::nan("")) == "nan");
  CHECK(json::float_text(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("what Python wrote is written again byte for byte") {
  for (const char* text : {
           R"({
  "a": [],
  "b": {},
  "c": [
    1,
    -2,
    0.5,
    true,
    null
  ],
  "d": "\u00e9\ud83d\ude00 \"\\/ \n\t\b\f\u0001\u007f",
  "lone": "\ud800x"
})",
           "123456789012345678901234567890", "[]", "\"\"", "-0.0"}) {
    std::string expected(text);
    CHECK(again(text) == expected);
  }
}

TEST_CASE("the tokens NaN and Infinity are read and written as null") {
  const auto value = json::parse("[NaN, Infinity, -Infinity]", "text");
  REQUIRE(value);
  CHECK_FALSE(value->array()->front().number());
  CHECK(json::text_of(*value) == "[\n  null,\n  null,\n  null\n]");
}

TEST_CASE("raw UTF-8 is read and escaped when written") {
  CHECK(again("\"\xC3\xA9\xE2\x86\x92\"") == "\"\\u00e9\\u2192\"");
}

TEST_CASE("of equal keys the last value counts, in the first one's place") {
  CHECK(again(R"({"a": 1, "b": 2, "a": 3})") == "{\n  \"a\": 3,\n  \"b\": 2\n}");
}

TEST_CASE("numbers beyond 64 bits keep their digits, floats beyond their range become infinite") {
  const auto value = json::parse("[9223372036854775808, 1e400, -12]", "text");
  REQUIRE(value);
  CHECK((*value->array())[0].number() == 9223372036854775808.0);
  CHECK_FALSE((*value->array())[0].integer());
  CHECK(std::isinf(*(*value->array())[1].number()));
  CHECK((*value->array())[2].integer() == -12);
}

TEST_CASE("damaged texts are refused with file, line and column") {
  CHECK(why("{\n  \"a\": x}") == "f.json is not valid JSON: line 2, column 8: a value is expected");
  CHECK(why("") == "f.json is not valid JSON: line 1, column 1: the text ends here");
  for (const char* text : {"{",
                           "[1,",
                           "[1 2]",
                           "{\"a\" 1}",
                           "{\"a\": 1,}",
                           "{1: 2}",
                           "\"abc",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12zz\"",
                           "\"\x01\"",
                           "\"\xFF\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xE0\x80\x80\"",
                           "\"\xF5\x80\x80\x80\"",
                           "1 2",
                           "01",
                           "-",
                           "tru",
                           "\"\\ud800\\u12\"",
                           "[1"}) {
    CHECK_FALSE(why(text).empty());
  }
  CHECK(why(std::string(100000, '[')).find("nested too deeply") != std::string::npos);
}

TEST_CASE("escapes of every kind are read") {
  const auto value = json::parse(R"("\"\\\/\b\f\n\r\t\u0041\u00E9\uD83D\uDE00\ud83dx")", "text");
  REQUIRE(value);
  CHECK(*value->text() == "\"\\/\b\f\n\r\tA\xC3\xA9\xF0\x9F\x98\x80\xED\xA0\xBDx");
  CHECK(again(R"("\ud800\u0041")") == R"("\ud800A")");
}

TEST_CASE("an object keeps the order of its keys and finds them, few or many") {
  json::Object object;
  for (int i = 0; i < 1000; ++i) object.set("k" + std::to_string(i), i);
  CHECK(object.size() == 1000);
  CHECK(object.find("k999")->integer() == 999);
  CHECK(object.find("nothing") == nullptr);
  CHECK(object.erase("k500"));
  CHECK_FALSE(object.erase("k500"));
  CHECK_FALSE(object.has("k500"));
  CHECK(object.find("k501")->integer() == 501);
  object["k500"] = "again";
  CHECK(std::prev(object.end())->key == "k500");
  CHECK(object.begin()->key == "k0");
  json::Object copy = object;
  CHECK(copy == object);
  copy.set("k1", nullptr);
  CHECK_FALSE(copy == object);
}

TEST_CASE("values answer only for what they are") {
  const json::Value value(json::Object{});
  CHECK(value.get("x") == nullptr);
  CHECK(value.get_text("x").empty());
  CHECK_FALSE(value.flag());
  CHECK_FALSE(value.integer());
  CHECK_FALSE(value.number());
  CHECK(json::Value(3).number() == 3.0);
  CHECK(json::Value(3).get("x") == nullptr);
  CHECK(json::Value(true).flag() == true);
  CHECK(json::Value(std::string_view("t")).text() != nullptr);
  CHECK(json::Value().is_null());
}

TEST_CASE("maps are printed as Python prints a dict") {
  const auto value = json::parse(
      R"({"fp_avg_tol": 0.01, "n": null, "l": [1, true, false, 1e-05], "q": "it's", "both": "'\"", "c": "a\n\t\r\u0001\\", "big": 9223372036854775808})",
      "t");
  REQUIRE(value);
  CHECK(json::python_text(*value) ==
        "{'fp_avg_tol': 0.01, 'n': None, 'l': [1, True, False, 1e-05], 'q': \"it's\", 'both': "
        "'\\'\"', 'c': 'a\\n\\t\\r\\x01\\\\', 'big': 9223372036854775808}");
}

TEST_CASE("bytes that are no UTF-8 are written as the replacement character") {
  std::string out;
  json::write_string("a\xFF\xC3", out);
  CHECK(out == "\"a\\ufffd\\ufffd\"");
}

TEST_CASE("a builder writes what a value of the same content gives") {
  json::Object inner;
  inner.set("t", "x");
  inner.set("n", nullptr);
  json::Object object;
  object.set("i", 3);
  object.set("d", 0.5);
  object.set("nan", nullptr);
  object.set("f", true);
  object.set("o", inner);
  object.set("e", json::Object{});
  std::string text;
  json::Builder out(text, 0);
  out.open();
  out.integer("i", 3);
  out.number("d", 0.5);
  out.number("nan", std::nan(""));
  out.flag("f", true);
  out.open("o");
  out.text("t", "x");
  out.null("n");
  out.close();
  out.open("e");
  out.close();
  out.close();
  CHECK(text == json::text_of(object));
  std::string nested;
  json::write(inner, nested, 1);
  std::string with_raw;
  json::Builder raw(with_raw, 0);
  raw.open();
  raw.raw("o", nested);
  raw.value("v", inner);
  raw.close();
  CHECK(json::parse(with_raw, "t")->get("v")->get_text("t") == "x");
}

TEST_CASE("any value reads back as what was written") {
  CHECK(rc::check([] {
    const json::Value value = random_value(3);
    const auto read = json::parse(json::text_of(value), "t");
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == value);
  }));
}
