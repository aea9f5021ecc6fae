#include "coordinator/app/flag_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

namespace layerfarm::coordinator::app {
namespace {

/// "512MB", "4 GiB", "1000": bytes; units are powers of 1024.
std::optional<std::int64_t> bytes_of(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number <= 0) return std::nullopt;
  while (rest != end && *rest == ' ') ++rest;
  std::string unit(rest, end);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  static const std::map<std::string, int> kShifts = {
      {"", 0},     {"B", 0},  {"K", 10},  {"KB", 10},  {"KIB", 10}, {"M", 20},  {"MB", 20},
      {"MIB", 20}, {"G", 30}, {"GB", 30}, {"GIB", 30}, {"T", 40},   {"TB", 40}, {"TIB", 40}};
  const auto shift = kShifts.find(unit);
  if (shift == kShifts.end() ||
      number > (std::numeric_limits<std::int64_t>::max() >> shift->second))
    return std::nullopt;
  return number << shift->second;
}

}  // namespace

std::vector<std::string> split_commas(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) {
    std::stringstream stream(value);
    for (std::string part; std::getline(stream, part, ',');) {
      const auto first = part.find_first_not_of(' ');
      if (first == std::string::npos) continue;
      out.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    }
  }
  return out;
}

CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && std::isfinite(number) && number >= low && number <= high) return std::string();
        return fmt::format("'{}' is no number from {} to {}", text, low, high);
      },
      "NUMBER");
}

void add_bytes(CLI::App& app, const std::string& flag, std::int64_t& target,
               const std::string& help) {
  app.add_option_function<std::string>(
         flag,
         [flag, &target](const std::string& text) {
           const auto bytes = bytes_of(text);
           if (!bytes) throw CLI::ValidationError(flag, "'" + text + "' is no size such as 512MB");
           target = *bytes;
         },
         help)
      ->type_name("SIZE");
}

void add_seconds(CLI::App& app, const std::string& flag, std::int64_t& target_ms,
                 const std::string& help) {
  app.add_option_function<double>(
         flag,
         [&target_ms](const double& seconds) {
           target_ms = static_cast<std::int64_t>(seconds * 1000.0);
         },
         help)
      ->check(number_between(0.001, 1e7))
      ->type_name("SECONDS");
}

void add_dims(CLI::App& app, std::vector<std::pair<std::string, std::int64_t>>& dims) {
  app.add_option_function<std::vector<std::string>>(
         "--dim",
         [&dims](const std::vector<std::string>& values) {
           dims.clear();
           for (const std::string& text : values) {
             const auto equals = text.rfind('=');
             std::int64_t number = -1;
             const char* const end = text.data() + text.size();
             const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
             const auto [rest, error] = std::from_chars(begin, end, number);
             if (equals == 0 || error != std::errc() || rest != end || number < 1) {
               throw CLI::ValidationError(
                   "--dim", "'" + text + "' is not NAME=NUMBER with a number of at least 1");
             }
             const std::string name = text.substr(0, equals);
             for (const auto& [other, value] : dims) {
               if (other != name || value == number) continue;
               throw CLI::ValidationError(
                   "--dim", fmt::format("'{}' is given as {} and as {}", name, value, number));
             }
             dims.emplace_back(name, number);
           }
         },
         "Value of a dynamic dimension (repeatable); every other one is 1")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
}

void add_config(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("--config", files,
                 "JSON file with values for flags that are not given (repeatable, later ones win; "
                 "docs/config-files.md)")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_tool_options(CLI::App& app, ToolOptions& options) {
  app.add_option("--torq-hw-type", options.hw_type,
                 "Run-time hardware type: sim, aws_fpga, a board (default: as the chip file says)")
      ->type_name("TYPE");
  app.add_option("--compiler-option", options.compiler,
                 "Option for the chip's compiler (repeatable; write --compiler-option=--flag)")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  app.add_option("--runtime-option", options.runtime,
                 "Option for what runs the compiled layers (repeatable)")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  app.add_option("--debug-ir", options.dump_folder,
                 "Write what the compiler does to each layer into DIR/<layer>/<executor>/ "
                 "(without DIR: tmp)")
      ->expected(0, 1)
      ->default_str("tmp")
      ->type_name("[DIR]");
}

}  // namespace layerfarm::coordinator::app
