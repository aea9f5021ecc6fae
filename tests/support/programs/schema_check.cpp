// Checks JSON files against a schema, for tests: schema_check [--closed] SCHEMA FILE...
// --closed: keys that the schema does not describe are errors too, where it is open for other
// tools' keys. Prints what is wrong, a line each; exit code 1 when something is, 2 when a file
// cannot be used.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "shared/base/files.h"

using layerfarm::base::read_file;
using nlohmann::json;

namespace {

void close(json& schema) {
  if (schema.is_object() && schema.contains("properties") &&
      !schema.contains("additionalProperties") && schema["properties"].is_object())
    schema["additionalProperties"] = false;
  if (!schema.is_structured()) return;
  for (json& part : schema) close(part);
}

json parsed(const std::string& path) {
  const auto text = read_file(path);
  if (!text) {
    fmt::print("{}\n", text.error().text());
    std::exit(2);
  }
  json out = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (out.is_discarded()) {
    fmt::print("{} is no JSON\n", path);
    std::exit(2);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool closed = !words.empty() && words.front() == "--closed";
  if (closed) words.erase(words.begin());
  if (words.size() < 2) {
    fmt::print("usage: schema_check [--closed] SCHEMA FILE...\n");
    return 2;
  }
  json document = parsed(words.front());
  if (closed) close(document);
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(document),
                                          schema);
  bool good = true;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const json value = parsed(words[i]);
    valijson::ValidationResults results;
    if (valijson::Validator().validate(schema, valijson::adapters::NlohmannJsonAdapter(value),
                                       &results))
      continue;
    good = false;
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      std::string where;
      for (const std::string& part : error.context) where += part;
      fmt::print("{}: {}: {}\n", words[i], where, error.description);
    }
  }
  return good ? 0 : 1;
}
