#include "worker/onnx/macs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace layerfarm::worker::onnx {
namespace {

using Json = nlohmann::ordered_json;
using Ints = std::vector<std::int64_t>;

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}
std::int64_t product(const Ints& dims, std::size_t from = 0) {
  std::int64_t out = 1;
  for (std::size_t i = from; i < dims.size(); ++i) out = times(out, dims[i]);
  return out;
}

/// What one kind of operator gives: the count, its own fields in order, the formula.
struct Count {
  std::int64_t macs = 0;
  Json fields = Json::object();
  std::string formula;
};

class Counter {
 public:
  Counter(const pb::NodeProto& node, const ValueTypes& types) : node_(node), types_(types) {}

  [[nodiscard]] std::optional<Count> count() const {
    const std::string& op = node_.op_type();
    if (op == "Conv" || op == "ConvInteger") return convolution(1);
    if (op == "QLinearConv") return convolution(3);
    if (op == "ConvTranspose") return transposed_convolution();
    if (op == "Gemm") return gemm();
    if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul") return matmul();
    if (op == "Einsum") return einsum();
    if (op == "RNN" || op == "GRU" || op == "LSTM") return recurrent();
    return std::nullopt;
  }

 private:
  [[nodiscard]] const ValueType* type(const std::string& name) const {
    const auto found = types_.find(name);
    return found != types_.end() && found->second.fixed() ? &found->second : nullptr;
  }
  [[nodiscard]] const ValueType* input(int i) const {
    return i < node_.input_size() ? type(node_.input(i)) : nullptr;
  }
  [[nodiscard]] const ValueType* output() const {
    return node_.output_size() > 0 ? type(node_.output(0)) : nullptr;
  }
  [[nodiscard]] static std::string name(const ValueType* type) {
    return domain::dtype_name(type->dtype);
  }

  [[nodiscard]] std::optional<Count> convolution(int weight_place) const {
    const ValueType* in = input(0);
    const ValueType* weight = input(weight_place);
    const ValueType* out = output();
    if (in == nullptr || weight == nullptr || out == nullptr) return std::nullopt;
    const std::int64_t each = product(*weight->dims, 1);
    return Count{times(product(*out->dims), each),
                 {{"output_shape", *out->dims},
                  {"weight_shape", *weight->dims},
                  {"per_element_macs", each},
                  {"input_dtype", name(in)},
                  {"weight_dtype", name(weight)},
                  {"output_dtype", name(out)}},
                 "prod(output_shape) * prod(weight_shape[1:])"};
  }

  [[nodiscard]] std::optional<Count> transposed_convolution() const {
    const ValueType* in = input(0);
    const ValueType* weight = input(1);
    const ValueType* out = output();
    if (in == nullptr || weight == nullptr || out == nullptr) return std::nullopt;
    const std::int64_t each = product(*weight->dims, 1);
    return Count{times(product(*in->dims), each),
                 {{"input_shape", *in->dims},
                  {"weight_shape", *weight->dims},
                  {"per_element_macs", each},
                  {"input_dtype", name(in)},
                  {"weight_dtype", name(weight)},
                  {"output_dtype", name(out)}},
                 "prod(input_shape) * prod(weight_shape[1:])"};
  }

  [[nodiscard]] std::optional<Count> gemm() const {
    const ValueType* a = input(0);
    const ValueType* b = input(1);
    const ValueType* out = output();
    if (a == nullptr || b == nullptr || out == nullptr || a->dims->size() != 2 ||
        b->dims->size() != 2)
      return std::nullopt;
    const std::int64_t trans_a = int_attribute(node_, "transA", 0);
    const std::int64_t trans_b = int_attribute(node_, "transB", 0);
    const std::int64_t m = (*a->dims)[trans_a != 0 ? 1 : 0];
    const std::int64_t k = (*a->dims)[trans_a != 0 ? 0 : 1];
    const std::int64_t n = (*b->dims)[trans_b != 0 ? 0 : 1];
    return Count{times(times(m, k), n),
                 {{"a_shape", *a->dims},
                  {"b_shape", *b->dims},
                  {"trans_a", trans_a},
                  {"trans_b", trans_b},
                  {"M", m},
                  {"K", k},
                  {"N", n},
                  {"a_dtype", name(a)},
                  {"b_dtype", name(b)},
                  {"output_dtype", name(out)}},
                 "M * K * N"};
  }

  [[nodiscard]] std::optional<Count> matmul() const {
    const ValueType* a = input(0);
    const ValueType* out = output();
    if (a == nullptr || out == nullptr || a->dims->empty()) return std::nullopt;
    const std::int64_t k = a->dims->back();
    return Count{times(product(*out->dims), k),
                 {{"output_shape", *out->dims},
                  {"K", k},
                  {"output_dtype", name(out)},
                  {"a_shape", *a->dims},
                  {"a_dtype", name(a)}},
                 "prod(output_shape) * K"};
  }

  [[nodiscard]] std::optional<Count> einsum() const {
    std::string equation = string_attribute(node_, "equation", "");
    std::erase_if(equation, [](unsigned char c) { return std::isspace(c) != 0; });
    const ValueType* out = output();
    if (equation.find("...") != std::string::npos || out == nullptr) return std::nullopt;
    Json sizes = Json::object();  // labels in the order of first appearance
    Json dtypes = Json::array();
    std::int64_t macs = 1;
    std::size_t at = 0;
    for (int i = 0; i < node_.input_size(); ++i) {
      const ValueType* operand = input(i);
      if (operand == nullptr) return std::nullopt;
      dtypes.push_back(name(operand));
      for (const std::int64_t dim : *operand->dims) {
        if (at >= equation.size() || !std::isalpha(static_cast<unsigned char>(equation[at])))
          return std::nullopt;
        const std::string label(1, equation[at++]);
        if (!sizes.contains(label)) {
          sizes[label] = dim;
        } else if (sizes[label] == 1) {
          sizes[label] = dim;  // a label of size 1 broadcasts
        }
      }
      if (i + 1 < node_.input_size() && (at >= equation.size() || equation[at++] != ','))
        return std::nullopt;
    }
    if (at < equation.size() && equation.substr(at, 2) != "->") return std::nullopt;
    for (const auto& [label, size] : sizes.items()) macs = times(macs, size.get<std::int64_t>());
    return Count{macs,
                 {{"equation", equation},
                  {"label_sizes", sizes},
                  {"input_dtypes", dtypes},
                  {"output_dtype", name(out)}},
                 "prod(distinct index-label sizes)"};
  }

  [[nodiscard]] std::optional<Count> recurrent() const {
    const ValueType* in = input(0);
    const ValueType* w = input(1);
    const ValueType* r = input(2);
    if (in == nullptr || w == nullptr || r == nullptr || in->dims->size() < 2) return std::nullopt;
    const bool batch_first = int_attribute(node_, "layout", 0) != 0;
    const std::int64_t sequence = (*in->dims)[batch_first ? 1 : 0];
    const std::int64_t batch = (*in->dims)[batch_first ? 0 : 1];
    const std::int64_t w_size = product(*w->dims);
    const std::int64_t r_size = product(*r->dims);
    const std::int64_t weights = w_size > std::numeric_limits<std::int64_t>::max() - r_size
                                     ? std::numeric_limits<std::int64_t>::max()
                                     : w_size + r_size;
    return Count{times(times(sequence, batch), weights),
                 {{"input_shape", *in->dims},
                  {"w_shape", *w->dims},
                  {"r_shape", *r->dims},
                  {"seq_length", sequence},
                  {"batch", batch},
                  {"input_dtype", name(in)},
                  {"w_dtype", name(w)},
                  {"r_dtype", name(r)}},
                 "seq_length * batch * (numel(W) + numel(R))"};
  }

  const pb::NodeProto& node_;
  const ValueTypes& types_;
};

}  // namespace

Macs count_macs(const pb::NodeProto& node, const ValueTypes& types) {
  if (!in_default_domain(node)) return {};
  const auto count = Counter(node, types).count();
  if (!count) return {};
  Json record = Json::object();
  if (!node.name().empty()) record["node_name"] = node.name();
  record["op_type"] = node.op_type();
  record["mac_count"] = count->macs;
  for (const auto& [key, value] : count->fields.items()) record[key] = value;
  record["formula"] = count->formula;
  return {count->macs, Json::array({record}).dump(-1, ' ', false, Json::error_handler_t::replace)};
}

}  // namespace layerfarm::worker::onnx
