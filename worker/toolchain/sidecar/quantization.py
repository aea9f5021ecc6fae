"""Static quantization by ONNX Runtime's own quantizer: MinMax, int8 activations and weights (docs/quantization.md).

Functions over models in memory, each testable by itself; `quantize_file` puts them together. Knows nothing of the
sidecar's requests. onnx, numpy and onnxruntime are imported by the functions that need them.
"""

import os
import shutil
import tempfile

QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")
# What `hybrid` takes in operator form; a layer or model with any other compute operator gets Q/DQ pairs.
OPERATOR_FORM = frozenset(
    "Conv Add Mul MatMul MaxPool AveragePool GlobalAveragePool Relu Clip LeakyRelu Sigmoid Softmax".split()
)
# Whose third input ONNX Runtime's quantizer takes for a bias.
BIASED = frozenset("Conv ConvTranspose Gemm InstanceNormalization LayerNormalization BatchNormalization".split())
SEED = 0


class CalibrationError(Exception):
    """The user's samples cannot be used; a reason for people."""


# --- looking at a model ----------------------------------------------------------------------------------------------


def driven_inputs(model):
    """The graph's inputs that are fed: old models list their constants as inputs too."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def nodes_of(graph):
    """All nodes, those of bodies too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from nodes_of(body)


def is_quantized(model):
    """Whether the model holds quantized parts already: a Q/DQ node, or an 8- or 16-bit integer constant, input or output."""
    from onnx import TensorProto

    small = {TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16}
    graph = model.graph
    return (
        any(node.op_type in QUANTIZERS for node in nodes_of(graph))
        or any(tensor.data_type in small for tensor in graph.initializer)
        or any(value.type.tensor_type.elem_type in small for value in list(graph.input) + list(graph.output))
    )


def compute_nodes(model):
    """What computes: neither conversions nor constants."""
    return [node for node in model.graph.node if node.op_type not in QUANTIZERS + ("Constant",)]


def compute_ops(model):
    return [node.op_type for node in compute_nodes(model)]


def chosen_format(model, wanted):
    """`hybrid` decides by the operators; the two others are what they say."""
    if wanted != "hybrid":
        return wanted
    ops = compute_ops(model)
    return "qoperator" if ops and all(op in OPERATOR_FORM for op in ops) else "qdq"


# --- calibration -----------------------------------------------------------------------------------------------------


def random_samples(inputs, count):
    """`count` feeds, drawn in the order of samples, then inputs. Floats: [0,1) as doubles, cast to the type, times 2 minus 1. Integers and
    bools in their own type from [lo, hi) (0 and 1 where nothing is known), since what they index or say must exist; `values` are fed as they are.

    inputs: dicts with name, dtype (NumPy's), shape, and optionally lo, hi, values.
    """
    import numpy

    generator = numpy.random.default_rng(SEED)

    def draw(entry):
        dtype, shape = numpy.dtype(entry["dtype"]), entry["shape"]
        if entry.get("values"):
            return numpy.array(entry["values"]).astype(dtype).reshape(shape)
        if dtype.kind == "b":
            return generator.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            low, high = int(entry.get("lo", 0)), int(entry.get("hi", 2))
            return generator.integers(low, max(high, low + 1), shape).astype(dtype)
        return (generator.random(shape).astype(dtype) * 2 - 1).astype(dtype)

    return [{entry["name"]: draw(entry) for entry in inputs} for _ in range(count)]


def input_entries(model, known, dims):
    """Name, type and shape of each driven input, with what is known of its values. Dims without a value are what `dims` says, else 1."""
    from onnx import helper

    known = {entry["name"]: entry for entry in known}
    entries = []
    for value in driven_inputs(model):
        if not value.type.HasField("tensor_type"):
            raise ValueError(f"input '{value.name}' is no tensor")
        tensor = value.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else int(dims.get(dim.dim_param, 1)) for dim in tensor.shape.dim]
        entry = {"name": value.name, "dtype": helper.tensor_dtype_to_np_dtype(tensor.elem_type), "shape": shape}
        entry |= {key: known[value.name][key] for key in ("lo", "hi", "values") if value.name in known and key in known[value.name]}
        entries.append(entry)
    return entries


def user_samples(folder, read_folder):
    """A person's samples: each .npz file of the folder is one, each subfolder with .npz, .npy or .pb files is one, and loose .npy and .pb files
    together are one. `read_folder` gives name -> (array, file) of a folder."""
    import numpy

    if not os.path.isdir(folder):
        raise CalibrationError(f"no folder {folder}")
    samples = []
    loose = False
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            arrays = {key: array for key, (array, _) in read_folder(path).items()}
            if arrays:
                samples.append(arrays)
        elif name.endswith(".npz"):
            try:
                with numpy.load(path, allow_pickle=False) as archive:
                    samples.append({member: archive[member] for member in archive.files})
            except Exception as error:
                raise CalibrationError(f"cannot read {name}: {error}") from error
        elif name.endswith((".npy", ".pb")):
            loose = True
    if loose:
        samples.append({key: array for key, (array, file) in read_folder(folder).items() if not file.endswith(".npz")})
    if not samples:
        raise CalibrationError(f"{os.path.basename(folder)} holds no .npz, .npy or .pb file")
    return samples


def check_samples(samples, entries):
    """Each sample gives each input in its type; what else it holds is left out. Shapes are ONNX Runtime's business: dims may be open."""
    checked = []
    for number, sample in enumerate(samples):
        feed = {}
        for entry in entries:
            array = sample.get(entry["name"])
            if array is None:
                known = ", ".join(sorted(sample)[:10]) or "none"
                raise CalibrationError(f"sample {number} has no array for input '{entry['name']}' (there: {known})")
            if array.dtype != entry["dtype"]:
                raise CalibrationError(f"input '{entry['name']}' of sample {number} is {array.dtype}, must be {entry['dtype']}")
            feed[entry["name"]] = array
        checked.append(feed)
    return checked


def values_in_model(model, samples, names):
    """What the values `names` are in the float model for each sample: calibration data of layers inside it."""
    import onnx
    import onnxruntime

    made = {output for node in model.graph.node for output in node.output if output}
    wanted = [name for name in dict.fromkeys(names) if name in made]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in copy.graph.initializer if tensor.name in names}
    results = []
    session = onnxruntime.InferenceSession(copy.SerializeToString(), providers=["CPUExecutionProvider"]) if wanted else None
    for number, sample in enumerate(samples):
        try:
            arrays = session.run(wanted, sample) if session else []
        except Exception as error:
            raise CalibrationError(f"the model does not run with sample {number}: {error}") from error
        results.append(constants | sample | dict(zip(wanted, arrays)))
    return results


class Feeds:
    """Samples as ONNX Runtime's calibrator takes them."""

    def __init__(self, samples):
        self.left = iter(samples)

    def get_next(self):
        return next(self.left, None)


# --- integers at the model's edge ------------------------------------------------------------------------------------


def element_type(model, quantizer):
    """The integer type of a QuantizeLinear's result or a DequantizeLinear's input, by its zero point."""
    from onnx import TensorProto

    if len(quantizer.input) > 2 and quantizer.input[2]:
        for tensor in model.graph.initializer:
            if tensor.name == quantizer.input[2]:
                return tensor.data_type
    return TensorProto.UINT8  # what ONNX says where there is none


def full_integer(model):
    """Takes the conversions off the model's edge: inputs that only quantizers read, and outputs that a DequantizeLinear makes, become integers. Order is kept.

    Returns the model. Several quantizers of one input with the same scale and zero point become one; with different ones the input stays.
    """
    import onnx

    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    results = {value.name for value in graph.output}
    readers = {}
    for node in nodes_of(graph):
        for name in dict.fromkeys(node.input):
            readers.setdefault(name, []).append(node)
    for body in (attribute.g for node in nodes_of(graph) for attribute in node.attribute if attribute.HasField("g")):
        for value in body.output:  # a body may give an outer value just so
            readers.setdefault(value.name, []).append(None)

    removed, renamed = [], {}
    for value in graph.input:
        users = readers.get(value.name, [])
        if value.name in constants or value.name in results or not users:
            continue
        if any(user is None or user.op_type != "QuantizeLinear" or user.input[0] != value.name for user in users):
            continue
        first = users[0]
        if any(list(user.input) != list(first.input) or user.attribute != first.attribute for user in users):
            continue
        if any(user.output[0] in results for user in users):
            continue
        for user in users:
            removed.append(user)
            renamed[user.output[0]] = first.output[0]
        value.name = first.output[0]
        value.type.tensor_type.elem_type = element_type(model, first)
    inputs = {value.name for value in graph.input}

    makers = {output: node for node in graph.node for output in node.output if output}
    taken = set(results)
    for value in graph.output:
        maker = makers.get(value.name)
        if maker is None or maker.op_type != "DequantizeLinear":
            continue
        source = renamed.get(maker.input[0], maker.input[0])
        if source in constants or source in inputs or source in taken:
            continue
        if not readers.get(value.name):
            removed.append(maker)
        taken.add(source)
        value.name = source
        value.type.tensor_type.elem_type = element_type(model, maker)

    gone = {node.output[0] for node in removed}
    kept = []
    for node in graph.node:
        if node.output and node.output[0] in gone:
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [renamed.get(name, name) for name in copy.input]
        kept.append(copy)
    edge = {value.name for value in list(graph.input) + list(graph.output)}
    infos = [value for value in graph.value_info if value.name not in edge and value.name not in gone]
    infos = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in infos]
    del graph.node[:]
    graph.node.extend(kept)
    del graph.value_info[:]
    graph.value_info.extend(infos)
    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # types are known; shapes that cannot be inferred stay open
        return model


# --- quantizing ------------------------------------------------------------------------------------------------------


def with_own_biases(model):
    """The model with a bias of its own for each operator, since a bias' scale is that of one operator's input and weight. A copy where anything changes.

    ONNX Runtime's quantizer cannot be left to it: in operator form it gives all of them the first one's scale; with conversions it copies, but under a name
    that only other constants have not, so that those who read a result of that name get the bias instead.
    """
    import onnx

    def biases(graph):
        constants = {tensor.name for tensor in graph.initializer}
        return [node for node in graph.node if node.op_type in BIASED and len(node.input) > 2 and node.input[2] in constants]

    names = [node.input[2] for node in biases(model.graph)]
    if len(set(names)) == len(names):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    taken |= {name for node in nodes_of(graph) for name in node.output}
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    copies = {}
    for node in biases(graph):
        name = node.input[2]
        copies[name] = copies.get(name, 0) + 1
        if copies[name] == 1:
            continue
        # The quantizer makes names out of this one, so none may begin with it.
        while any(other.startswith(f"{name}_{copies[name]}") for other in taken):
            copies[name] += 1
        copy = graph.initializer.add()
        copy.CopyFrom(tensors[name])
        copy.name = f"{name}_{copies[name]}"
        node.input[2] = copy.name
        taken.add(copy.name)
    return made


def names_at_the_edge(model):
    return {"inputs": [value.name for value in driven_inputs(model)], "outputs": [value.name for value in model.graph.output]}


def as_it_is(model, note, already=False, keep_as=None):
    import onnx

    if keep_as:
        onnx.save(model, keep_as)
    return {"quantized": False, "already": already, "format": "", "note": note, **names_at_the_edge(model)}


def quantize_file(model, out, samples, wanted="qdq", per_channel=False, integers=False, keep=False):
    """Quantizes `model` (a ModelProto with its data) into the file `out`, which is written only when something was quantized, or with `keep`.

    `samples`: the calibration feeds, or a function that makes them. Returns quantized, already, format, note, the names of inputs and outputs in the
    order of the float model's, and of a quantized model node name and first result of each operator. Errors of the quantizer pass through.
    """
    import onnx
    from onnxruntime import quantization

    if is_quantized(model):
        return as_it_is(model, "it is quantized already", already=True, keep_as=out if keep else None)
    if not driven_inputs(model):
        raise ValueError("it has no inputs to calibrate with")
    feeds = samples() if callable(samples) else samples
    form = chosen_format(model, wanted)
    folder = tempfile.mkdtemp(prefix="quantize.", dir=os.path.dirname(os.path.abspath(out)))
    before, tempfile.tempdir = tempfile.tempdir, folder  # the quantizer's own files go where the worker cleans up
    try:
        plain = os.path.join(folder, "float.onnx")
        made = os.path.join(folder, "int8.onnx")
        onnx.save(with_own_biases(model), plain)
        quantization.quantize_static(
            plain,
            made,
            Feeds(feeds),
            quant_format=quantization.QuantFormat.QOperator if form == "qoperator" else quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            calibrate_method=quantization.CalibrationMethod.MinMax,
            per_channel=per_channel,
        )
        result = onnx.load(made)
        if not is_quantized(result):
            ops = ", ".join(dict.fromkeys(compute_ops(model))) or "it"
            return as_it_is(model, f"ONNX Runtime's quantizer leaves {ops} in float here", keep_as=out if keep else None)
        if integers:
            result = full_integer(result)
        onnx.save(result, os.path.join(folder, "out.onnx"))
        os.replace(os.path.join(folder, "out.onnx"), out)
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
    operators = [[node.name, node.output[0] if node.output else ""] for node in compute_nodes(result)]
    return {"quantized": True, "already": False, "format": form, "note": "", "operators": operators, **names_at_the_edge(result)}
