"""The sidecar: layerfarm's resident Python helper, for what exists only in Python (docs/helpers.md).

Started by a worker (worker/toolchain/resident_helpers.cpp) with the interpreter of the dependency cache. Speaks over
descriptor 3, both ways: four bytes of length, little endian, then a JSON object. One request at a time; every answer
has "ok": true, or "ok": false with "where" and "text". A request that fails harms no other one; one that takes the
process down is the worker's business. Standard output and error belong to the libraries.

Modules that are dear to load are imported on the first request that needs them.
"""

import json
import os
import re
import socket
import struct
import sys
import traceback

MAX_REQUEST = 64 << 20
# Constants of this size and more go to a tool in binary form: as text they take twice their size, and long to parse.
BINARY_CONSTANTS = 4 << 20


class Refused(Exception):
    """A request that cannot be met, with the step that failed and a text for people."""

    def __init__(self, where, text):
        super().__init__(text)
        self.where = where


def need_package(name, toolchain, where):
    """A toolchain brings this package; not every user has installed each of them."""
    from importlib import util

    try:
        found = util.find_spec(name)
    except ModuleNotFoundError:  # the package that it is in
        found = None
    if found is None:
        raise Refused(where, f"the Python package {name} is not installed; run: layerfarm toolchains install {toolchain}")


# --- reading models --------------------------------------------------------------------------------------------------


def first_line(error):
    """The part of a library's message that says what is wrong."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, LookupError):  # its text is the key alone
        text = f"{type(error).__name__}: {text}"
    return text


class LoadedModel:
    """A model, checked and with its shapes inferred, as the importer takes it.

    Large constants stay out of the checker and of shape inference, which copy the whole model: for them they are inputs.
    """

    LARGE = 1 << 20

    def __init__(self, path, with_data=True, dims=None):
        import onnx

        self.onnx = onnx
        self.folder = os.path.dirname(os.path.abspath(path))
        if not os.path.exists(path):
            raise Refused("import", f"no such file: {os.path.basename(path)}")
        try:
            model = onnx.load(path, load_external_data=False)
        except Exception as error:  # protobuf's and onnx's own kinds, and OSError
            raise Refused("import", f"cannot read {os.path.basename(path)}: {first_line(error)}") from error
        self.opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
        large = [tensor for tensor in model.graph.initializer if self._is_large(tensor)]
        constants = [self._detached(tensor) for tensor in model.graph.initializer] if large else []
        declared = {value.name for value in model.graph.input}
        as_inputs = [
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in large if tensor.name not in declared
        ]
        if large:
            del model.graph.initializer[:]
            model.graph.initializer.extend(tensor for tensor in constants if not self._is_large(tensor))
            model.graph.input.extend(as_inputs)
        try:
            onnx.checker.check_model(model)
        except Exception as error:
            raise Refused("import", f"ONNX checker: {first_line(error)}") from error
        if dims is not None:
            set_dims(model, dims)
        if with_data:
            raw_constants(model.graph)
        model = infer_shapes(model)
        if large:
            del model.graph.input[len(model.graph.input) - len(as_inputs) :]
            small = {tensor.name: self._detached(tensor) for tensor in model.graph.initializer}
            del model.graph.initializer[:]
            for tensor in constants:  # in their order
                if with_data and tensor.data_location == onnx.TensorProto.EXTERNAL:
                    read_external_data(tensor, self.folder)
                model.graph.initializer.append(small.get(tensor.name, tensor))
        self.model = model

    def _is_large(self, tensor):
        return tensor.data_location == self.onnx.TensorProto.EXTERNAL or len(tensor.raw_data) >= self.LARGE

    def _detached(self, tensor):
        copy = self.onnx.TensorProto()
        copy.CopyFrom(tensor)
        return copy


def read_external_data(tensor, folder):
    """ONNX's own loader refuses files with several hard links, which is how constants lie beside a layer's module."""
    import onnx

    place = {entry.key: entry.value for entry in tensor.external_data}
    path = os.path.abspath(os.path.join(folder, place.get("location", "")))
    if not path.startswith(folder + os.sep):
        raise Refused("import", f"the data of constant '{tensor.name}' lies outside the model's folder: {place.get('location', '')}")
    try:
        with open(path, "rb") as file:
            file.seek(int(place.get("offset", 0)))
            length = int(place["length"]) if "length" in place else -1
            data = file.read(length)
    except (OSError, ValueError) as error:
        raise Refused("import", f"cannot read the data of constant '{tensor.name}': {first_line(error)}") from error
    if length >= 0 and len(data) != length:
        raise Refused("import", f"the data of constant '{tensor.name}' is cut off: {len(data)} of {length} bytes")
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.DEFAULT
    tensor.raw_data = data


def set_dims(model, dims):
    """Gives every dynamic dimension of the inputs a value: the one asked for by name, else 1."""
    constants = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in constants or not value.type.HasField("tensor_type"):
            continue
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.dim_value = int(dims.get(dim.dim_param, 1))


def raw_constants(graph):
    """Rewrites constants of typed fields as raw bytes: the importer reads only some types from typed fields, and no empty ones."""
    import onnx
    from onnx import numpy_helper

    def rewrite(tensor):
        if tensor.HasField("raw_data") or tensor.data_type == onnx.TensorProto.STRING:
            return
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return
        try:
            raw = numpy_helper.to_array(tensor).tobytes()
        except Exception:  # a type that has no array form: the importer says what it thinks of it
            return
        for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
            tensor.ClearField(field)
        tensor.raw_data = raw

    for tensor in graph.initializer:
        rewrite(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                rewrite(attribute.t)
            for tensor in attribute.tensors:
                rewrite(tensor)
            if attribute.HasField("g"):
                raw_constants(attribute.g)


def infer_shapes(model):
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise Refused("import", f"ONNX shape inference: {first_line(error)}") from error


# --- IREE's importer -------------------------------------------------------------------------------------------------


class ImportedModule:
    """One MLIR module that models are imported into, each as a function of its own."""

    def __init__(self):
        need_package("iree.compiler", "iree", "import")
        from iree.compiler import ir
        from iree.compiler.extras import onnx_importer

        self.ir = ir
        self.importer = onnx_importer
        self.context = ir.Context()
        self.context.enable_multithreading(False)
        self.module = ir.Module.create(ir.Location.unknown(self.context)).operation
        self.block = self.module.regions[0].blocks[0]
        self.has_binary_constants = False

    def add(self, model, function):
        """Imports the model's graph as `function`; on failure nothing of it is left behind.

        Returns private function -> op type for what ONNX defines by other operators and the importer expands.
        """
        before = len(self.block.operations)
        model.graph.name = function
        try:
            info = self.importer.ModelInfo(model)
            cache = self.importer.ContextCache(self.context)
            imported = self.importer.NodeImporter.define_function(info.main_graph, self.module, cache)
            imported.import_all()
            added = [self.block.operations[index] for index in range(before, len(self.block.operations))]
            calls = self._own_names(added, function)
            for operation in added:
                operation.operation.verify()
        except Exception as error:
            for operation in [self.block.operations[index] for index in range(before, len(self.block.operations))][::-1]:
                operation.operation.erase()
            raise Refused("import", first_line(error)) from error
        constants = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
        self.has_binary_constants = self.has_binary_constants or constants >= BINARY_CONSTANTS
        return calls

    def _own_names(self, added, function):
        """The importer makes a private function of what ONNX defines as one, named by its content; two layers may share that name."""
        calls = {}
        for index, other in enumerate(added[1:]):
            old = self.ir.StringAttr(other.operation.attributes["sym_name"]).value
            new = f"{function}_body{index}"
            for operation in added:
                self.ir.SymbolTable.replace_all_symbol_uses(old, new, operation.operation)
            self.ir.SymbolTable.set_symbol_name(other.operation, new)
            op_type = re.search(r"[A-Za-z]\w*", old)  # the name is a tuple that begins with it
            calls[new] = op_type.group(0) if op_type else old
        return calls

    def text(self):
        return self.module.get_asm(assume_verified=True)

    def save(self, path, as_text=False):
        """Writes the module; returns its text, or None where it is binary."""
        if self.has_binary_constants and not as_text:
            with open(path, "wb") as file:
                self.module.write_bytecode(file)
            return None
        text = self.text()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return text


FUNCTION_LINE = re.compile(r'^  func\.func (?:private )?@("?)([\w.$-]+)\1\(')


def function_lines(text):
    """Function name -> (first line, last line), 1-based."""
    ranges, current, last = {}, None, 0
    for number, line in enumerate(text.split("\n"), 1):
        found = FUNCTION_LINE.match(line)
        if found:
            current = found.group(2)
            ranges[current] = [number, number]
        elif line == "  }" and current is not None:
            ranges[current][1] = number
            current = None
        last = number
    if current is not None:
        ranges[current][1] = last
    return ranges


def op_import(request):
    loaded = LoadedModel(request["model"], dims=request.get("dims", {}))
    module = ImportedModule()
    function = request.get("function", "main")
    calls = module.add(loaded.model, function)
    text = module.save(request["out"], request.get("text", False))
    answer = {"function": function, "binary": text is None}
    if request.get("places", False) and text is not None:
        answer["locations"] = operator_places(text, function, calls)
    return answer


def op_combine(request):
    module = ImportedModule()
    layers = []
    for entry in request["models"]:
        opset = 0
        try:
            loaded = LoadedModel(entry["path"])
            opset = loaded.opset
            module.add(loaded.model, entry["function"])
            layers.append({"ok": True, "opset": opset})
        except Refused as error:
            layers.append({"ok": False, "where": error.where, "text": str(error), "opset": opset})
    good = [(entry, layer) for entry, layer in zip(request["models"], layers) if layer["ok"]]
    if not good:
        return {"layers": layers, "binary": False}
    text = module.save(request["out"])
    if text is not None:
        ranges = function_lines(text)
        for entry, layer in good:
            function = entry["function"]
            layer["lines"] = [
                lines for name, lines in sorted(ranges.items()) if name == function or name.startswith(function + "_body")
            ]
    return {"layers": layers, "binary": text is None}


OPERATOR_LINE = re.compile(r'^    (?:%[\w:, %]+ = )?(torch\.operator|(?:func\.)?call) +(?:"onnx\.([A-Za-z]\w*)"|@("?)(.*?)\3\()')


def op_locations(request):
    """Where the importer puts each top-level operator of a whole model. No line or column depends on constants' values or open dims: both are left alone."""
    loaded = LoadedModel(request["model"], with_data=False)
    module = ImportedModule()
    ir = module.ir

    def placeholder(importer, initializer, extern_name=None):
        """A constant keeps its line and its type, not its value."""
        name = extern_name or initializer.name
        with ir.InsertionPoint(importer._b), ir.Location.unknown():
            operation = ir.Operation.create(
                name="torch.operator",
                results=[importer._cc.tensor_proto_to_type(initializer)],
                attributes={"name": ir.StringAttr.get("onnx.Constant")},
            )
        importer._nv_map[name] = operation.result
        return operation.result

    # On the class, since the importer makes further ones of it for the bodies of If, Loop and Scan.
    kind = module.importer.NodeImporter
    original, kind.import_initializer = kind.import_initializer, placeholder
    try:
        calls = module.add(loaded.model, "main")
    finally:
        kind.import_initializer = original
    return {"locations": operator_places(module.text(), "main", calls), "importer": f"iree-base-compiler {iree_version()}"}


def operator_places(text, function, calls):
    """[line, column, op type] of each top-level operator of a function, constants left out."""
    locations, inside = [], False
    for number, line in enumerate(text.split("\n"), 1):
        found = FUNCTION_LINE.match(line)
        if found:
            inside = found.group(2) == function
            continue
        if not inside:
            continue
        found = OPERATOR_LINE.match(line)
        if found is None:
            continue
        op_type = found.group(2)
        if op_type is None:
            op_type = calls.get(found.group(4), found.group(4))
        if op_type.lower() != "constant":
            locations.append([number, found.start(1) + 1, op_type])
    return locations


def iree_version():
    from importlib import metadata

    return metadata.version("iree-base-compiler")


# --- arrays of the user ----------------------------------------------------------------------------------------------


def file_name_of(name):
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def input_arrays(folder):
    """Input name -> (array or TensorProto thunk, file name). Names come from the archive's members, a tensor's own name, or the file's stem."""
    import numpy
    import onnx
    from onnx import numpy_helper

    if not os.path.isdir(folder):
        raise Refused("inputs", f"{folder} is not a folder")
    found = {}

    def read_pb(path):
        tensor = onnx.TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        return tensor

    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        stem, extension = os.path.splitext(name)
        try:
            if extension == ".npy":
                found.setdefault(stem, (numpy.load(path, allow_pickle=False), name))
            elif extension == ".npz":
                with numpy.load(path, allow_pickle=False) as archive:
                    for member in archive.files:
                        found.setdefault(member, (archive[member], name))
            elif extension == ".pb":
                tensor = read_pb(path)
                found.setdefault(tensor.name or stem, (numpy_helper.to_array(tensor), name))
        except Exception as error:
            raise Refused("inputs", f"cannot read {name}: {first_line(error)}") from error
    return found


def op_read_inputs(request):
    """Takes arrays from a folder by input name and writes them as raw files. An optional one that is not there gives None."""
    import numpy
    from onnx import helper

    found = input_arrays(request["folder"])
    taken = []
    for wanted in request["inputs"]:
        name = wanted["name"]
        entry = found.get(name) or found.get(file_name_of(name))
        if entry is None and wanted.get("optional", False):
            taken.append(None)
            continue
        if entry is None:
            known = ", ".join(sorted(found)[:20]) or "none"
            raise Refused("inputs", f"no array for input '{name}' in {os.path.basename(request['folder'])} (there: {known})")
        array, file = entry
        dtype = numpy.dtype(helper.tensor_dtype_to_np_dtype(wanted["dtype"]))
        if array.dtype != dtype:
            # A .npy file cannot name bfloat16; such arrays are saved as two nameless bytes.
            if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
                array = array.view(dtype)
            else:
                raise Refused("inputs", f"input '{name}' in {file} is {array.dtype}, must be {dtype}")
        if list(array.shape) != list(wanted["dims"]):
            raise Refused("inputs", f"input '{name}' in {file} has shape {list(array.shape)}, must be {list(wanted['dims'])}")
        array = numpy.ascontiguousarray(array)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        with open(wanted["out"], "wb") as out:
            out.write(array.tobytes())
        taken.append(file)
    return {"files": taken}


# --- ONNX Runtime's quantizer ----------------------------------------------------------------------------------------


def with_all_data(path):
    """A model with its external data in memory. ONNX's own loader refuses data files with several hard links, which is how they lie beside a layer's module."""
    import onnx

    if not os.path.exists(path):
        raise Refused("quantize", f"no such file: {os.path.basename(path)}")
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise Refused("quantize", f"cannot read {os.path.basename(path)}: {first_line(error)}") from error
    folder = os.path.dirname(os.path.abspath(path))
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            read_external_data(tensor, folder)
    return model


class LayerSamples:
    """Calibration data: random, or a person's samples, which for a layer are what the float model makes of them at the layer's inputs."""

    def __init__(self, quantization, request):
        self.quantization = quantization
        self.count = int(request.get("samples", 20))
        self.dims = request.get("dims", {})
        self.model, self.samples, self.values = None, None, {}
        calibration = request.get("calibration")
        if not calibration:
            return
        self.model = with_all_data(calibration["model"])
        entries = quantization.input_entries(self.model, [], self.dims)
        samples = quantization.user_samples(calibration["folder"], input_arrays)
        self.samples = quantization.check_samples(samples, entries)
        names = [place["from"] for model in request["models"] for place in model.get("inputs", []) if "from" in place]
        if names:
            self.values = quantization.values_in_model(self.model, self.samples, names)

    def of(self, model, known):
        """The feeds of one model; `known` says of its inputs what values they may have, and, in a layer, which value of the whole model they are."""
        entries = self.quantization.input_entries(model, known, self.dims)
        if self.samples is None:
            return self.quantization.random_samples(entries, self.count)
        source = {place["name"]: place["from"] for place in known if "from" in place}
        if not source:
            return self.quantization.check_samples(self.samples, entries)
        return [{entry["name"]: values[source[entry["name"]]] for entry in entries} for values in self.values]


def op_quantize(request):
    """Quantizes models one by one; one that cannot be quantized harms no other."""
    need_package("onnxruntime", "quantize", "quantize")
    quantization = own_module("quantization")
    try:
        data = LayerSamples(quantization, request)
    except quantization.CalibrationError as error:
        raise Refused("calibration", str(error)) from error
    answers = []
    for entry in request["models"]:
        try:
            model = with_all_data(entry["model"])
            answers.append(
                {
                    "ok": True,
                    **quantization.quantize_file(
                        model,
                        entry["out"],
                        lambda: data.of(model, entry.get("inputs", [])),
                        wanted=request.get("format", "qdq"),
                        per_channel=bool(request.get("per_channel", False)),
                        integers=bool(request.get("full_integer", False)),
                        keep=bool(request.get("keep", False)),
                    ),
                }
            )
        except quantization.CalibrationError as error:
            raise Refused("calibration", str(error)) from error
        except MemoryError:
            raise
        except Exception as error:  # the quantizer's own kinds: many
            answers.append({"ok": False, "text": first_line(error)})
    return {"models": answers}


def own_module(name):
    """A file beside this one. The interpreter runs isolated, so this folder is on no path."""
    from importlib import util

    if name not in sys.modules:
        spec = util.spec_from_file_location(name, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
        module = util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


# --- the loop --------------------------------------------------------------------------------------------------------


def op_hello(_request):
    return {"python": sys.version.split()[0], "pid": os.getpid()}


OPERATIONS = {
    "hello": op_hello,
    "import": op_import,
    "combine": op_combine,
    "locations": op_locations,
    "quantize": op_quantize,
    "read_inputs": op_read_inputs,
}


def answer(request):
    operation = OPERATIONS.get(request.get("op"))
    if operation is None:
        return {"ok": False, "where": "request", "text": f"unknown operation {request.get('op')!r}; known: {', '.join(sorted(OPERATIONS))}"}
    try:
        return {"ok": True, **operation(request)}
    except Refused as error:
        return {"ok": False, "where": error.where, "text": str(error)}
    except MemoryError:
        raise
    except Exception as error:  # a fault of ours or of a library: the request fails, the next one is served
        traceback.print_exc()
        return {"ok": False, "where": request["op"], "text": f"{type(error).__name__}: {first_line(error)}"}


def read_exactly(channel, count):
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(1 << 20, count - len(parts)))
        if not part:
            return None
        parts += part
    return bytes(parts)


def main():
    channel = socket.socket(fileno=3)
    while True:
        head = read_exactly(channel, 4)
        if head is None:
            return 0
        (length,) = struct.unpack("<I", head)
        if length > MAX_REQUEST:
            print(f"sidecar: a request of {length} bytes is too long", file=sys.stderr)
            return 1
        body = read_exactly(channel, length)
        if body is None:
            return 0
        try:
            request = json.loads(body)
            if not isinstance(request, dict):
                raise ValueError("not an object")
        except ValueError as error:
            reply = {"ok": False, "where": "request", "text": f"not a JSON object: {error}"}
        else:
            reply = answer(request)
        text = json.dumps(reply).encode()
        channel.sendall(struct.pack("<I", len(text)) + text)


if __name__ == "__main__":
    sys.exit(main())
