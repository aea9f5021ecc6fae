#!/usr/bin/env python3
"""Makes the models of this folder that are ours: branch, consts, ifm, qnet (tests/system/further_cases_test.py). The others came with the original's reports. Needs onnx."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
node = h.make_node


def save(name, nodes, inputs, outputs, constants):
    """Inputs and outputs: (name, dims) of floats, or with a type as third."""
    values = [[h.make_tensor_value_info(each[0], each[2] if len(each) > 2 else T.FLOAT, each[1]) for each in side] for side in (inputs, outputs)]
    model = h.make_model(h.make_graph(nodes, name, *values, list(constants)), opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    with open(os.path.join(here, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


def weights(name, *shape):
    generator = np.random.default_rng(sum(map(ord, name)))
    return numpy_helper.from_array((generator.standard_normal(shape) * 0.3).astype(np.float32), name)


def constant(name, value, dtype=np.int64):
    return numpy_helper.from_array(np.array(value, dtype), name)


# names with '/', ':' and spaces, twice the same one, and none; two results of a node; an input left out; a node that nobody needs
save("branch",
     [node("Add", ["x", "y"], ["/enc/add:0"], name="/enc/add"), node("Split", ["/enc/add:0", "sizes"], ["s a", "s b"], name="dup", axis=1),
      node("Clip", ["s a", "", "hi"], ["clip out"], name="dup"), node("TopK", ["s b", "k"], ["top v", "top i"], axis=1),
      node("Mul", ["clip out", "s b"], ["m:0"]), node("Sigmoid", ["x"], ["nobody"], name="unused"), node("Relu", ["m:0"], ["r"], name=""),
      node("Concat", ["r", "top v"], ["z"], axis=1), node("Identity", ["top i"], ["idx"])],
     [("x", [1, 8]), ("y", [1, 8])], [("z", [1, 6]), ("idx", [1, 2], T.INT64)],
     [constant("sizes", [4, 4]), constant("hi", 6.0, np.float32), constant("k", [2])])

# Constant nodes of each kind between the others, and a target of Reshape that is computed
save("consts",
     [node("Constant", [], ["kw"], value=weights("kw", 4, 3, 3, 3)), node("Conv", ["x", "kw"], ["c"], pads=[1, 1, 1, 1]), node("Shape", ["x"], ["sh"]),
      node("Constant", [], ["i0"], value_int=0), node("Gather", ["sh", "i0"], ["n0"], axis=0), node("Constant", [], ["ax"], value_ints=[0]),
      node("Unsqueeze", ["n0", "ax"], ["n1"]), node("Constant", [], ["m1"], value_ints=[-1]), node("Concat", ["n1", "m1"], ["tgt"], axis=0),
      node("Reshape", ["c", "tgt"], ["f"]), node("Constant", [], ["two"], value_float=2.0), node("Mul", ["f", "two"], ["y"])],
     [("x", [2, 3, 4, 4])], [("y", [2, 64])], [])

# bodies that take values from outside
save("ifm",
     [node("Relu", ["x"], ["a"]), node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["cond"]),
      node("If", ["cond"], ["o"],
           then_branch=h.make_graph([node("Mul", ["a", "w2"], ["to"])], "then", [], [h.make_tensor_value_info("to", T.FLOAT, [1, 8])]),
           else_branch=h.make_graph([node("Add", ["a", "w2"], ["eo"])], "else", [], [h.make_tensor_value_info("eo", T.FLOAT, [1, 8])])),
      node("Add", ["o", "x"], ["y"])],
     [("x", [1, 8])], [("y", [1, 8])], [weights("w2", 8), constant("zero", 0.0, np.float32)])

# what quantizing changes, drops and leaves, with one weight and bias for two convolutions
save("qnet",
     [node("Conv", ["x", "w", "b"], ["c0"], pads=[1, 1, 1, 1], name="c0"), node("Relu", ["c0"], ["r0"], name="r0"),
      node("Conv", ["r0", "w", "b"], ["c1"], pads=[1, 1, 1, 1], name="c1"), node("LeakyRelu", ["c1"], ["l1"], name="l1", alpha=0.1),
      node("Add", ["l1", "r0"], ["ad"], name="ad"), node("Sigmoid", ["ad"], ["sg"], name="sg"), node("Mul", ["ad", "sg"], ["sw"], name="sw"),
      node("AveragePool", ["sw"], ["ap"], kernel_shape=[2, 2], strides=[2, 2], name="ap"), node("Flatten", ["ap"], ["fl"], name="fl"),
      node("MatMul", ["fl", "mw"], ["mm"], name="mm"), node("Clip", ["mm", "lo", "hi"], ["cl"], name="cl"),
      node("Gemm", ["cl", "gw", "gb"], ["gm"], name="gm"), node("Softmax", ["gm"], ["y"], name="sm")],
     [("x", [1, 4, 8, 8])], [("y", [1, 5])],
     [weights("w", 4, 4, 3, 3), weights("b", 4), weights("mw", 64, 8), constant("lo", 0.0, np.float32), constant("hi", 6.0, np.float32),
      weights("gw", 8, 5), weights("gb", 5)])
