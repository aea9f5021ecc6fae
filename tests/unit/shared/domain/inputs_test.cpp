// Expected numbers: spec section 22 (seed 1234) and numpy.random.default_rng of NumPy 2.4.6.
#include "shared/domain/inputs.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

using namespace layerfarm;
using namespace layerfarm::domain;

namespace {

InputSpec spec(DType type, std::int64_t count, double lo = -40, double hi = 40) {
  return {{type, {count}}, lo, hi};
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  std::vector<T> out(tensor.data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

std::vector<Tensor> draw(const std::vector<InputSpec>& specs, std::uint64_t seed = kInputSeed) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < specs.size(); ++i) order.push_back(i);
  auto drawn = draw_inputs(specs, order, seed);
  REQUIRE(drawn.has_value());
  return std::move(*drawn);
}

template <typename T>
std::vector<T> draw_one(DType type, std::int64_t count, double lo = -40, double hi = 40) {
  return values<T>(draw({spec(type, count, lo, hi)}).at(0));
}

}  // namespace

TEST_CASE("the generator's words are NumPy's for any seed below 2^64") {
  struct Row {
    std::uint64_t seed;
    std::uint64_t words[3];
  };
  const Row rows[] = {
      {0, {0xa30febcfd9c2825fULL, 0x4510bdf882d9d721ULL, 0x0a7d3da94ecde8b8ULL}},
      {1, {0x8306bdf37922e4ffULL, 0xf35196bbc152a866ULL, 0x24e7a4f608ec18cdULL}},
      {1234, {0xfa08fef3fab6bbbaULL, 0x615481f7fce9ac81ULL, 0xec59dd7c2bde3cb4ULL}},
      {4294967295ULL, {0x407f5fa930d8fd9fULL, 0x3814b22eb9684802ULL, 0x498b7dcee8d8dc95ULL}},
      {4294967296ULL, {0xe3c5ebe285ac1625ULL, 0x8ea09968fe31dbccULL, 0xcd084ff84d8de9beULL}},
      {18446744073709551615ULL,
       {0xae163a7a8c47568fULL, 0xd86659f5f3382359ULL, 0x01e52b195bc2d24aULL}},
      {20260101ULL, {0x3b78046273d0e8aaULL, 0xd3febc88a6cc76b0ULL, 0x8728ffd20e88646aULL}},
  };
  for (const Row& row : rows) {
    Pcg64 generator(row.seed);
    for (const std::uint64_t word : row.words) CHECK(generator.next64() == word);
  }
}

TEST_CASE("the check vectors of the spec come out bit for bit") {
  CHECK(draw_one<double>(DType::Float64, 4) ==
        std::vector<double>{38.13598133585137, -9.584341198430579, 33.85969870111643,
                            -19.064606090916463});
  CHECK(draw_one<float>(DType::Float32, 2) ==
        std::vector<float>{38.13598133585137F, -9.584341198430579F});
  CHECK(draw_one<std::int32_t>(DType::Int32, 8) ==
        std::vector<std::int32_t>{38, 38, 39, -10, -27, 33, -32, -20});
  CHECK(draw_one<std::int64_t>(DType::Int64, 8) ==
        std::vector<std::int64_t>{38, 38, 39, -10, -27, 33, -32, -20});
  CHECK(draw_one<std::int16_t>(DType::Int16, 8) ==
        std::vector<std::int16_t>{18, 38, 39, 38, 13, 39, 0, -10});
  CHECK(draw_one<std::int8_t>(DType::Int8, 8) ==
        std::vector<std::int8_t>{18, 18, 16, 38, 35, 39, -38, 38});
  CHECK(draw_one<std::uint8_t>(DType::UInt8, 8, 0, 80) ==
        std::vector<std::uint8_t>{58, 58, 56, 78, 75, 79, 2, 78});
}

TEST_CASE("doubles leave the kept half of a 32-bit draw alone") {
  const auto drawn =
      draw({spec(DType::Float64, 3), spec(DType::Int32, 3), spec(DType::Float64, 1)});
  CHECK(values<double>(drawn[0]) ==
        std::vector<double>{38.13598133585137, -9.584341198430579, 33.85969870111643});
  CHECK(values<std::int32_t>(drawn[1]) == std::vector<std::int32_t>{-32, -20, -29});
  CHECK(values<double>(drawn[2]) == std::vector<double>{-30.552701362668575});
}

TEST_CASE("one generator serves all types in turn as NumPy does") {
  const auto drawn =
      draw({spec(DType::Int8, 6, -128, 128), spec(DType::UInt16, 4, 0, 65536),
            spec(DType::UInt64, 3, 0, 0x1p64), spec(DType::Int64, 3, -0x1p62, 0x1p62),
            spec(DType::UInt32, 3, 0, 0x1p32), spec(DType::Bool, 8), spec(DType::Int32, 3, 0, 1),
            spec(DType::Float16, 4), spec(DType::BFloat16, 4), spec(DType::Int64, 4, 0, 3e9),
            spec(DType::UInt8, 5, 0, 200), spec(DType::UInt16, 5, 0, 60000)},
           99);
  CHECK(values<std::int8_t>(drawn[0]) == std::vector<std::int8_t>{25, 98, -54, 117, 109, -71});
  CHECK(values<std::uint16_t>(drawn[1]) == std::vector<std::uint16_t>{28967, 49653, 55389, 37033});
  CHECK(values<std::uint64_t>(drawn[2]) == std::vector<std::uint64_t>{9443182695686696458ULL,
                                                                      17933673198744876582ULL,
                                                                      11342960890024317363ULL});
  CHECK(values<std::int64_t>(drawn[3]) == std::vector<std::int64_t>{629804105059464829LL,
                                                                    -1966545378175015231LL,
                                                                    502779413584189619LL});
  CHECK(values<std::uint32_t>(drawn[4]) ==
        std::vector<std::uint32_t>{1510740334U, 2007998252U, 456933435U});
  CHECK(values<std::uint8_t>(drawn[5]) == std::vector<std::uint8_t>{1, 0, 0, 1, 1, 1, 1, 1});
  CHECK(values<std::int32_t>(drawn[6]) == std::vector<std::int32_t>{0, 0, 0});
  CHECK(values<std::uint16_t>(drawn[7]) == std::vector<std::uint16_t>{20558, 52501, 52127, 51291});
  CHECK(values<std::uint16_t>(drawn[8]) == std::vector<std::uint16_t>{49555, 49472, 16908, 49436});
  CHECK(values<std::int64_t>(drawn[9]) ==
        std::vector<std::int64_t>{2003668196, 2323947625, 2287604466, 121701720});
  CHECK(values<std::uint8_t>(drawn[10]) == std::vector<std::uint8_t>{134, 88, 17, 88, 138});
  CHECK(values<std::uint16_t>(drawn[11]) ==
        std::vector<std::uint16_t>{36339, 21309, 802, 42155, 31463});
}

TEST_CASE("the drawing order decides the values, the result keeps the order of the inputs") {
  const std::vector<InputSpec> specs = {spec(DType::Float64, 1), spec(DType::Float64, 2)};
  const auto drawn = draw_inputs(specs, {1, 0}, kInputSeed);
  REQUIRE(drawn.has_value());
  CHECK(values<double>((*drawn)[1]) == std::vector<double>{38.13598133585137, -9.584341198430579});
  CHECK(values<double>((*drawn)[0]) == std::vector<double>{33.85969870111643});
}

TEST_CASE("an empty tensor draws nothing and a scalar one value") {
  const auto drawn = draw({{{DType::Int64, {2, 0}}, 5, 5}, {{DType::Float64, {}}, -40, 40}});
  CHECK(drawn[0].data.empty());
  CHECK(values<double>(drawn[1]) == std::vector<double>{38.13598133585137});
}

TEST_CASE("given values are taken as they are and nothing is drawn for them") {
  InputSpec shape = spec(DType::Int64, 2);
  shape.values = {-1, 12};
  InputSpec ratio = spec(DType::Float32, 1);
  ratio.values = {0.5};
  const auto drawn = draw({shape, ratio, spec(DType::Float64, 1)});
  CHECK(values<std::int64_t>(drawn[0]) == std::vector<std::int64_t>{-1, 12});
  CHECK(values<float>(drawn[1]) == std::vector<float>{0.5F});
  CHECK(values<double>(drawn[2]) == std::vector<double>{38.13598133585137});
  for (const DType type :
       {DType::Bool, DType::Int8, DType::Int16, DType::Int32, DType::UInt8, DType::UInt16,
        DType::UInt32, DType::UInt64, DType::Float64, DType::Float16, DType::BFloat16}) {
    InputSpec one = spec(type, 1);
    one.values = {1};
    CHECK(draw({one}).at(0).data.size() == dtype_size(type));
  }
  const auto refused = [](InputSpec bad, std::vector<double> given) {
    bad.values = std::move(given);
    const auto result = draw_inputs({bad}, {0}, kInputSeed);
    REQUIRE(!result.has_value());
    return result.error().text();
  };
  CHECK(refused(spec(DType::Int64, 2), {1}).find("1 values are given for a tensor of 2") !=
        std::string::npos);
  CHECK(refused(spec(DType::UInt8, 1), {256}).find("does not fit uint8") != std::string::npos);
  CHECK(refused(spec(DType::Int64, 1), {0x1p63}).find("does not fit int64") != std::string::npos);
  CHECK(refused(spec(DType::String, 1), {1}).find("cannot be given") != std::string::npos);
}

TEST_CASE("bounded draws stay below any span") {
  Pcg64 generator(7);
  for (const std::uint64_t span : {std::uint64_t{2}, std::uint64_t{3}, (std::uint64_t{1} << 32),
                                   (std::uint64_t{1} << 32) + 1, (std::uint64_t{1} << 63) + 1}) {
    for (int i = 0; i < 200; ++i) CHECK(generator.bounded64(span) < span);
  }
  for (const std::uint32_t span : {2U, 80U, 0x80000001U}) {
    for (int i = 0; i < 200; ++i) CHECK(generator.bounded32(span) < span);
  }
  CHECK(generator.bounded64(1) == 0);
  CHECK(generator.bounded32(1) == 0);
  for (int i = 0; i < 200; ++i) {
    const double value = generator.next_double();
    CHECK((value >= 0 && value < 1));
  }
  Pcg64 words(1234);
  CHECK(words.next32() == 0xfab6bbbaU);
  CHECK(words.next32() == 0xfa08fef3U);
}

TEST_CASE("what cannot be drawn is an error that names the input and the reason") {
  const auto message = [](const std::vector<InputSpec>& specs,
                          const std::vector<std::uint32_t>& order) {
    const auto drawn = draw_inputs(specs, order, kInputSeed);
    REQUIRE(!drawn.has_value());
    CHECK(drawn.error().code == base::ErrorCode::InvalidInput);
    return drawn.error().text();
  };
  CHECK(message({spec(DType::String, 1)}, {0}) ==
        "input 0: there is no rule for random inputs of type string");
  CHECK(message({spec(static_cast<DType>(17), 1)}, {0}).find("type_17") != std::string::npos);
  CHECK(message({spec(DType::Int32, 1), spec(DType::UInt8, 4, -40, 40)}, {0, 1})
            .find("input 1: no uint8 lies in") == 0);
  CHECK(message({spec(DType::Int32, 1, 3, 3)}, {0}).find("no int32 lies in") != std::string::npos);
  CHECK(message({spec(DType::Int32, 1, 0.2, 0.8)}, {0}).find("no integer") != std::string::npos);
  CHECK(message({{{DType::Float32, {-1, 2}}, -40, 40}}, {0}).find("not known") !=
        std::string::npos);
  CHECK(message({{{DType::Float32, {1LL << 40, 1LL << 40}}, -40, 40}}, {0}).find("larger than") !=
        std::string::npos);
  CHECK(message({spec(DType::Int32, 1), spec(DType::Int32, 1)}, {0}).find("leaves some out") !=
        std::string::npos);
  CHECK(message({spec(DType::Int32, 1)}, {1}).find("each input once") != std::string::npos);
  CHECK(message({spec(DType::Int32, 1), spec(DType::Int32, 1)}, {0, 0}).find("each input once") !=
        std::string::npos);
}
