#include "worker/toolchain/diagnostic.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using layerfarm::worker::toolchain::kMostDiagnosticBytes;
using layerfarm::worker::toolchain::normalised;

TEST_CASE("colours and control characters go") {
  CHECK(normalised("\x1b[1;31mred\x1b[0m and \x1b]0;title\a plain\x01") == "red and  plain");
  CHECK(normalised("a\tb\r\nc\rd") == "a b\nc\nd");
  CHECK(normalised("\x1b") == "");
  CHECK(normalised("\x1b[") == "");
  CHECK(normalised("\x1b[31") == "");
}

TEST_CASE("an absolute path keeps its last name, with line and column") {
  CHECK(normalised("/tmp/scratch-AbC/layer.onnx:3:14: error: no") == "layer.onnx:3:14: error: no");
  CHECK(normalised("Load model from /data/u/m.onnx failed:File /data/u/m.onnx") ==
        "Load model from m.onnx failed:File m.onnx");
  CHECK(normalised("('/a/b/c.so', \"/d/e\")") == "('c.so', \"e\")");
  CHECK(normalised("--model=/x/y/z.onnx") == "--model=z.onnx");
  CHECK(normalised("folder /a/b/ is gone") == "folder b/ is gone");
}

TEST_CASE("what only looks like a path stays") {
  for (const char* text :
       {"and/or", "3 / 4", "N/A", "https://example.org/x", "a//b", "rel/ative/path", "/"})
    CHECK(normalised(text) == text);
}

TEST_CASE("addresses go, short numbers stay") {
  CHECK(normalised("at 0x7f3a12345678 in f") == "at 0x... in f");
  CHECK(normalised("code 0x3ea, 0xabcdef01.") == "code 0x3ea, 0x....");
  CHECK(normalised("name0x12345678") == "name0x12345678");
}

TEST_CASE("dates and times of day go") {
  CHECK(normalised("2026-11-30 06:50:08.251727059 [E:onnxruntime] bad") == "[E:onnxruntime] bad");
  CHECK(normalised("2026-11-30T06:50:08Z bad") == "bad");
  CHECK(normalised("2026-11-30T06:50:08+01:00 bad") == "bad");
  CHECK(normalised("at 06:50:08,123 it failed") == "at it failed");
  CHECK(normalised("Mon Nov 30 06:50:08 2026 bad") == "bad");
  CHECK(normalised("[2026/11/30] x") == "[] x");
}

TEST_CASE("numbers that are no date stay") {
  for (const char* text : {"shape 1x3x224x224", "error: 1002", "12:34", "version 1.32.0",
                           "ratio 2026-11", "f32.2026-11-301"})
    CHECK(normalised(text) == text);
}

TEST_CASE("what is no UTF-8 is replaced") {
  CHECK(normalised("caf\xc3\xa9 \xe2\x82\xac") == "caf\xc3\xa9 \xe2\x82\xac");
  CHECK(normalised("a\xff\xc3z\xed\xa0\x80") == "a??z???");
  CHECK(normalised("\xc3") == "?");
  CHECK(normalised(std::string("a\0b", 3)) == "ab");
}

TEST_CASE("lines are trimmed, repeated lines shown once") {
  CHECK(normalised("\n\n  a  \na\nb\nb\nb\n\n\n c \n\n") == "  a\na\nb\n\n c");
  CHECK(normalised("") == "");
  CHECK(normalised(" \n \n") == "");
}

TEST_CASE("of a Python traceback the exception comes first, and is not cut away") {
  const std::string head = "Traceback (most recent call last):\n";
  std::string frames;
  for (int i = 0; i < 500; ++i)
    frames += "  File \"/a/b/c.py\", line " + std::to_string(i) + ", in f\n    raise E\n";
  const std::string out = normalised("starting\n" + head + frames + "ValueError: no such axis\n");
  CHECK(out.starts_with("ValueError: no such axis\nstarting\n" + head + "  File \"c.py\", line 0"));
  CHECK(out.size() <= kMostDiagnosticBytes);
  const std::string two = head +
                          "  File \"x\"\nKeyError: 'a'\n\nDuring handling of the above "
                          "exception, another exception occurred:\n\n" +
                          head + "  File \"y\"\nmine.Error: last\nand more\n";
  CHECK(normalised(two).starts_with("mine.Error: last\n" + head));
  CHECK(normalised(normalised(two)) == normalised(two));
  // One that never came to its end is left as it is.
  CHECK(normalised(head + "  File \"x\"") == head + "  File \"x\"");
}

TEST_CASE("a long text is cut at a line end and says so") {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "line " + std::to_string(i) + "\n";
  const std::string out = normalised(lines);
  CHECK(out.size() <= kMostDiagnosticBytes);
  CHECK(out.ends_with("\n..."));
  CHECK(out.substr(0, out.size() - 4).rfind("line ") == out.rfind('\n', out.size() - 5) + 1);
  std::string one_line;
  while (one_line.size() < 10000) one_line += "\xe2\x82\xac";
  const std::string cut = normalised(one_line);
  CHECK(cut.size() <= kMostDiagnosticBytes);
  CHECK(normalised(cut) == cut);
}

TEST_CASE("any bytes give a short text without escapes") {
  std::mt19937 random(11);
  const std::string alphabet = "/ab0x1f9-: .\x1b[m\n'\xc3\xa9\xff";
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text;
    for (std::size_t i = random() % 60; i > 0; --i) text += alphabet[random() % alphabet.size()];
    const std::string out = normalised(text);
    CHECK(out.find('\x1b') == std::string::npos);
    CHECK(out.size() <= kMostDiagnosticBytes);
  }
}
