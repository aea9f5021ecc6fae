#include "worker/onnx/input_rules.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

namespace layerfarm::worker::onnx {
namespace {

using Ints = std::vector<std::int64_t>;
using domain::DType;

/// One operator's input: shorthand for all that the rules below ask.
struct Site {
  const pb::NodeProto& node;
  int place;
  const Surroundings& around;

  [[nodiscard]] const ValueType* input(int i) const {
    return i < node.input_size() && !node.input(i).empty() ? around.type(node.input(i)) : nullptr;
  }
  [[nodiscard]] const Constant* constant(int i) const {
    return i < node.input_size() && !node.input(i).empty() ? around.constant(node.input(i))
                                                           : nullptr;
  }
  [[nodiscard]] const ValueType* output(int i) const {
    return i < node.output_size() && !node.output(i).empty() ? around.type(node.output(i))
                                                             : nullptr;
  }
  /// Known dims, else nothing.
  [[nodiscard]] std::optional<Ints> dims(const ValueType* type) const {
    return type != nullptr && type->fixed() ? type->dims : std::nullopt;
  }
  /// How many numbers the input holds; 0 when that is not known.
  [[nodiscard]] std::size_t count() const {
    const auto own = dims(input(place));
    return own ? static_cast<std::size_t>(element_count(*own).value_or(0)) : 0;
  }
  [[nodiscard]] bool is_integer() const {
    return input(place) != nullptr && domain::is_integer(input(place)->dtype);
  }
  [[nodiscard]] std::int64_t axis(std::int64_t fallback, std::size_t rank) const {
    const std::int64_t axis = int_attribute(node, "axis", fallback);
    return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  }
};

using Answer = std::optional<Demand>;
using Rule = Answer (*)(const Site&);

Answer range(double lo, double hi) { return Demand{.lo = lo, .hi = hi}; }
Answer index_below(std::int64_t size) {
  return range(0, static_cast<double>(std::max<std::int64_t>(size, 1)));
}
Answer exactly(const Ints& values) { return Demand{.values = {values.begin(), values.end()}}; }
Answer exactly(std::int64_t value) { return exactly(Ints{value}); }

std::int64_t at(const Ints& dims, std::int64_t axis) {
  return axis >= 0 && axis < static_cast<std::int64_t>(dims.size())
             ? dims[static_cast<std::size_t>(axis)]
             : 1;
}

/// 0, 1, 2 ...: axes that are all different.
Ints first_axes(std::size_t count) {
  Ints out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

// --- indices
// ---------------------------------------------------------------------------------------------------------

Answer along_axis(const Site& site) {
  const auto data = site.dims(site.input(0));
  return index_below(data ? at(*data, site.axis(0, data->size())) : 1);
}

/// Up to so many numbers are listed one by one.
constexpr std::size_t kMostListed = 65536;

/// Every index once: with one twice, the result would depend on the order in which an engine
/// writes.
Answer scatter_elements(const Site& site) {
  const auto data = site.dims(site.input(0));
  const auto own = site.dims(site.input(1));
  if (!data || !own || data->size() != own->size()) return along_axis(site);
  const std::int64_t axis = site.axis(0, data->size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(own->size()) ||
      at(*own, axis) > at(*data, axis) || site.count() > kMostListed)
    return along_axis(site);
  std::int64_t inner = 1;
  for (auto i = static_cast<std::size_t>(axis) + 1; i < own->size(); ++i) inner *= (*own)[i];
  Ints values;
  for (std::size_t i = 0; i < site.count(); ++i)
    values.push_back(static_cast<std::int64_t>(i) / inner % at(*own, axis));
  return exactly(values);
}

Answer gather_nd(const Site& site) {
  const auto data = site.dims(site.input(0));
  const auto own = site.dims(site.input(1));
  if (!data || !own || own->empty()) return index_below(1);
  const auto first = static_cast<std::size_t>(
      std::max<std::int64_t>(int_attribute(site.node, "batch_dims", 0), 0));
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = first; i < data->size() && i < first + static_cast<std::size_t>(own->back());
       ++i)
    smallest = std::min(smallest, (*data)[i]);
  return index_below(smallest == std::numeric_limits<std::int64_t>::max() ? 1 : smallest);
}

Answer scatter_nd(const Site& site) {
  const auto data = site.dims(site.input(0));
  const auto own = site.dims(site.input(1));
  if (!data || !own || own->empty() || own->back() <= 0 ||
      own->back() > static_cast<std::int64_t>(data->size()))
    return gather_nd(site);
  const auto depth = static_cast<std::size_t>(own->back());
  const Ints head(data->begin(), data->begin() + static_cast<std::ptrdiff_t>(depth));
  const auto tuples = static_cast<std::int64_t>(site.count() / depth);
  if (element_count(head).value_or(0) < tuples || site.count() > kMostListed)
    return gather_nd(site);
  Ints values;
  for (std::int64_t tuple = 0; tuple < tuples; ++tuple) {
    Ints place(depth, 0);
    std::int64_t rest = tuple;
    for (std::size_t axis = depth; axis-- > 0;) {
      place[axis] = rest % head[axis];
      rest /= head[axis];
    }
    values.insert(values.end(), place.begin(), place.end());
  }
  return exactly(values);
}

std::int64_t one_hot_depth(const Site& site) {
  if (const Constant* depth = site.constant(1);
      depth != nullptr && depth->integers() && !depth->integers()->empty())
    return depth->integers()->front();
  const auto out = site.dims(site.output(0));
  return out ? at(*out, site.axis(-1, out->size())) : 2;
}
Answer one_hot_index(const Site& site) { return index_below(one_hot_depth(site)); }
Answer one_hot_count(const Site& site) { return exactly(one_hot_depth(site)); }

Answer class_index(const Site& site) {
  const auto scores = site.dims(site.input(0));
  return index_below(scores ? at(*scores, 1) : 1);
}

Answer flat_index(const Site& site) {
  const auto out = site.dims(site.output(0));
  return index_below(out ? element_count(*out).value_or(1) : 1);
}

Answer batch_index(const Site& site) {
  const auto data = site.dims(site.input(0));
  return index_below(data ? at(*data, 0) : 1);
}

Answer last_axis_index(const Site& site) {
  const auto data = site.dims(site.input(0));
  return index_below(data && !data->empty() ? data->back() : 1);
}

Answer table_rows(const Site& site, int table) {
  const auto rows = site.dims(site.input(table));
  return index_below(rows ? at(*rows, 0) : 1);
}

// --- lengths
// ---------------------------------------------------------------------------------------------------------

Answer sequence_lengths(const Site& site) {
  const auto data = site.dims(site.input(0));
  const std::int64_t axis = site.node.op_type() == "ReverseSequence"
                                ? int_attribute(site.node, "time_axis", 0)
                                : int_attribute(site.node, "layout", 0);
  return range(1, data ? static_cast<double>(at(*data, axis) + 1) : 2);
}

// --- shapes
// ----------------------------------------------------------------------------------------------------------

/// The output's own dims where they are known.
Answer output_dims(const Site& site) {
  const auto out = site.dims(site.output(0));
  if (out && out->size() == site.count()) return exactly(*out);
  return exactly(Ints(site.count(), 1));
}

Answer reshape_shape(const Site& site) {
  const auto out = site.dims(site.output(0));
  if (out && out->size() == site.count()) return exactly(*out);
  Ints flat(site.count(), 1);
  if (!flat.empty()) flat[0] = -1;
  return exactly(flat);
}

Answer expand_shape(const Site& site) {
  const auto out = site.dims(site.output(0));
  if (out && out->size() == site.count()) return exactly(*out);
  return exactly(Ints(site.count(), 1));  // ones broadcast to whatever the data is
}

std::optional<std::pair<Ints, Ints>> data_and_output(const Site& site) {
  auto data = site.dims(site.input(0));
  auto out = site.dims(site.output(0));
  if (!data || !out || data->size() != out->size()) return std::nullopt;
  return std::pair(std::move(*data), std::move(*out));
}

Answer tile_repeats(const Site& site) {
  const auto both = data_and_output(site);
  Ints repeats(site.count(), 1);
  for (std::size_t i = 0; both && i < repeats.size() && i < both->first.size(); ++i) {
    if (both->first[i] > 0) repeats[i] = both->second[i] / both->first[i];
  }
  return exactly(repeats);
}

/// Axes of a Slice or Pad; where they are an input too: those whose size changes, then the others.
Ints moved_axes(const Site& site, std::size_t count) {
  if (const Constant* axes = site.constant(3)) return axes->integers().value_or(Ints());
  if (site.node.input_size() <= 3 || site.node.input(3).empty()) return first_axes(count);
  const auto both = data_and_output(site);
  if (!both) return first_axes(count);
  Ints axes;
  for (const bool changed : {true, false}) {
    for (std::size_t i = 0; i < both->first.size(); ++i) {
      if ((both->first[i] != both->second[i]) == changed && axes.size() < count)
        axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  return axes;
}

Answer pad_amounts(const Site& site) {
  const auto both = data_and_output(site);
  const std::size_t half = site.count() / 2;
  Ints pads(site.count(), 0);
  if (!both) return exactly(pads);
  const Ints axes = moved_axes(site, half);
  for (std::size_t i = 0; i < half && i < axes.size(); ++i) {
    const std::int64_t axis =
        axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(both->first.size()) : axes[i];
    pads[half + i] = at(both->second, axis) - at(both->first, axis);
  }
  return exactly(pads);
}

Answer pad_axes(const Site& site) { return exactly(moved_axes(site, site.count())); }

Answer slice_input(const Site& site) {
  const std::size_t count = site.count();
  const Ints axes = moved_axes(site, count);
  if (site.place == 3) return exactly(axes);
  const auto both = data_and_output(site);
  const auto fixed = [&](int place) {
    return site.constant(place) != nullptr ? site.constant(place)->integers() : std::nullopt;
  };
  const auto starts = fixed(1);
  const auto steps = fixed(4);
  Ints out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t step = steps && i < steps->size() ? (*steps)[i] : 1;
    std::int64_t axis = i < axes.size() ? axes[i] : static_cast<std::int64_t>(i);
    if (both && axis < 0) axis += static_cast<std::int64_t>(both->first.size());
    const std::int64_t size = both ? at(both->first, axis) : 1;
    const std::int64_t wanted = both ? at(both->second, axis) : 1;
    std::int64_t start = step > 0 ? 0 : size - 1;
    if (starts && i < starts->size()) start = (*starts)[i] < 0 ? (*starts)[i] + size : (*starts)[i];
    if (site.place == 1) out.push_back(start);
    if (site.place == 4) out.push_back(1);
    if (site.place == 2) {
      const std::int64_t end = start + wanted * step;
      out.push_back(
          end < 0
              ? -size - 1
              : end);  // a negative end counts from the back, so "before the first" is written so
    }
  }
  return exactly(out);
}

Answer resize_input(const Site& site) {
  const auto both = data_and_output(site);
  const std::size_t count = site.count();
  const bool old = site.node.op_type() == "Upsample" || site.node.input_size() <= 2;
  if (!old && site.place == 1) {  // roi: starts, then ends, as fractions
    Ints all(count, 0);
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(count / 2), all.end(), 1);
    return exactly(all);
  }
  Ints axes = ints_attribute(site.node, "axes");
  if (axes.empty()) axes = first_axes(count);
  Demand out;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t axis = i < axes.size() ? axes[i] : static_cast<std::int64_t>(i);
    if (both && axis < 0) axis += static_cast<std::int64_t>(both->first.size());
    const auto from =
        both ? static_cast<double>(std::max<std::int64_t>(at(both->first, axis), 1)) : 1.0;
    const auto to = both ? static_cast<double>(at(both->second, axis)) : 1.0;
    out.values.push_back(!old && site.place == 3 ? to : to / from);
  }
  return out;
}

Answer split_sizes(const Site& site) {
  const auto data = site.dims(site.input(0));
  const std::int64_t axis = site.axis(0, data ? data->size() : 0);
  Ints sizes;
  for (int i = 0; i < site.node.output_size(); ++i) {
    const auto part = site.dims(site.output(i));
    if (part) sizes.push_back(at(*part, axis));
  }
  if (sizes.size() == site.count()) return exactly(sizes);
  const auto count = static_cast<std::int64_t>(site.count());
  if (!data || count == 0) return std::nullopt;
  sizes.assign(site.count(), at(*data, axis) / count);
  sizes.back() += at(*data, axis) % count;
  return exactly(sizes);
}

/// Places in `longer` that are not part of `shorter`.
std::optional<Ints> left_out(const Ints& longer, const Ints& shorter) {
  Ints out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < longer.size(); ++i) {
    if (next < shorter.size() && longer[i] == shorter[next]) {
      ++next;
    } else {
      out.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (next != shorter.size()) return std::nullopt;
  return out;
}

Answer squeezed_axes(const Site& site) {
  const auto data = site.dims(site.input(0));
  const auto out = site.dims(site.output(0));
  if (data && out) {
    const bool squeeze = site.node.op_type() == "Squeeze";
    const auto axes = squeeze ? left_out(*data, *out) : left_out(*out, *data);
    if (axes && axes->size() == site.count()) return exactly(*axes);
  }
  return exactly(first_axes(site.count()));
}

Answer reduced_axes(const Site& site) {
  const auto data = site.dims(site.input(0));
  const auto out = site.dims(site.output(0));
  if (data && out && out->size() < data->size()) {
    const auto axes = left_out(*data, *out);
    if (axes && axes->size() == site.count()) return exactly(*axes);
  }
  if (data && out && out->size() == data->size()) {
    Ints axes;
    for (const bool changed : {true, false}) {
      for (std::size_t i = 0; i < data->size(); ++i) {
        const bool fits = changed ? (*data)[i] != (*out)[i] : (*data)[i] == 1;
        if (fits && axes.size() < site.count()) axes.push_back(static_cast<std::int64_t>(i));
      }
    }
    if (axes.size() == site.count()) return exactly(axes);
  }
  return exactly(first_axes(site.count()));
}

Answer crop_shape(const Site& site) {
  const auto both = data_and_output(site);
  Ints axes = ints_attribute(site.node, "axes");
  if (axes.empty()) axes = first_axes(site.count());
  Ints out;
  for (std::size_t i = 0; i < site.count(); ++i) {
    std::int64_t axis = i < axes.size() ? axes[i] : 0;
    if (both && axis < 0) axis += static_cast<std::int64_t>(both->first.size());
    out.push_back(both ? at(both->second, axis) : 1);
  }
  return exactly(out);
}

Answer spatial_dims(const Site& site) {
  const auto out = site.dims(site.output(0));
  Ints values;
  for (std::size_t i = 0; i < site.count(); ++i)
    values.push_back(out ? at(*out, static_cast<std::int64_t>(i) + 2) : 1);
  return exactly(values);
}

Answer grid_size(const Site& site) {
  const auto out = site.dims(site.output(0));
  Ints values(site.count(), 1);
  if (out && !out->empty()) {
    values[0] = (*out)[0];
    for (std::size_t i = 2; i < values.size(); ++i)
      values[i] = at(*out, static_cast<std::int64_t>(i) - 1);
  }
  return exactly(values);
}

// --- counts
// ----------------------------------------------------------------------------------------------------------

Answer top_k(const Site& site) {
  const auto out = site.dims(site.output(0));
  return exactly(out ? at(*out, site.axis(-1, out->size())) : 1);
}

Answer range_input(const Site& site) {
  const auto out = site.dims(site.output(0));
  const std::int64_t steps = out && !out->empty() ? (*out)[0] : 8;
  const auto fixed = [&](int place, std::int64_t fallback) {
    const Constant* value = site.constant(place);
    const auto numbers = value != nullptr ? value->integers() : std::nullopt;
    return numbers && !numbers->empty() ? numbers->front() : fallback;
  };
  const std::int64_t delta = fixed(2, 1);
  if (site.place == 0)
    return exactly(site.constant(1) != nullptr ? fixed(1, 0) - steps * delta : 0);
  if (site.place == 1) return exactly(fixed(0, 0) + steps * delta);
  return exactly(1);
}

Answer loop_input(const Site& site) {
  if (site.place == 1) return exactly(1);
  for (int i = site.node.input_size() - 2; i < site.node.output_size(); ++i) {
    const auto scanned = i >= 0 ? site.dims(site.output(i)) : std::nullopt;
    if (scanned && !scanned->empty()) return exactly((*scanned)[0]);
  }
  return exactly(2);
}

Answer output_length(const Site& site) {
  const auto out = site.dims(site.output(0));
  return exactly(out && !out->empty() ? (*out)[0] : 8);
}

Answer mel_input(const Site& site) {
  const auto out = site.dims(site.output(0));
  const std::int64_t bins = out ? at(*out, 1) : 8;
  const std::int64_t length = out ? 2 * (at(*out, 0) - 1) : 16;
  const Ints usual = {bins, length, 8192, 0, 4096};
  return exactly(usual[static_cast<std::size_t>(site.place)]);
}

Answer dft_length(const Site& site) {
  const auto both = data_and_output(site);
  const std::int64_t axis =
      site.axis(site.node.input_size() > 2 ? -2 : 1, both ? both->first.size() : 0);
  return exactly(both ? std::max(at(both->first, axis), at(both->second, axis)) : 8);
}

Answer frame_step(const Site& site) {
  const auto signal = site.dims(site.input(0));
  const auto out = site.dims(site.output(0));
  const auto window = site.dims(site.input(2));
  if (!signal || !out || !window || at(*out, 1) < 2) return exactly(8);
  return exactly(std::max<std::int64_t>((at(*signal, 1) - at(*window, 0)) / (at(*out, 1) - 1), 1));
}
Answer frame_length(const Site& site) {
  const auto window = site.dims(site.input(2));
  return exactly(window && !window->empty() ? (*window)[0] : 16);
}

// --- numbers that some engines do not survive
// ------------------------------------------------------------------------

Answer divisor(const Site& site) { return site.is_integer() ? range(1, 40) : std::nullopt; }

Answer shift_amount(const Site& site) {
  const ValueType* own = site.input(site.place);
  return own != nullptr ? range(0, static_cast<double>(std::max(element_bits(own->dtype), 1U)))
                        : std::nullopt;
}

Answer zero(const Site& site) { return exactly(Ints(std::max<std::size_t>(site.count(), 1), 0)); }
Answer probability(const Site&) { return range(0, 1); }
Answer box_count(const Site&) { return exactly(8); }
Answer half(const Site& site) {
  return Demand{.values = std::vector<double>(std::max<std::size_t>(site.count(), 1), 0.5)};
}
Answer second_last_axis(const Site& site) {
  const auto data = site.dims(site.input(0));
  return exactly(data && data->size() >= 2 ? static_cast<std::int64_t>(data->size()) - 2 : 0);
}

Answer cache_rows(const Site& site) { return table_rows(site, 1); }
Answer cache_rows_of_contrib(const Site& site) { return table_rows(site, 2); }
Answer word_rows(const Site& site) { return table_rows(site, 2); }
Answer segment_rows(const Site& site) { return table_rows(site, 4); }

Answer write_index(const Site& site) {
  const auto past = site.dims(site.input(0));
  const auto update = site.dims(site.input(1));
  const std::int64_t axis = site.axis(-2, past ? past->size() : 0);
  return index_below(past && update ? at(*past, axis) - at(*update, axis) + 1 : 1);
}

/// How many keys and values of a padded cache are real.
Answer real_lengths(const Site& site) {
  const auto keys = site.dims(site.input(1));
  return range(1,
               keys && keys->size() >= 2 ? static_cast<double>((*keys)[keys->size() - 2] + 1) : 2);
}

/// A block shape that the data can have been made of: as many elements as the channels allow, as
/// many places as there are columns.
Answer block_shape(const Site& site) {
  const auto data = site.dims(site.input(0));
  const auto out = site.dims(site.output(0));
  const std::size_t rank = site.count();
  Ints block(rank, 1);
  if (!data || !out || data->size() != 3 || out->size() != rank + 2 || rank == 0 || (*out)[1] <= 0)
    return exactly(block);
  const std::int64_t elements = (*data)[1] / (*out)[1];
  const auto attribute = [&](const char* name, std::size_t i, std::int64_t fallback) {
    const Ints values = ints_attribute(site.node, name);
    return i < values.size() ? values[i] : fallback;
  };
  const std::function<bool(std::size_t, std::int64_t, std::int64_t)> fits =
      [&](std::size_t i, std::int64_t left, std::int64_t columns) {
        if (i == rank) return left == 1 && columns == (*data)[2];
        for (std::int64_t size = 1; size <= left; ++size) {
          if (left % size != 0) continue;
          const std::int64_t room = (*out)[i + 2] + attribute("pads", i, 0) +
                                    attribute("pads", i + rank, 0) -
                                    attribute("dilations", i, 1) * (size - 1) - 1;
          block[i] = size;
          if (room >= 0 &&
              fits(i + 1, left / size,
                   columns * (room / std::max<std::int64_t>(attribute("strides", i, 1), 1) + 1)))
            return true;
        }
        return false;
      };
  if (elements > 4096 || !fits(0, elements, 1)) block.assign(rank, 1);
  return exactly(block);
}

/// Operator (contrib ones with their domain) and place of the input.
using Key = std::pair<std::string, int>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<std::string>{}(key.first) * 31 + static_cast<std::size_t>(key.second);
  }
};

const std::unordered_map<Key, Rule, KeyHash>& rules() {
  static const std::unordered_map<Key, Rule, KeyHash> table = {
      {{"Gather", 1}, along_axis},
      {{"GatherElements", 1}, along_axis},
      {{"GatherND", 1}, gather_nd},
      {{"Scatter", 1}, scatter_elements},
      {{"ScatterElements", 1}, scatter_elements},
      {{"ScatterND", 1}, scatter_nd},
      {{"TensorScatter", 2}, write_index},
      {{"OneHot", 0}, one_hot_index},
      {{"OneHot", 1}, one_hot_count},
      {{"NegativeLogLikelihoodLoss", 1}, class_index},
      {{"SoftmaxCrossEntropyLoss", 1}, class_index},
      {{"MaxUnpool", 1}, flat_index},
      {{"MaxUnpool", 2}, output_dims},
      {{"RoiAlign", 2}, batch_index},
      {{"RotaryEmbedding", 3}, cache_rows},
      {{"ai.onnx.ml:ArrayFeatureExtractor", 1}, last_axis_index},
      {{"com.microsoft:RotaryEmbedding", 1}, cache_rows_of_contrib},
      {{"com.microsoft:EmbedLayerNormalization", 0}, word_rows},
      {{"com.microsoft:EmbedLayerNormalization", 1}, segment_rows},
      {{"ReverseSequence", 1}, sequence_lengths},
      {{"RNN", 4}, sequence_lengths},
      {{"GRU", 4}, sequence_lengths},
      {{"LSTM", 4}, sequence_lengths},
      {{"Reshape", 1}, reshape_shape},
      {{"Expand", 1}, expand_shape},
      {{"ConstantOfShape", 0}, output_dims},
      {{"Tile", 1}, tile_repeats},
      {{"Pad", 1}, pad_amounts},
      {{"Pad", 3}, pad_axes},
      {{"Slice", 1}, slice_input},
      {{"Slice", 2}, slice_input},
      {{"Slice", 3}, slice_input},
      {{"Slice", 4}, slice_input},
      {{"Upsample", 1}, resize_input},
      {{"Resize", 1}, resize_input},
      {{"Resize", 2}, resize_input},
      {{"Resize", 3}, resize_input},
      {{"Split", 1}, split_sizes},
      {{"SplitToSequence", 1}, split_sizes},
      {{"Squeeze", 1}, squeezed_axes},
      {{"Unsqueeze", 1}, squeezed_axes},
      {{"CenterCropPad", 1}, crop_shape},
      {{"Col2Im", 1}, spatial_dims},
      {{"Col2Im", 2}, block_shape},
      {{"Attention", 6}, real_lengths},
      {{"AffineGrid", 1}, grid_size},
      {{"TopK", 1}, top_k},
      {{"Range", 0}, range_input},
      {{"Range", 1}, range_input},
      {{"Range", 2}, range_input},
      {{"Loop", 0}, loop_input},
      {{"Loop", 1}, loop_input},
      {{"CumSum", 1}, zero},
      {{"CumProd", 1}, zero},
      {{"Trilu", 1}, zero},
      {{"Dropout", 1}, zero},
      {{"Dropout", 2}, zero},
      {{"NonMaxSuppression", 2}, box_count},
      {{"NonMaxSuppression", 3}, half},
      {{"NonMaxSuppression", 4}, zero},
      {{"HannWindow", 0}, output_length},
      {{"HammingWindow", 0}, output_length},
      {{"BlackmanWindow", 0}, output_length},
      {{"MelWeightMatrix", 0}, mel_input},
      {{"MelWeightMatrix", 1}, mel_input},
      {{"MelWeightMatrix", 2}, mel_input},
      {{"MelWeightMatrix", 3}, mel_input},
      {{"MelWeightMatrix", 4}, mel_input},
      {{"DFT", 1}, dft_length},
      {{"DFT", 2}, second_last_axis},
      {{"STFT", 1}, frame_step},
      {{"STFT", 3}, frame_length},
      {{"Bernoulli", 0}, probability},
      {{"Multinomial", 0}, probability},
      {{"Div", 1}, divisor},
      {{"Mod", 1}, divisor},
      {{"BitShift", 1}, shift_amount},
  };
  return table;
}

}  // namespace

std::optional<Demand> demand_of(const pb::NodeProto& node, int place, const Surroundings& around) {
  const std::string name =
      (in_default_domain(node) ? std::string() : node.domain() + ":") + node.op_type();
  const Site site{node, place, around};
  if (const auto rule = rules().find({name, place}); rule != rules().end())
    return rule->second(site);
  if (place == 1 && name.starts_with("Reduce")) return reduced_axes(site);
  return std::nullopt;
}

std::string passes_on(const pb::NodeProto& node, int place) {
  static const std::set<std::string> moves_first = {
      "Cast",   "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
      "Expand", "Tile",     "Slice",   "Gather",  "Split",   "Abs",       "GatherElements"};
  if (node.output_size() == 0 || !in_default_domain(node)) return {};
  if (place == 0 && moves_first.contains(node.op_type())) return node.output(0);
  if (node.op_type() == "Concat" || (node.op_type() == "Where" && place > 0)) return node.output(0);
  return {};
}

}  // namespace layerfarm::worker::onnx
