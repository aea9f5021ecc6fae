#include "worker/onnx/fold.h"

#include <cstring>
#include <limits>

#include "tests/unit/worker/onnx/bench.h"

using namespace layerfarm;
using namespace layerfarm::test;
using domain::DType;
using Ints = std::vector<std::int64_t>;

namespace {

lf::Constant ints(Ints dims, const Ints& values) {
  return lf::make_constant({DType::Int64, std::move(dims)},
                           base::Bytes(reinterpret_cast<const char*>(values.data()),
                                       values.size() * sizeof(std::int64_t)));
}
lf::Constant floats(Ints dims, const std::vector<float>& values) {
  return lf::make_constant(
      {DType::Float32, std::move(dims)},
      base::Bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}
std::vector<float> as_floats(const lf::Constant& value) {
  std::vector<float> out(value.bytes.size() / sizeof(float));
  std::memcpy(out.data(), value.bytes.data(), value.bytes.size());
  return out;
}
/// The node of a text like `y = Slice<axis = 1>(a, b)`.
std::optional<lf::Constant> run(const std::string& node, const std::vector<lf::Constant>& inputs) {
  pb::NodeProto parsed;
  pb::OnnxParser parser(node.c_str());
  REQUIRE(parser.Parse(parsed).IsOK());
  std::vector<const lf::Constant*> pointers;
  for (const lf::Constant& input : inputs)
    pointers.push_back(input.type.dtype == DType::Undefined ? nullptr : &input);
  return lf::evaluate(parsed, pointers);
}
void check(const std::optional<lf::Constant>& value, const Ints& dims, const Ints& numbers) {
  REQUIRE(value);
  CHECK(value->type.dims == dims);
  CHECK(value->integers().value_or(Ints{-999}) == numbers);
}

}  // namespace

TEST_CASE("a slice follows ONNX's rules for starts, ends, axes and steps in both forms") {
  const auto data = ints({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  check(run("y = Slice(d, s, e, a, t)",
            {data, ints({1}, {1}), ints({1}, {3}), ints({1}, {1}), ints({1}, {1})}),
        {2, 2}, {1, 2, 5, 6});
  check(run("y = Slice(d, s, e, a, t)",
            {data, ints({1}, {-1}), ints({1}, {-99}), ints({1}, {-1}), ints({1}, {-2})}),
        {2, 2}, {3, 1, 7, 5});
  check(run("y = Slice<starts = [0], ends = [9223372036854775807], axes = [0]>(d)", {data}), {2, 4},
        {0, 1, 2, 3, 4, 5, 6, 7});
  // To the front, as ONNX Runtime takes it.
  for (const std::int64_t greatest :
       {std::int64_t{9223372036854775807}, std::int64_t{2147483647}}) {
    check(run("y = Slice(d, s, e, a, t)", {ints({3}, {1, 2, 3}), ints({1}, {-1}),
                                           ints({1}, {greatest}), ints({1}, {0}), ints({1}, {-1})}),
          {3}, {3, 2, 1});
  }
  check(run("y = Slice(d, s, e)", {data, ints({2}, {1, 3}), ints({2}, {9, 3})}), {1, 0}, {});
  CHECK_FALSE(run("y = Slice(d, s, e, a, t)",
                  {data, ints({1}, {1}), ints({1}, {3}), ints({1}, {1}), ints({1}, {0})}));
  CHECK_FALSE(run("y = Slice(d, s, e, a)", {data, ints({1}, {1}), ints({1}, {3}), ints({1}, {5})}));
}

TEST_CASE("concat joins along any axis and refuses parts that do not fit") {
  check(run("y = Concat<axis = 0>(a, b)", {ints({1}, {1}), ints({2}, {2, 3})}), {3}, {1, 2, 3});
  check(run("y = Concat<axis = -1>(a, b)", {ints({2, 1}, {1, 2}), ints({2, 2}, {3, 4, 5, 6})}),
        {2, 3}, {1, 3, 4, 2, 5, 6});
  CHECK_FALSE(run("y = Concat<axis = 0>(a, b)", {ints({1}, {1}), floats({1}, {1})}));
  CHECK_FALSE(run("y = Concat<axis = 0>(a, b)", {ints({1, 2}, {1, 2}), ints({1, 3}, {1, 2, 3})}));
  CHECK_FALSE(run("y = Concat<axis = 1>(a)", {ints({2}, {1, 2})}));
}

TEST_CASE("gather takes negative indices and refuses those outside") {
  const auto data = ints({3, 2}, {0, 1, 2, 3, 4, 5});
  check(run("y = Gather<axis = 0>(d, i)", {data, ints({}, {-1})}), {2}, {4, 5});
  check(run("y = Gather<axis = 1>(d, i)", {data, ints({2}, {1, 0})}), {3, 2}, {1, 0, 3, 2, 5, 4});
  CHECK_FALSE(run("y = Gather<axis = 0>(d, i)", {data, ints({1}, {3})}));
  CHECK_FALSE(run("y = Gather<axis = 2>(d, i)", {data, ints({1}, {0})}));
}

TEST_CASE("shapes are changed without touching the values") {
  const auto data = ints({1, 3, 1}, {7, 8, 9});
  check(run("y = Squeeze(d)", {data}), {3}, {7, 8, 9});
  check(run("y = Squeeze(d, a)", {data, ints({1}, {-1})}), {1, 3}, {7, 8, 9});
  check(run("y = Squeeze<axes = [0]>(d)", {data}), {3, 1}, {7, 8, 9});
  CHECK_FALSE(run("y = Squeeze(d, a)", {data, ints({1}, {1})}));
  check(run("y = Unsqueeze(d, a)", {ints({2}, {1, 2}), ints({2}, {0, -1})}), {1, 2, 1}, {1, 2});
  check(run("y = Unsqueeze<axes = [1]>(d)", {ints({2}, {1, 2})}), {2, 1}, {1, 2});
  CHECK_FALSE(run("y = Unsqueeze(d, a)", {ints({2}, {1, 2}), ints({2}, {0, 0})}));
  check(run("y = Reshape(d, s)", {ints({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2}, {-1, 2})}), {3, 2},
        {1, 2, 3, 4, 5, 6});
  check(run("y = Reshape(d, s)", {ints({2, 3}, {1, 2, 3, 4, 5, 6}), ints({3}, {0, 1, 3})}),
        {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  CHECK_FALSE(run("y = Reshape(d, s)", {data, ints({2}, {-1, -1})}));
  CHECK_FALSE(run("y = Reshape(d, s)", {data, ints({1}, {4})}));
}

TEST_CASE("transpose reverses without a permutation") {
  const auto data = ints({2, 3}, {0, 1, 2, 3, 4, 5});
  check(run("y = Transpose(d)", {data}), {3, 2}, {0, 3, 1, 4, 2, 5});
  check(run("y = Transpose<perm = [0, 1]>(d)", {data}), {2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK_FALSE(run("y = Transpose<perm = [0, 0]>(d)", {data}));
}

TEST_CASE("casts round and cut as ONNX does, and leave undefined ones alone") {
  check(run("y = Cast<to = 7>(d)", {floats({2}, {1.9F, -1.9F})}), {2}, {1, -1});
  check(run("y = Cast<to = 6>(d)", {ints({1}, {std::int64_t{1} << 33})}), {1}, {0});
  const auto real = run("y = Cast<to = 1>(d)", {ints({2}, {3, -4})});
  REQUIRE(real);
  CHECK(as_floats(*real) == std::vector<float>{3, -4});
  const auto narrow = run("y = Cast<to = 16>(d)",
                          {floats({3}, {1.0F, 1.00390625F, 1.01171875F})});  // ties go to even
  REQUIRE(narrow);
  CHECK(narrow->bytes == std::string("\x80\x3f\x80\x3f\x82\x3f", 6));
  CHECK_FALSE(run("y = Cast<to = 7>(d)", {floats({1}, {1e30F})}));
  CHECK_FALSE(run("y = Cast<to = 9>(d)", {floats({1}, {1})}));
}

TEST_CASE("products and comparisons broadcast") {
  check(run("y = Mul(a, b)", {ints({2, 1}, {2, 3}), ints({2}, {10, 100})}), {2, 2},
        {20, 200, 30, 300});
  check(run("y = Equal(a, b)", {ints({2}, {1, 2}), ints({}, {2})}), {2}, {0, 1});
  CHECK_FALSE(run("y = Mul(a, b)", {ints({2}, {1, 2}), ints({3}, {1, 2, 3})}));
  const auto condition = run("y = Equal(a, b)", {ints({2}, {1, 2}), ints({}, {2})});
  check(run("y = Where(c, a, b)", {*condition, ints({}, {7}), ints({2, 1}, {8, 9})}), {2, 2},
        {8, 7, 9, 7});
}

TEST_CASE("integers are added, subtracted and divided as engines do, floats are left alone") {
  check(run("y = Add(a, b)", {ints({2}, {1, -2}), ints({}, {5})}), {2}, {6, 3});
  check(run("y = Sub(a, b)", {ints({2}, {1, -2}), ints({}, {5})}), {2}, {-4, -7});
  check(run("y = Div(a, b)", {ints({3}, {7, -7, 770}), ints({}, {3})}), {3}, {2, -2, 256});
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  check(run("y = Sub(a, b)", {ints({1}, {kLeast}), ints({1}, {1})}), {1},
        {std::numeric_limits<std::int64_t>::max()});
  CHECK_FALSE(run("y = Div(a, b)", {ints({2}, {1, 2}), ints({2}, {1, 0})}));
  CHECK_FALSE(run("y = Div(a, b)", {ints({1}, {kLeast}), ints({1}, {-1})}));
  CHECK_FALSE(run("y = Add(a, b)", {floats({1}, {1}), floats({1}, {2})}));
}

TEST_CASE("the greatest and the least of any number of integers broadcast") {
  check(run("y = Max(a, b)", {ints({3}, {1, -2, 5}), ints({3}, {0, 3, 5})}), {3}, {1, 3, 5});
  check(run("y = Min(a, b, c)", {ints({2, 1}, {4, 9}), ints({2}, {7, 3}), ints({}, {6})}), {2, 2},
        {4, 3, 6, 3});
  check(run("y = Max(a)", {ints({2}, {1, 2})}), {2}, {1, 2});
  CHECK_FALSE(run("y = Max(a, b)", {ints({2}, {1, 2}), ints({3}, {1, 2, 3})}));
  CHECK_FALSE(run("y = Max(a, b)", {ints({1}, {1}), floats({1}, {2})}));
  CHECK_FALSE(run("y = Min(a, b)", {floats({1}, {1}), floats({1}, {2})}));
}

TEST_CASE("expand broadcasts both ways, and one element is carried once") {
  check(run("y = Expand(d, s)", {ints({2, 1}, {1, 2}), ints({1}, {3})}), {2, 3},
        {1, 1, 1, 2, 2, 2});
  check(run("y = Expand(d, s)", {ints({2}, {1, 2}), ints({2}, {2, 1})}), {2, 2}, {1, 2, 1, 2});
  check(run("y = Expand(d, s)", {ints({1}, {7}), ints({1}, {0})}), {0}, {});
  const auto huge = run("y = Expand(d, s)", {ints({}, {7}), ints({2}, {10000, 10000})});
  REQUIRE(huge);
  CHECK(huge->bytes.size() == 8);
  CHECK(huge->size() == 800000000);
  check(run("y = Slice(d, s, e)", {*huge, ints({2}, {0, 0}), ints({2}, {1, 2})}), {1, 2}, {7, 7});
  const auto mask = run("y = Equal(a, b)", {ints({2}, {1, 2}), ints({}, {2})});
  check(run("y = Expand(d, s)", {*mask, ints({2}, {2, 2})}), {2, 2}, {0, 1, 0, 1});
  CHECK_FALSE(run("y = Expand(d, s)", {ints({2}, {1, 2}), ints({1}, {3})}));
  CHECK_FALSE(run("y = Expand(d, s)", {ints({2}, {1, 2}), ints({1}, {-1})}));
  CHECK_FALSE(run("y = Expand(d, s)", {floats({1}, {1}), ints({1}, {2})}));
}

TEST_CASE("a range of integers counts up and down and may be empty") {
  const auto range = [](std::int64_t start, std::int64_t limit, std::int64_t delta) {
    return run("y = Range(a, b, c)", {ints({}, {start}), ints({}, {limit}), ints({}, {delta})});
  };
  check(range(0, 5, 2), {3}, {0, 2, 4});
  check(range(10, 4, -3), {2}, {10, 7});
  check(range(3, 3, 1), {0}, {});
  check(range(3, 0, 1), {0}, {});
  CHECK_FALSE(range(0, 5, 0));
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
  CHECK_FALSE(range(kLeast, kGreatest, 1));
  CHECK_FALSE(range(0, kGreatest, 1));
  CHECK_FALSE(range(0, 5, kLeast));
  check(range(kGreatest - 1, kGreatest, 2), {1}, {kGreatest - 1});
  CHECK_FALSE(run("y = Range(a, b, c)", {floats({}, {0}), floats({}, {3}), floats({}, {1})}));
  CHECK_FALSE(run("y = Range(a, b, c)", {ints({2}, {0, 1}), ints({}, {3}), ints({}, {1})}));
}

TEST_CASE("a large constant shape costs one element, however it is moved") {
  const auto huge =
      run("y = ConstantOfShape<value = float[1] {2.5}>(s)", {ints({2}, {100000, 4000})});
  REQUIRE(huge);
  CHECK(huge->repeated);
  CHECK(huge->size() == 1600000000);
  CHECK(huge->bytes.size() == 4);
  const auto moved = run("y = Transpose(d)", {*huge});
  REQUIRE(moved);
  CHECK(moved->type.dims == Ints{4000, 100000});
  CHECK(moved->repeated);
  const auto part = run("y = Slice(d, s, e)", {*huge, ints({2}, {0, 0}), ints({2}, {1, 3})});
  REQUIRE(part);
  CHECK(as_floats(part->written_out()) == std::vector<float>{2.5F, 2.5F, 2.5F});
  CHECK_FALSE(run("y = ConstantOfShape(s)", {ints({2}, {1 << 30, 1 << 30})}));
  CHECK_FALSE(run("y = ConstantOfShape(s)", {ints({1}, {-1})}));
}

TEST_CASE("shape arithmetic in a model is folded into the layers that use it") {
  OnnxBench bench;
  const auto analysis = bench.analyze(graph_model(R"((float[batch, 4, 6] x) => (float[a, b] y) {
    s = Shape(x)
    n = Gather<axis = 0>(s, zero)
    u = Unsqueeze(n, axes)
    full = Concat<axis = 0>(u, rest)
    y = Reshape(x, full)
    zero = Constant<value_int = 0>()
    axes = Constant<value_ints = [0]>()
    rest = Constant<value_ints = [-1]>()
  })"),
                                      {{"batch", 3}});
  const auto& reshape = layer_named(analysis, "Reshape_y");
  CHECK(reshape.input_names == std::vector<std::string>{"x"});
  CHECK(reshape.outputs[0].dims == Ints{3, 24});
  const auto module = bench.module(reshape.module);
  REQUIRE(module.graph().initializer_size() == 1);
  CHECK(lf::read_constant(module.graph().initializer(0))->integers() == Ints{3, -1});
  // How PyTorch writes chunk(): a Slice whose end is no constant is refused by some providers.
  const auto chunk = bench.analyze(graph_model(R"((float[batch, 768] x) => (float[a, b] y) {
    s = Shape(x)
    n = Gather<axis = 0>(s, one)
    more = Add(n, two)
    third = Div(more, three)
    y = Slice(x, zero, third, one)
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    two = Constant<value_ints = [2]>()
    three = Constant<value_ints = [3]>()
  })"));
  CHECK(layer_named(chunk, "Slice_y").input_names == std::vector<std::string>{"x"});
  // How PyTorch writes expand(-1, n) and arange: the index layer keeps nothing of the arithmetic.
  const auto index = bench.analyze(graph_model(R"((float[batch, 6] x) => (float[a] y) {
    s = Shape(x)
    n = Gather<axis = 0>(s, zero)
    m = Max(n, one)
    all = Range(zero, m, one)
    col = Unsqueeze(all, axes)
    shape = Concat<axis = 0>(two, ones)
    wide = Expand(col, shape)
    y = GatherND(x, wide)
    zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    axes = Constant<value_ints = [1]>()
    two = Constant<value_ints = [1]>()
    ones = Constant<value_ints = [2]>()
  })"),
                                   {{"batch", 3}});
  CHECK(layer_named(index, "GatherND_y").input_names == std::vector<std::string>{"x"});
  CHECK(layer_named(index, "Range_all").input_names.empty());
  // What is folded for its readers is still a layer of its own.
  CHECK(layer_named(analysis, "Shape_s").input_names == std::vector<std::string>{"x"});
}
