#!/usr/bin/env python3
"""Makes the small models beside it (needs the packages onnx and numpy); run it again only to change them."""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

here = pathlib.Path(__file__).parent


def save(name, nodes, inputs, outputs, constants=(), opset=17):
    graph = h.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in constants])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, here / f"{name}.onnx")


def value(name, dtype, dims):
    return h.make_tensor_value_info(name, dtype, dims)


# y = a + b, then z = relu(y) that nobody but the graph's output sees
save("add_relu", [h.make_node("Add", ["a", "b"], ["y"]), h.make_node("Relu", ["y"], ["z"])],
     [value("a", T.FLOAT, [2, 3]), value("b", T.FLOAT, [2, 3])], [value("z", T.FLOAT, [2, 3])])
# a dynamic batch, and an intermediate whose shape depends on values
save("dynamic", [h.make_node("NonZero", ["a"], ["n"]), h.make_node("Shape", ["n"], ["s"])],
     [value("a", T.FLOAT, ["batch", 4])], [value("s", T.INT64, [2])])
# only a shape of one element is valid: zeros are refused, ones work
save("ones_only", [h.make_node("Reshape", ["a", "i"], ["y"], allowzero=1)],
     [value("a", T.FLOAT, [1]), value("i", T.INT64, [1])], [value("y", T.FLOAT, [None])])
# an output that is no tensor
save("sequence", [h.make_node("SequenceConstruct", ["a"], ["q"])], [value("a", T.FLOAT, [2])],
     [h.make_tensor_sequence_value_info("q", T.FLOAT, None)])
# neither zeros nor ones suit this one
save("reshape_fails", [h.make_node("Reshape", ["a", "s"], ["y"], allowzero=1)],
     [value("a", T.FLOAT, [2, 3]), value("s", T.INT64, [2])], [value("y", T.FLOAT, [None, None])])
