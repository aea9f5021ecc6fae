"""The functions of the sidecar's quantization.py, one by one, on models made here. Runs on the interpreter of the dependency cache, where onnx is."""
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def interpreter():
    """Of the dependency cache, as the lock of this checkout has it."""
    sys.path.insert(0, str(ROOT / "scripts" / "lib"))
    import toolchains

    base, _ = toolchains.read_lock(toolchains.lock_file().read_text(encoding="utf-8"))
    return str(toolchains.cache_folder() / base.folder / "bin" / "python")


if not sys.flags.isolated:
    os.execv(interpreter(), [interpreter(), "-I", "-B", os.path.abspath(__file__)] + sys.argv[1:])  # finds its packages by its own path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

spec = importlib.util.spec_from_file_location("quantization", ROOT / "worker" / "toolchain" / "sidecar" / "quantization.py")
q = importlib.util.module_from_spec(spec)
spec.loader.exec_module(q)

FLOAT = [1, 3, 8, 8]


def value(name, shape=None, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, FLOAT if shape is None else shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "layer", inputs, outputs, list(constants))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def conv(bias=True, out=4):
    rng = np.random.default_rng(7)
    constants = [constant("w", rng.standard_normal((out, 3, 3, 3)).astype(np.float32))]
    if bias:
        constants.append(constant("b", rng.standard_normal(out).astype(np.float32)))
    node = helper.make_node("Conv", ["x", "w"] + (["b"] if bias else []), ["y"], name="conv", pads=[1, 1, 1, 1])
    return model([node], [value("x")], [value("y", [1, out, 8, 8])], constants)


def quantizing(tensor, scale="s", zero="z", out=None):
    return helper.make_node("QuantizeLinear", [tensor, scale, zero], [out or tensor + "_q"])


def back(tensor, out):
    return helper.make_node("DequantizeLinear", [tensor, "s", "z"], [out])


SCALE = [constant("s", np.float32(0.1)), constant("z", np.int8(0))]


class Looking(unittest.TestCase):
    def test_a_model_is_quantized_by_a_conversion_or_a_small_integer(self):
        self.assertFalse(q.is_quantized(conv()))
        self.assertTrue(q.is_quantized(model([quantizing("x"), back("x_q", "y")], [value("x")], [value("y")], SCALE)))
        for dtype, array in ((T.INT8, np.int8), (T.UINT8, np.uint8), (T.INT16, np.int16), (T.UINT16, np.uint16)):
            cast = helper.make_node("Cast", ["x"], ["y"], to=dtype)
            self.assertTrue(q.is_quantized(model([cast], [value("x")], [value("y", dtype=dtype)])))
            self.assertTrue(q.is_quantized(model([helper.make_node("Cast", ["x"], ["y"], to=T.FLOAT)], [value("x", dtype=dtype)], [value("y")])))
            gather = helper.make_node("Gather", ["t", "x"], ["m"])
            table = model([gather, helper.make_node("Cast", ["m"], ["y"], to=T.FLOAT)], [value("x", [2], T.INT64)], [value("y", [2])], [constant("t", np.zeros(4, array))])
            self.assertTrue(q.is_quantized(table))
        ints = model([helper.make_node("Identity", ["x"], ["y"])], [value("x", dtype=T.INT32)], [value("y", dtype=T.INT32)])
        self.assertFalse(q.is_quantized(ints))

    def test_a_conversion_inside_a_body_counts(self):
        body = helper.make_graph([quantizing("x", out="xq"), back("xq", "r")], "b", [], [value("r")])
        made = model([helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)], [value("c", [], T.BOOL), value("x")], [value("y")], SCALE)
        self.assertTrue(q.is_quantized(made))

    def test_hybrid_takes_operator_form_only_where_every_operator_has_one(self):
        self.assertEqual(q.chosen_format(conv(), "hybrid"), "qoperator")
        erf = model([helper.make_node("Relu", ["x"], ["m"]), helper.make_node("Erf", ["m"], ["y"])], [value("x")], [value("y")])
        self.assertEqual(q.chosen_format(erf, "hybrid"), "qdq")
        only_conversions = model([quantizing("x"), back("x_q", "y")], [value("x")], [value("y")], SCALE)
        self.assertEqual(q.chosen_format(only_conversions, "hybrid"), "qdq")
        for wanted in ("qdq", "qoperator"):
            self.assertEqual(q.chosen_format(erf, wanted), wanted)

    def test_conversions_and_constants_compute_nothing(self):
        made = model(
            [helper.make_node("Constant", [], ["k"], value_float=2.0), quantizing("x"), back("x_q", "d"), helper.make_node("Mul", ["d", "k"], ["y"])],
            [value("x")], [value("y")], SCALE,
        )
        self.assertEqual(q.compute_ops(made), ["Mul"])


class Calibrating(unittest.TestCase):
    def test_random_samples_are_those_of_numpys_generator_with_seed_0(self):
        entries = [{"name": "a", "dtype": np.float32, "shape": [2]}, {"name": "b", "dtype": np.float32, "shape": [1, 3]}]
        samples = q.random_samples(entries, 20)
        self.assertEqual(len(samples), 20)
        rng = np.random.default_rng(0)
        for sample in samples:
            for name, shape in (("a", [2]), ("b", [1, 3])):
                expected = rng.random(shape).astype(np.float32) * 2 - 1
                self.assertEqual(sample[name].dtype, np.float32)
                np.testing.assert_array_equal(sample[name], expected)
        # The first double of that seed, so that the vector is fixed and not only the call.
        self.assertAlmostEqual(float(samples[0]["a"][0]), 0.6369616873214543 * 2 - 1, places=6)

    def test_integers_and_bools_have_their_own_type_and_stay_in_their_range(self):
        entries = [
            {"name": "index", "dtype": np.int64, "shape": [50], "lo": 0, "hi": 3},
            {"name": "open", "dtype": np.int32, "shape": [50]},
            {"name": "mask", "dtype": np.bool_, "shape": [50]},
            {"name": "shape", "dtype": np.int64, "shape": [2], "values": [4, 5]},
            {"name": "half", "dtype": np.float16, "shape": [50]},
        ]
        for sample in q.random_samples(entries, 3):
            self.assertEqual(sample["index"].dtype, np.int64)
            self.assertEqual(set(sample["index"].tolist()), {0, 1, 2})
            self.assertEqual(sample["open"].dtype, np.int32)
            self.assertEqual(set(sample["open"].tolist()), {0, 1})
            self.assertEqual(sample["mask"].dtype, np.bool_)
            self.assertEqual(sample["shape"].tolist(), [4, 5])
            self.assertEqual(sample["half"].dtype, np.float16)
            self.assertLessEqual(float(abs(sample["half"]).max()), 1)

    def test_open_dims_are_what_is_asked_for_else_1(self):
        made = model([helper.make_node("Relu", ["x"], ["y"])], [value("x", ["n", "m", 4])], [value("y", ["n", "m", 4])])
        self.assertEqual(q.input_entries(made, [], {"m": 7})[0]["shape"], [1, 7, 4])

    def test_a_persons_samples_are_archives_folders_or_loose_files(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        np.savez(os.path.join(folder, "0.npz"), x=np.zeros(2, np.float32))
        os.mkdir(os.path.join(folder, "1"))
        os.mkdir(os.path.join(folder, "empty"))
        asked = []

        def read_folder(path):
            asked.append(os.path.basename(path))
            return {"x": (np.ones(2, np.float32), "x.npy")} if path.endswith("1") else {}

        samples = q.user_samples(folder, read_folder)
        self.assertEqual([sample["x"].tolist() for sample in samples], [[0, 0], [1, 1]])
        self.assertEqual(asked, ["1", "empty"])
        with self.assertRaisesRegex(q.CalibrationError, "no folder"):
            q.user_samples(os.path.join(folder, "none"), read_folder)
        with self.assertRaisesRegex(q.CalibrationError, "empty holds no .npz, .npy or .pb file"):
            q.user_samples(os.path.join(folder, "empty"), read_folder)

    def test_samples_must_give_each_input_in_its_type(self):
        entries = [{"name": "x", "dtype": np.dtype(np.float32), "shape": [2]}]
        good = {"x": np.zeros(2, np.float32), "other": np.zeros(1)}
        self.assertEqual(list(q.check_samples([good], entries)[0]), ["x"])
        with self.assertRaisesRegex(q.CalibrationError, r"sample 1 has no array for input 'x' \(there: z\)"):
            q.check_samples([good, {"z": np.zeros(2)}], entries)
        with self.assertRaisesRegex(q.CalibrationError, "input 'x' of sample 0 is float64, must be float32"):
            q.check_samples([{"x": np.zeros(2)}], entries)

    def test_a_layer_is_calibrated_with_what_the_model_computes_there(self):
        made = model([helper.make_node("Relu", ["x"], ["m"]), helper.make_node("Add", ["m", "k"], ["y"])], [value("x", [2])], [value("y", [2])], [constant("k", np.ones(2, np.float32))])
        found = q.values_in_model(made, [{"x": np.array([-1, 5], np.float32)}], ["m", "x", "k"])
        self.assertEqual(found[0]["m"].tolist(), [0, 5])
        self.assertEqual(found[0]["x"].tolist(), [-1, 5])
        self.assertEqual(found[0]["k"].tolist(), [1, 1])


class Integers(unittest.TestCase):
    def test_inputs_and_outputs_become_integers_in_their_order(self):
        made = model(
            [quantizing("b"), quantizing("a"), back("a_q", "ad"), back("b_q", "bd"), helper.make_node("Add", ["ad", "bd"], ["s1"]),
             quantizing("s1"), back("s1_q", "y"), helper.make_node("Relu", ["m"], ["n"])],
            [value("a"), value("m"), value("b")], [value("n"), value("y")], SCALE,
        )
        done = q.full_integer(made)
        onnx.checker.check_model(done, full_check=True)
        self.assertEqual([(v.name, v.type.tensor_type.elem_type) for v in done.graph.input], [("a_q", T.INT8), ("m", T.FLOAT), ("b_q", T.INT8)])
        self.assertEqual([(v.name, v.type.tensor_type.elem_type) for v in done.graph.output], [("n", T.FLOAT), ("s1_q", T.INT8)])
        self.assertEqual([node.op_type for node in done.graph.node], ["DequantizeLinear", "DequantizeLinear", "Add", "QuantizeLinear", "Relu"])
        self.assertEqual([dim.dim_value for dim in done.graph.input[0].type.tensor_type.shape.dim], FLOAT)

    def test_several_quantizers_of_one_input_become_one(self):
        made = model(
            [quantizing("x", out="q1"), quantizing("x", out="q2"), back("q1", "d1"), back("q2", "d2"), helper.make_node("Add", ["d1", "d2"], ["y"])],
            [value("x")], [value("y")], SCALE,
        )
        done = q.full_integer(made)
        onnx.checker.check_model(done, full_check=True)
        self.assertEqual([v.name for v in done.graph.input], ["q1"])
        self.assertEqual([list(node.input[:1]) for node in done.graph.node], [["q1"], ["q1"], ["d1"]])

    def test_an_input_that_somebody_else_reads_or_reads_otherwise_stays(self):
        other = SCALE + [constant("s2", np.float32(0.5))]
        twice = model(
            [quantizing("x", out="q1"), quantizing("x", scale="s2", out="q2"), back("q1", "d1"), back("q2", "d2"), helper.make_node("Add", ["d1", "d2"], ["y"])],
            [value("x")], [value("y")], other,
        )
        also_float = model(
            [quantizing("x"), back("x_q", "d"), helper.make_node("Add", ["d", "x"], ["y"])], [value("x")], [value("y")], SCALE
        )
        for made in (twice, also_float):
            before = [node.op_type for node in made.graph.node]
            done = q.full_integer(made)
            self.assertEqual([v.name for v in done.graph.input], ["x"])
            self.assertEqual([node.op_type for node in done.graph.node], before)

    def test_an_output_that_is_read_inside_too_keeps_its_conversion(self):
        made = model(
            [helper.make_node("Relu", ["x"], ["r"]), quantizing("r"), back("r_q", "y"), helper.make_node("Relu", ["y"], ["z2"])],
            [value("x")], [value("y"), value("z2")], SCALE,
        )
        done = q.full_integer(made)
        onnx.checker.check_model(done, full_check=True)
        self.assertEqual([v.name for v in done.graph.output], ["r_q", "z2"])
        self.assertEqual([node.op_type for node in done.graph.node], ["Relu", "QuantizeLinear", "DequantizeLinear", "Relu"])

    def test_without_a_zero_point_the_type_is_unsigned(self):
        node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"])
        self.assertEqual(q.element_type(model([node], [value("x")], [value("y", dtype=T.UINT8)], SCALE[:1]), node), T.UINT8)


class Quantizing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.out = os.path.join(self.folder, "out.onnx")

    def run_it(self, made, **options):
        told = q.quantize_file(made, self.out, lambda: q.random_samples(q.input_entries(made, [], {}), 20), **options)
        self.assertEqual(os.listdir(self.folder), ["out.onnx"] if told["quantized"] or options.get("keep") else [])
        return told, onnx.load(self.out) if told["quantized"] else None

    def arrays(self, made):
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}

    def test_numbers_are_those_of_minmax_with_asymmetric_activations_and_symmetric_weights(self):
        made = conv()
        told, done = self.run_it(made)
        self.assertEqual(told, {"quantized": True, "already": False, "format": "qdq", "note": "", "inputs": ["x"], "outputs": ["y"],
                                "operators": [["conv", "y_QuantizeLinear_Input"]]})
        found = self.arrays(done)
        samples = [sample["x"] for sample in q.random_samples(q.input_entries(made, [], {}), 20)]
        low, high = min(0, min(s.min() for s in samples)), max(0, max(s.max() for s in samples))
        scale = (high - low) / 255
        self.assertAlmostEqual(float(found["x_scale"]), float(scale), places=8)
        self.assertEqual(int(found["x_zero_point"]), round(-128 - low / scale))
        weight = self.arrays(made)["w"]
        self.assertAlmostEqual(float(found["w_scale"]), float(abs(weight).max() / 127), places=8)
        self.assertEqual(int(found["w_zero_point"]), 0)
        self.assertEqual(found["w_quantized"].dtype, np.int8)
        self.assertEqual(found["b_quantized"].dtype, np.int32)
        self.assertIn("x_QuantizeLinear", [node.name for node in done.graph.node])

    def test_per_channel_scales_are_one_for_each_output_channel(self):
        _, done = self.run_it(conv(), per_channel=True)
        self.assertEqual(self.arrays(done)["w_scale"].shape, (4,))

    def test_operator_form_and_integer_edge(self):
        told, done = self.run_it(conv(), wanted="hybrid", integers=True)
        self.assertEqual(told["format"], "qoperator")
        self.assertEqual([node.op_type for node in done.graph.node], ["QLinearConv"])
        self.assertEqual((told["inputs"], told["outputs"]), (["x_quantized"], ["y_quantized"]))
        self.assertEqual(done.graph.input[0].type.tensor_type.elem_type, T.INT8)
        self.assertEqual([dim.dim_value for dim in done.graph.output[0].type.tensor_type.shape.dim], [1, 4, 8, 8])

    def test_a_relu_behind_a_convolution_vanishes(self):
        made = conv()
        made.graph.node.append(helper.make_node("Relu", ["y"], ["r"]))
        made.graph.output[0].name = "r"
        _, done = self.run_it(made)
        self.assertEqual(q.compute_ops(done), ["Conv"])

    def sharing(self, names=("first", "second")):
        """Two convolutions with one bias; the first one's result has the name that ONNX Runtime's quantizer gives the copy of the bias."""
        rng = np.random.default_rng(7)
        constants = [constant(name, (rng.standard_normal((3, 3, 1, 1)) * size).astype(np.float32)) for name, size in (("w", 1), ("v", 1 / 30))]
        constants.append(constant("b", rng.standard_normal(3).astype(np.float32)))
        nodes = [
            helper.make_node("Conv", ["x", "w", "b"], ["b0"], name=names[0]),
            helper.make_node("Neg", ["b0"], ["n"], name="neg"),
            helper.make_node("Conv", ["n", "v", "b"], ["y"], name=names[1]),
        ]
        return model(nodes, [value("x")], [value("y")], constants)

    def test_operators_that_share_a_bias_get_one_of_their_own(self):
        for names in (("first", "second"), ("", "")):
            made = self.sharing(names)
            before = made.SerializeToString()
            own = q.with_own_biases(made)
            self.assertEqual(made.SerializeToString(), before)
            self.assertEqual([list(node.input) for node in own.graph.node], [["x", "w", "b"], ["b0"], ["n", "v", "b_2"]])
            np.testing.assert_array_equal(self.arrays(own)["b"], self.arrays(own)["b_2"])
        alone = conv()
        self.assertIs(q.with_own_biases(alone), alone)

    def test_a_shared_bias_is_mixed_up_with_no_result(self):
        import onnxruntime

        for names in (("first", "second"), ("", "")):
            for wanted in ("qdq", "qoperator"):
                with self.subTest(names=names, wanted=wanted):
                    made = self.sharing(names)
                    _, done = self.run_it(made, wanted=wanted)
                    os.remove(self.out)
                    feed = {"x": np.random.default_rng(0).random(FLOAT).astype(np.float32)}
                    exact, near = (onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)[0] for m in (made, done))
                    np.testing.assert_allclose(near, exact, rtol=0, atol=0.03 * np.abs(exact).max())

    def test_the_copy_of_a_bias_has_a_name_that_begins_no_other(self):
        made = self.sharing()
        made.graph.node[0].output[0] = made.graph.node[1].input[0] = "b_2_quantized"
        self.assertEqual(q.with_own_biases(made).graph.node[2].input[2], "b_3")

    def test_what_the_quantizer_leaves_in_float_is_said(self):
        told, _ = self.run_it(model([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y")]))
        self.assertEqual((told["quantized"], told["note"]), (False, "ONNX Runtime's quantizer leaves Relu in float here"))

    def test_a_quantized_model_is_left_as_it_is(self):
        told, _ = self.run_it(model([quantizing("x"), back("x_q", "y")], [value("x")], [value("y")], SCALE))
        self.assertEqual((told["quantized"], told["already"], told["note"]), (False, True, "it is quantized already"))

    def test_what_is_not_quantized_is_written_where_it_is_to_be_kept(self):
        for made in (model([helper.make_node("Relu", ["x"], ["y"])], [value("x")], [value("y")]), model([quantizing("x"), back("x_q", "y")], [value("x")], [value("y")], SCALE)):
            told, _ = self.run_it(made, keep=True)
            self.assertFalse(told["quantized"])
            self.assertEqual(onnx.load(self.out), made)

    def test_a_model_without_inputs_is_an_error(self):
        made = model([helper.make_node("Relu", ["c"], ["y"])], [], [value("y", [2])], [constant("c", np.ones(2, np.float32))])
        with self.assertRaisesRegex(ValueError, "no inputs to calibrate with"):
            self.run_it(made)


if __name__ == "__main__":
    unittest.main()
