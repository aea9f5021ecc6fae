#!/usr/bin/env python3
"""Makes the small models of this folder that are not samples: run_shapes.onnx, huge_weight.onnx. Needs onnx."""
import os

from onnx import TensorProto as T
from onnx import checker, helper as h

here = os.path.dirname(os.path.abspath(__file__))


def save(name, nodes, inputs, outputs, **rest):
    model = h.make_model(h.make_graph(nodes, name, inputs, outputs, **rest), opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    with open(os.path.join(here, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


# k is an input, so nothing but a run says how wide the result is
save("run_shapes",
     [h.make_node("TopK", ["x", "k"], ["top", "places"]), h.make_node("Relu", ["top"], ["r"]), h.make_node("GatherElements", ["x", "places"], ["y"], axis=1)],
     [h.make_tensor_value_info("x", T.FLOAT, ["batch", 8]), h.make_tensor_value_info("k", T.INT64, [1])],
     [h.make_tensor_value_info("y", T.FLOAT, ["batch", "wide"]), h.make_tensor_value_info("r", T.FLOAT, ["batch", "wide"])])
# a weight of 400 MB that the file makes at run time
save("huge_weight",
     [h.make_node("Constant", [], ["shape"], value_ints=[25088, 4096]),
      h.make_node("ConstantOfShape", ["shape"], ["w"], value=h.make_tensor("v", T.FLOAT, [1], [0.5])),
      h.make_node("MatMul", ["x", "w"], ["y"])],
     [h.make_tensor_value_info("x", T.FLOAT, [1, 25088])], [h.make_tensor_value_info("y", T.FLOAT, [1, 4096])])
