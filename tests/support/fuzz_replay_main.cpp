// main() of a fuzz target where libFuzzer is not linked: replays the files of a corpus folder and,
// from a fixed seed, damaged copies of them, so that every ordinary test run goes through what
// fuzzing found.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus = {Bytes{}};
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

/// Flips, inserts, removes or cuts a few bytes.
Bytes damaged(Bytes bytes, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const auto place = static_cast<std::ptrdiff_t>(random() % (bytes.size() + 1));
    const auto value = static_cast<std::uint8_t>(random());
    const bool inside = place < static_cast<std::ptrdiff_t>(bytes.size());
    switch (random() % 4) {
      case 0:
        if (inside) bytes[static_cast<std::size_t>(place)] = value;
        break;
      case 1:
        bytes.insert(bytes.begin() + place, value);
        break;
      case 2:
        if (inside) bytes.erase(bytes.begin() + place);
        break;
      default:
        if (random() % 8 == 0) bytes.resize(static_cast<std::size_t>(place));
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Bytes> corpus = read_corpus(argc > 1 ? argv[1] : "");
  std::mt19937_64 random(1);
  std::size_t runs = 0;
  for (const Bytes& bytes : corpus) {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++runs;
  }
  for (; runs < 5000; ++runs) {
    const Bytes bytes = damaged(corpus[random() % corpus.size()], random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs, %zu of them from the corpus\n", runs, corpus.size());
  return 0;
}
