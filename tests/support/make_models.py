"""Makes the ONNX models, inputs and expected outputs of the toolchains' system tests, with what is in the Python environment of the project.

usage: make_models.py FOLDER
Writes FOLDER/index.json: one object per model with its files, types, and what a toolchain that does it right answers.
"""

import json
import os
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OUT = sys.argv[1]
INDEX = []


def add(name, nodes, inputs, outputs, constants=(), opset=17, arrays=None, expected=None, external=(), verdict="done", domain=""):
    """inputs, outputs: (name, type, dims); arrays: values of the inputs; expected: of the outputs, or None where only the shape is known."""
    graph = h.make_graph(
        nodes,
        "g",
        [h.make_tensor_value_info(*value) for value in inputs],
        [h.make_tensor_value_info(*value) for value in outputs],
        list(constants),
    )
    imports = [h.make_opsetid("", opset)] + ([h.make_opsetid(domain, 1)] if domain else [])
    model = h.make_model(graph, opset_imports=imports, ir_version=8)
    folder = os.path.join(OUT, name)
    os.makedirs(folder, exist_ok=True)
    data = []
    for tensor in model.graph.initializer:
        if tensor.name in external:
            file = f"{tensor.name}.bin"
            with open(os.path.join(folder, file), "wb") as out:
                out.write(tensor.raw_data)
            data.append(file)
            onnx.external_data_helper.set_external_data(tensor, location=file, offset=0, length=len(tensor.raw_data))
            tensor.ClearField("raw_data")
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as out:
        out.write(model.SerializeToString())
    entry = {"name": name, "model": path, "data": data, "verdict": verdict, "opset": opset, "inputs": [], "outputs": []}
    for place, values, target in (("in", inputs, entry["inputs"]), ("out", outputs, entry["outputs"])):
        given = arrays if place == "in" else expected
        for index, (_, dtype, dims) in enumerate(values):
            item = {"dtype": dtype, "dims": dims, "file": ""}
            if given is not None:
                array = np.asarray(given[index]).astype(h.tensor_dtype_to_np_dtype(dtype)).reshape(dims)
                item["file"] = os.path.join(folder, f"{place}_{index}.bin")
                array.tofile(item["file"])
            target.append(item)
    INDEX.append(entry)
    return model


# --- every type and shape that a layer may have ----------------------------------------------------------------------

NAMES = {T.FLOAT: "f32", T.FLOAT16: "f16", T.BFLOAT16: "bf16", T.DOUBLE: "f64", T.INT8: "i8", T.UINT8: "ui8", T.INT16: "i16", T.UINT16: "ui16",
         T.INT32: "i32", T.UINT32: "ui32", T.INT64: "i64", T.UINT64: "ui64", T.BOOL: "i1"}
for dtype, mlir in NAMES.items():
    for dims in ([2, 3], [], [0, 3]):
        values = np.arange(int(np.prod(dims))) % 2
        # Without arithmetic where IREE has none for the type: what is tested is the way in and out.
        moved = dtype in (T.BFLOAT16, T.UINT16, T.UINT32, T.UINT64)
        node = h.make_node("Not", ["x"], ["y"]) if dtype == T.BOOL else h.make_node("Identity", ["x"], ["y"]) if moved else h.make_node("Add", ["x", "x"], ["y"])
        wanted = 1 - values if dtype == T.BOOL else values if moved else values * 2
        shape = "x".join(str(d) for d in dims) or "scalar"
        add(f"type_{mlir}_{shape}", [node], [("x", dtype, dims)], [("y", dtype, dims)], arrays=[values], expected=[wanted])

# --- layers that work ------------------------------------------------------------------------------------------------

rng = np.random.default_rng(7)
x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
add("relu", [h.make_node("Relu", ["x"], ["y"])], [("x", T.FLOAT, [1, 3, 8, 8])], [("y", T.FLOAT, [1, 3, 8, 8])], arrays=[x], expected=[np.maximum(x, 0)])
a, b = rng.standard_normal((4, 16)).astype(np.float32), rng.standard_normal((16, 5)).astype(np.float32)
add("matmul", [h.make_node("MatMul", ["a", "b"], ["y"])], [("a", T.FLOAT, [4, 16])], [("y", T.FLOAT, [4, 5])],
    constants=[numpy_helper.from_array(b, "b")], arrays=[a], expected=[a @ b])
add("two_outputs", [h.make_node("Split", ["x"], ["p", "q"], axis=1)], [("x", T.FLOAT, [4, 16])], [("p", T.FLOAT, [4, 8]), ("q", T.FLOAT, [4, 8])],
    opset=13, arrays=[a], expected=[a[:, :8], a[:, 8:]])
normal = (x - x.mean(axis=(0, 2, 3), keepdims=True)) / (x.std(axis=(0, 2, 3), keepdims=True) + 1e-9)
add("expanded", [h.make_node("MeanVarianceNormalization", ["x"], ["y"])], [("x", T.FLOAT, [1, 3, 8, 8])], [("y", T.FLOAT, [1, 3, 8, 8])],
    opset=13, arrays=[x], expected=[normal])
big = rng.standard_normal((1024, 2048)).astype(np.float32)
row = rng.standard_normal((1, 1024)).astype(np.float32)
add("large_constant", [h.make_node("MatMul", ["a", "w"], ["y"])], [("a", T.FLOAT, [1, 1024])], [("y", T.FLOAT, [1, 2048])],
    constants=[numpy_helper.from_array(big, "w")], external=["w"], arrays=[row], expected=[row @ big])

# --- layers that IREE takes only in a newer form -----------------------------------------------------------------------

add("old_slice", [h.make_node("Slice", ["x"], ["y"], starts=[1], ends=[3], axes=[1])], [("x", T.FLOAT, [4, 16])], [("y", T.FLOAT, [4, 2])],
    opset=7, arrays=[a], expected=[a[:, 1:3]])
add("old_dropout", [h.make_node("Dropout", ["x"], ["y"], ratio=0.5)], [("x", T.FLOAT, [4, 16])], [("y", T.FLOAT, [4, 16])], opset=7, arrays=[a], expected=[a])

# --- layers that do not ----------------------------------------------------------------------------------------------

add("unknown_operator", [h.make_node("NoSuchOperator", ["x"], ["y"])], [("x", T.FLOAT, [2])], [("y", T.FLOAT, [2])], verdict="refused")
add("other_domain", [h.make_node("Thing", ["x"], ["y"], domain="some.vendor")], [("x", T.FLOAT, [2])], [("y", T.FLOAT, [2])], domain="some.vendor", verdict="refused")
add("unpool", [h.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])], [("x", T.FLOAT, [1, 1, 2, 2]), ("i", T.INT64, [1, 1, 2, 2])],
    [("y", T.FLOAT, [1, 1, 4, 4])], verdict="refused")
add("strings", [h.make_node("StringConcat", ["x", "x"], ["y"])], [("x", T.STRING, [2])], [("y", T.STRING, [2])], opset=20, verdict="refused")
add("four_bits", [h.make_node("Cast", ["x"], ["m"], to=T.INT4), h.make_node("Cast", ["m"], ["y"], to=T.FLOAT)], [("x", T.FLOAT, [4])], [("y", T.FLOAT, [4])],
    opset=21, verdict="any")
broken = os.path.join(OUT, "broken")
os.makedirs(broken, exist_ok=True)
with open(os.path.join(broken, "model.onnx"), "wb") as file:
    file.write(b"\x08\x08this is no model")
INDEX.append({"name": "broken", "model": os.path.join(broken, "model.onnx"), "data": [], "verdict": "refused", "opset": 0, "inputs": [], "outputs": []})

# --- whole models, with the places where IREE's own importer puts their operators --------------------------------------


def places(path):
    """From the importer's own program; only the first function, only its top level."""
    from iree.compiler.tools.import_onnx import __main__ as importer

    text_file = path + ".mlir"
    importer.main(importer.parse_arguments([path, "-o", text_file]))
    out = []
    with open(text_file, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = re.match(r'    (?! )(.*?)torch\.operator +"onnx\.([A-Za-z]+)"', line)
            if found and found.group(2) != "Constant":
                out.append([number, len(found.group(1)) + 5, found.group(2)])
            if line.startswith("  }"):
                break
    return out


def whole(name, model):
    path = os.path.join(OUT, name + ".onnx")
    onnx.save(model, path)
    return {"name": name, "model": path, "locations": places(path)}


def value(name, dims=(2,), dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, list(dims))


def model_of(nodes, inputs, outputs, constants=()):
    return h.make_model(h.make_graph(nodes, "my graph", inputs, outputs, list(constants)), opset_imports=[h.make_opsetid("", 17)], ir_version=8)


branch = lambda op, name: h.make_graph([h.make_node(op, ["x"], [name]), h.make_node("Neg", [name], [name + "2"])], name + "_g", [], [value(name + "2")])
WHOLE = [
    whole("with_if", model_of(
        [h.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones(2, np.float32))), h.make_node("Constant", [], ["k2"], value_floats=[1.0, 2.0]),
         h.make_node("Add", ["x", "k"], ["s"]), h.make_node("If", ["c"], ["y"], then_branch=branch("Relu", "t"), else_branch=branch("Abs", "e")),
         h.make_node("Mul", ["y", "w"], ["z"])],
        [value("x"), value("c", (), T.BOOL)], [value("z")], [numpy_helper.from_array(np.ones(2, np.float32), "w")])),
    whole("constants", model_of([h.make_node("Gemm", ["x", "w", "b"], ["y"]), h.make_node("Softmax", ["y"], ["z"])], [value("x", (1, 64))], [value("z", (1, 4096))],
                                [numpy_helper.from_array(rng.standard_normal((64, 4096)).astype(np.float32), "w"),
                                 h.make_tensor("b", T.FLOAT, [4096], [0.5] * 4096)])),
]
long = model_of([h.make_node("Relu" if i % 2 else "Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(10000)], [value("v0")], [value("v10000")])
onnx.save(long, os.path.join(OUT, "long.onnx"))

# --- arrays of a user ------------------------------------------------------------------------------------------------

arrays = os.path.join(OUT, "arrays")
os.makedirs(arrays, exist_ok=True)
np.save(os.path.join(arrays, "plain.npy"), np.arange(6, dtype=np.float32).reshape(2, 3))
np.save(os.path.join(arrays, "a_b_0.npy"), np.arange(2, dtype=np.int64))
np.savez(os.path.join(arrays, "many.npz"), **{"in/one": np.ones((2,), np.float16), "two": np.asarray(3.0)})
with open(os.path.join(arrays, "input_0.pb"), "wb") as file:
    file.write(numpy_helper.from_array(np.asarray([True, False]), "flag").SerializeToString())
with open(os.path.join(arrays, "stem.pb"), "wb") as file:
    file.write(numpy_helper.from_array(np.asarray([7], np.int32)).SerializeToString())
import ml_dtypes

np.save(os.path.join(arrays, "half.npy"), np.asarray([1.0, 2.0], ml_dtypes.bfloat16).view("V2"))

with open(os.path.join(OUT, "index.json"), "w", encoding="utf-8") as file:
    json.dump({"layers": INDEX, "whole": WHOLE, "long": os.path.join(OUT, "long.onnx"), "arrays": arrays}, file)
