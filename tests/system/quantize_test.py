"""Quantization with the real programs: discover --quantize, and the command quantize."""
import io
import json
import os
import pathlib
import shutil
import struct
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import MODELS, Farm, onnx_model

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
CNN = GOLDEN / "models" / "cnn_repeat.onnx"
FUSED = {"Relu_r0", "Relu_r1", "Relu_r2", "Relu_r3"}  # each behind a convolution


def npz(path, **arrays):
    """float32 arrays as NumPy stores them: name -> (shape, values)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (shape, values) in arrays.items():
            head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "".join(f"{n}, " for n in shape) + "), }"
            head += " " * (64 - (len(head) + 11) % 64) + "\n"
            out = io.BytesIO()
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
            out.write(struct.pack(f"<{len(values)}f", *values))
            archive.writestr(name + ".npy", out.getvalue())


class Quantize(Farm):
    def test_layers_of_one_kind_whose_order_the_quantizer_changes_are_found_by_name(self):
        # The shortcut of a block comes behind its convolutions in the file, and before the second one in the quantizer's order.
        weights = [("w1", 3), ("w2", 8), ("w3", 3)]
        model = self.folder / "block.onnx"
        model.write_bytes(onnx_model(
            [("Conv", ["x", "w1"], ["c1"]), ("Conv", ["c1", "w2"], ["c2"]), ("Conv", ["x", "w3"], ["c3"]), ("Add", ["c2", "c3"], ["y"])],
            [("x", 1, [1, 3, 4, 4])], [("y", 1, [1, 8, 4, 4])],
            [(name, 1, [8, width, 1, 1], struct.pack(f"<{8 * width}f", *(0.01 * (i % 7 - 3) for i in range(8 * width)))) for name, width in weights]))
        for form in ("qdq", "qoperator"):
            with self.subTest(form):
                done = self.discover(model, "ort-cpu", "--quantize", "--quant-format", form)
                self.assertIn("Mapped 4/4 original layers to 4 quantized compute ops", done.stderr)
                ops = self.report("block")["ops"]
                self.assertEqual({layer: entry["_node_index"] for layer, entry in ops.items()}, {"Conv_c1": 0, "Conv_c2": 2, "Conv_c3": 1, "Add_y": 3})

    def test_layers_are_tested_quantized_and_fused_ones_leave_the_compiler_file(self):
        done = self.discover(CNN, "ort-cpu", "--quantize", "--full-integer")
        report = self.report("cnn_repeat")
        self.assertEqual(report["_settings"]["quantize"], {"format": "qdq", "per_channel": False, "full_integer": True})
        self.assertEqual(report["_quantization"], {"quantized": 7, "float": 6, "fused": 4})
        self.assertIn("[QuantizedONNXtoMLIR] Mapped 9/13 original layers to 9 quantized compute ops", done.stderr)
        self.assertIn("[Quantize] cnn_repeat: 7 of 13 layers are quantized", done.stderr)
        ops = report["ops"]
        golden = json.loads((GOLDEN / "report" / "cnn_quant_qdq" / "01" / "torq_gen_config_cnn_repeat.json").read_text())["ops"]
        self.assertEqual(list(ops), list(golden))
        for layer, entry in ops.items():
            with self.subTest(layer):
                # Locations are those of the quantized module, whatever the toolchain.
                self.assertEqual(entry["mlir_location"], golden[layer]["mlir_location"])
                self.assertEqual(entry["mac_count"], golden[layer]["mac_count"])
                self.assertEqual(entry.get("_fused", False), layer in FUSED)
                self.assertEqual("_node_index" in entry, layer not in FUSED)
                in_float = layer.split("_")[0] in ("Relu", "MaxPool", "Reshape")
                self.assertEqual(entry.get("_quantized", True), not in_float)
                self.assertEqual("_quantize_note" in entry, in_float)
        self.assertIn("leaves Relu in float", ops["Relu_r0"]["_quantize_note"])
        self.assertIsNone(ops["MaxPool_mp"]["recommended_executor"])
        compiler = json.loads((self.out / "torq_gen_config_cnn_repeat_compiler.json").read_text())["op_assignments"]
        self.assertEqual(set(compiler), {entry["mlir_location"] for layer, entry in ops.items()
                                         if entry["recommended_executor"] and layer not in FUSED})
        macs = json.loads((self.out / "torq_gen_config_cnn_repeat_mac_debug.json").read_text())["ops"]
        wanted = json.loads((GOLDEN / "report" / "cnn_quant_qdq" / "01" / "torq_gen_config_cnn_repeat_mac_debug.json").read_text())["ops"]
        self.assertEqual(macs, wanted)

    def test_a_second_run_finds_all_in_the_store_and_other_settings_set_results_aside(self):
        self.discover(CNN, "ort-cpu", "--quantize")
        files = self.files()
        again = self.discover(CNN, "ort-cpu", "--quantize")
        self.assertIn("Results: 0 fresh, 26 from the store", again.stderr)
        self.assertEqual(self.files(), files)
        plain = self.discover(CNN, "ort-cpu")
        self.assertIn("quantize: {'format': 'qdq', 'per_channel': False, 'full_integer': False} there, not set here", plain.stderr)
        self.assertNotIn("_quantization", self.report("cnn_repeat"))
        # Layers that stay in float are the same work with and without.
        self.assertIn("Results: 14 fresh, 12 from the store", plain.stderr)

    def test_each_format_and_per_channel_gives_modules_of_its_own(self):
        seen = set()
        # In operator form GlobalAveragePool by itself stays in float.
        for flags, quantized in (((), 7), (("--per-channel",), 7), (("--quant-format", "qoperator"), 6), (("--quant-format=hybrid", "--full-integer"), 6)):
            done = self.discover(CNN, "ort-cpu", "--quantize", *flags, "--json")
            report = self.report("cnn_repeat")
            self.assertEqual(report["_quantization"]["quantized"], quantized, done.stderr)
            seen.add(json.dumps(report["_settings"]["quantize"], sort_keys=True))
            locations = [entry["mlir_location"] for entry in report["ops"].values() if ":" in entry["mlir_location"]]
            self.assertEqual(len(set(locations)), len(locations))
            self.assertEqual(len(locations), 9)
        self.assertEqual(len(seen), 4)

    def test_a_layer_that_a_provider_takes_in_part_is_refused_for_its_own_reason(self):
        # Its float neighbours are taken, so the refused try leaves a context model of them behind.
        done = self.discover("gen_repeat_cnn", "SM8550", "--executors", "htp", "--layers", "Add_*", "--quantize", "--quant-format", "qoperator")
        self.assertIn("QLinearAdd` are not supported by QNN EP", done.stderr)
        entries = [entry for layer, entry in self.report("gen_repeat_cnn")["ops"].items() if layer.startswith("Add_")]
        self.assertTrue(entries)
        for entry in entries:
            self.assertIn("Unsupported nodes in QNN EP: { name: n2, type: QLinearAdd }", entry["executors"]["htp"]["failure_report"]["summary"])
            self.assertNotIn("exists already", entry["executors"]["htp"]["failure_report"]["summary"])

    def test_a_quantized_model_is_used_as_it_is(self):
        done = self.discover("mobilenet_edge_qdq_int8", "null", "--quantize")
        self.assertIn("[Quantize] the model is quantized already; it is used as it is", done.stderr)
        report = self.report("mobilenet_edge_qdq_int8")
        self.assertNotIn("_quantization", report)
        self.assertFalse([layer for layer, entry in report["ops"].items() if "_fused" in entry or "_quantized" in entry])

    def test_samples_of_the_user_calibrate_and_bad_ones_are_refused(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("Sigmoid", ["x"], ["s"]), ("Mul", ["s", "x"], ["y"])], [("x", 1, [1, 4])], [("y", 1, [1, 4])]))
        samples = self.folder / "samples"
        samples.mkdir()
        npz(samples / "0.npz", x=([1, 4], [0.0, 1.0, 2.0, 300.0]))
        flags = ("--quantize", "--calibration", samples)
        self.discover(model, "null", *flags)
        first = self.report("net")["_settings"]["quantize"]["calibration"]
        shutil.rmtree(self.out)
        npz(samples / "0.npz", x=([1, 4], [0.0, 1.0, 2.0, 3.0]))
        self.discover(model, "null", *flags)
        self.assertNotEqual(self.report("net")["_settings"]["quantize"]["calibration"], first)
        npz(samples / "0.npz", other=([1, 4], [0.0, 1.0, 2.0, 3.0]))
        bad = self.discover(model, "null", *flags, code=1)
        self.assertIn("--calibration: sample 0 has no array for input 'x' (there: other)", bad.stderr)
        missing = self.discover(model, "null", "--quantize", "--calibration", self.folder / "none", code=1)
        self.assertIn("Error: --calibration: no folder", missing.stderr)

    def test_flags_that_say_how_need_the_switch_and_only_a8w8_is_there(self):
        self.assertIn("nothing follows from --full-integer", self.discover("gen_odd", "null", "--full-integer").stderr)
        self.assertEqual(self.discover("gen_odd", "null", "--quantize", "--quant-dtype", "A16W8").returncode, 2)

    def test_a_model_is_converted_or_quantized(self):
        for flag in ("--auto-convert-bf16", "--auto-convert-int32"):
            done = self.discover("gen_odd", "null", "--quantize", flag, code=1)
            self.assertIn(f"Error: {flag} and --quantize exclude each other", done.stderr)

    def test_a_quantized_subgraph_has_places_of_its_own(self):
        self.discover(CNN, "null", "--quantize", "--subgraph-from=Conv_c1", "--subgraph-to=MaxPool_mp")
        [path] = self.out.glob("torq_gen_config_cnn_repeat_subgraph_*[0-9].json")
        ops = json.loads(path.read_text())["ops"]
        self.assertEqual([layer for layer, entry in ops.items() if entry.get("_fused")], ["Relu_r1", "Relu_r2", "Relu_r3"])
        self.assertEqual(ops["Conv_c1"]["_node_index"], 0)
        self.assertEqual(ops["MaxPool_mp"]["recommended_executor"], "e0")

    # --- the command ---

    def test_the_command_writes_a_model_beside_its_model(self):
        model = self.folder / "net1.0-12.onnx"
        shutil.copy(CNN, model)
        done = self.run_farm("quantize", "--model", model, code=0)
        made = self.folder / "net1.0-12.int8.onnx"
        self.assertEqual(done.stdout, f"Quantized model saved to: {made}\n")
        self.assertIn(b"DequantizeLinear", made.read_bytes())
        other = self.folder / "new" / "q.onnx"
        done = self.run_farm("quantize", "--model", model, "--output", other, "--full-integer", "--per-channel", "--quant-format", "qoperator",
                             "--num-calib", 3, code=0)
        self.assertEqual(done.stdout, f"Full-integer quantized model saved to: {other}\n")
        self.assertIn(b"QLinearConv", other.read_bytes())
        self.assertNotIn(b"DequantizeLinear", other.read_bytes())
        again = self.run_farm("quantize", "--model", other, "--output", self.folder / "again.onnx", code=0)
        self.assertIn("[Quantize] the model is quantized already; it is copied as it is", again.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.onnx")), ["again.onnx", "net1.0-12.int8.onnx", "net1.0-12.onnx"])

    def test_the_command_says_what_is_wrong(self):
        missing = self.run_farm("quantize", "--model", "none.onnx", code=1)
        self.assertEqual(missing.stderr, "Error: Model not found: none.onnx\n")
        broken = self.folder / "broken.onnx"
        broken.write_bytes(b"hello")
        refused = self.run_farm("quantize", "--model", broken, code=1)
        self.assertRegex(refused.stderr, r"Error quantizing model: cannot read broken\.onnx: .+\n")
        self.assertFalse((self.folder / "broken.int8.onnx").exists())
        self.assertIn("--dataset is not implemented", self.run_farm("quantize", "--model", CNN, "--dataset", "imagenet", code=1).stderr)
        self.assertIn("--model is required", self.run_farm("quantize", code=1).stderr)
        same = self.run_farm("quantize", "--model", broken, "--output", broken, code=1)
        self.assertIn("the output is the model itself", same.stderr)
        odd = self.run_farm("quantize", "--model", MODELS / "gen_odd.onnx", "--output", os.fsdecode(os.fsencode(self.folder) + b"/\xff.onnx"), code=1)
        self.assertIn("the quantizer takes paths in UTF-8 only", odd.stderr)
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        done = self.run_farm("quantize", "--model", MODELS / "gen_repeat_cnn.onnx", "--output", fifo, code=1)
        self.assertIn("is no regular file", done.stderr)
        self.assertTrue(fifo.is_fifo())

    def test_a_model_that_stays_in_float_is_kept_and_said(self):
        model = self.folder / "relu.onnx"
        model.write_bytes(onnx_model([("Relu", ["x"], ["y"])], [("x", 1, [1, 4])], [("y", 1, [1, 4])]))
        done = self.run_farm("quantize", "--model", model, code=0)
        self.assertIn("[Quantize] nothing was quantized: ONNX Runtime's quantizer leaves Relu in float here", done.stderr)
        self.assertTrue((self.folder / "relu.int8.onnx").exists())


if __name__ == "__main__":
    unittest.main()
