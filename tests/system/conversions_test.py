"""Conversions and subgraphs, with the real programs: what is tested, where it is written, what is refused."""
import json
import os
import pathlib
import shutil
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import MODELS, Farm, onnx_model

FLOAT, INT64 = 1, 7


class Convert(Farm):
    def write(self, name, *parts, **more):
        path = self.folder / name
        path.write_bytes(onnx_model(*parts, **more))
        return path

    def chain(self):
        return self.write("net.onnx", [("Relu", ["x"], ["h"]), ("Mul", ["h", "w"], ["y"])], [("x", FLOAT, ["batch", 4])],
                          [("y", FLOAT, ["batch", 4])], constants=[("w", FLOAT, [4], struct.pack("<4f", 1, 2, 3, 4))])

    def statuses(self, report):
        return {layer: {name: result["status"] for name, result in entry["executors"].items()} for layer, entry in report["ops"].items()}

    def test_a_bf16_model_is_tested_and_kept(self):
        saved = self.folder / "new" / "net16.onnx"
        done = self.discover(self.chain(), "host-cpu", "--auto-convert-bf16", "--save-bf16-model", saved, "--executors", "llvm-cpu", code=0)
        self.assertIn("[BF16] 1 constants and 3 values became bfloat16, 0 casts were added", done.stderr)
        self.assertIn(f"[BF16] model saved to: {saved}", done.stderr)
        report = self.report("net")
        self.assertEqual(report["_settings"]["convert"], {"bf16": True})
        self.assertEqual(self.statuses(report), {"Relu_h": {"llvm-cpu": "success"}, "Mul_y": {"llvm-cpu": "success"}})
        # The saved model is what was tested: nothing is left to do for it, and its operators stand where they stood.
        again = self.discover(saved, "host-cpu", "--executors", "llvm-cpu", code=0)
        self.assertIn("Results: 0 fresh, 2 from the store", again.stderr)
        for layer, entry in self.report("net16")["ops"].items():
            self.assertRegex(entry["mlir_location"], r"^\d+:\d+$")
            self.assertEqual(entry["mlir_location"], report["ops"][layer]["mlir_location"])

    def test_shapes_that_only_a_run_shows_are_those_of_the_float_model(self):
        """ONNX Runtime refuses to run most of a bfloat16 model."""
        for layer in ("Slice_from_slice_01", "Expand_106"):
            with self.subTest(layer=layer):
                self.discover("bert_toy", "host-cpu", "--auto-convert-bf16", "--executors", "llvm-cpu", "--layers", layer, out=self.folder / layer, code=0)
                report = json.loads((self.folder / layer / "torq_gen_config_bert_toy.json").read_text())
                self.assertEqual(report["ops"][layer]["executors"]["llvm-cpu"]["status"], "success")

    def test_results_of_another_form_of_the_model_are_set_aside(self):
        net = self.chain()
        self.discover(net, "ort-cpu", code=0)
        plain = self.report("net")
        self.assertNotIn("convert", plain["_settings"])
        done = self.discover(net, "ort-cpu", "--auto-convert-int32", code=0)
        self.assertIn("[INT32] 0 constants and 0 values became 32-bit integers, 0 casts were added", done.stderr)
        self.assertIn("convert", done.stderr)
        self.assertEqual(self.report("net")["_settings"]["convert"], {"int32": True})

    def test_the_model_itself_and_what_is_no_file_are_not_written_over(self):
        net = self.chain()
        before = net.read_bytes()
        done = self.discover(net, "ort-cpu", "--auto-convert-bf16", "--save-bf16-model", net, code=1)
        self.assertIn("--save-bf16-model names the model itself", done.stderr)
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        done = self.discover(net, "ort-cpu", "--auto-convert-bf16", "--save-bf16-model", fifo, code=1)
        self.assertIn("is no regular file", done.stderr)
        self.assertTrue(fifo.is_fifo())
        self.assertEqual(net.read_bytes(), before)

    def test_indices_become_32_bits(self):
        net = self.write("net.onnx", [("Gather", ["x", "i"], ["y"]), ("Reshape", ["y", "s"], ["z"])],
                         [("x", FLOAT, [4, 6]), ("i", INT64, [2])], [("z", FLOAT, [3, 4])],
                         constants=[("s", INT64, [2], struct.pack("<2q", 3, 4))])
        done = self.discover(net, "ort-cpu", "--auto-convert-int32", code=0)
        self.assertIn("[INT32] 0 constants and 1 values became 32-bit integers, 0 casts were added", done.stderr)

    def test_a_constant_out_of_range_ends_the_run_by_name(self):
        net = self.write("net.onnx", [("Mul", ["x", "mask"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])],
                         constants=[("mask", FLOAT, [2], struct.pack("<2f", 0, -3.4e38))])
        done = self.discover(net, "ort-cpu", "--auto-convert-bf16", code=1)
        errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn("net.onnx: cannot be converted to bfloat16: element 1 of the constant 'mask' is -3.4e+38", errors[0])
        self.assertFalse(self.report_path("net").exists())
        saved = self.folder / "saved.onnx"
        done = self.discover(net, "ort-cpu", "--auto-convert-bf16", "--save-bf16-model", saved, code=1)
        self.assertIn("net.onnx: cannot be converted to bfloat16: element 1 of the constant 'mask'", done.stderr)
        self.assertFalse(saved.exists())

    def test_flags_that_belong_together(self):
        net = self.chain()
        for flags, named in (
            (["--subgraph-from", "h"], "--subgraph-to"),
            (["--subgraph-to", "h"], "--subgraph-from"),
            (["--save-bf16-model", "a.onnx"], "--auto-convert-bf16"),
        ):
            with self.subTest(flags):
                done = self.discover(net, "ort-cpu", *flags, code=1)
                self.assertRegex(done.stderr, rf"^Error: {flags[0]} needs {named}")
        twin = self.folder / "twin.onnx"
        shutil.copy(net, twin)
        done = self.run_farm("discover", "--model", net, "--model", twin, "--chip", "ort-cpu", "--auto-convert-bf16",
                             "--save-bf16-model", "a.onnx", code=1)
        self.assertIn("Error: --save-bf16-model names one file, and there are 2 models", done.stderr)

    def test_a_dry_run_saves_nothing(self):
        saved = self.folder / "saved.onnx"
        self.discover(self.chain(), "ort-cpu", "--auto-convert-bf16", "--save-bf16-model", saved, "--dry-run", code=0)
        self.assertFalse(saved.exists())


class Subgraph(Farm):
    def test_a_subgraph_has_files_and_numbers_of_its_own(self):
        self.discover("gen_tiny_transformer", "ort-cpu")
        whole = self.report("gen_tiny_transformer")
        before = self.files()
        names = list(whole["ops"])
        first, last = names[4], names[9]
        done = self.discover("gen_tiny_transformer", "ort-cpu", "--subgraph-from", first, "--subgraph-to", last.split("_", 1)[1])
        self.assertIn(f"[Subgraph] Resolved '{first}' -> 4, '{last.split('_', 1)[1]}' -> 9", done.stderr)
        self.assertIn("from the store", done.stderr)
        self.assertIn("Results: 0 fresh", done.stderr)
        files = self.files()
        self.assertEqual({name: files[name] for name in before}, before)
        self.assertEqual(sorted(set(files) - set(before)), [f"torq_gen_config_gen_tiny_transformer_subgraph_4_9{end}.json"
                                                            for end in ("", "_compiler", "_mac_debug")])
        part = self.report("gen_tiny_transformer_subgraph_4_9")
        self.assertEqual(part["model_name"], "gen_tiny_transformer")
        self.assertEqual(list(part["ops"]), names[4:10])
        self.assertEqual([entry["_node_index"] for entry in part["ops"].values()], list(range(6)))
        for layer, entry in part["ops"].items():
            self.assertRegex(entry["mlir_location"], r"^\d+:\d+$")
            self.assertEqual(entry["executors"], whole["ops"][layer]["executors"])
        lines = [int(entry["mlir_location"].split(":")[0]) for entry in part["ops"].values()]
        self.assertEqual(lines, sorted(lines))
        self.assertLess(lines[0], int(whole["ops"][first]["mlir_location"].split(":")[0]))

    def test_case_names_say_the_subgraph(self):
        done = self.discover("gen_odd", "ort-cpu", "--subgraph-from", "MatMul_mm::0", "--subgraph-to", "MatMul_mm::0", "--skip-executors",
                             "cpu-noopt", "-v", code=0)
        self.assertIn("gen_odd_subgraph_0_0_layer_MatMul_0_cpu-noopt skipped", done.stderr)

    def test_names_that_are_not_there(self):
        done = self.discover("gen_odd", "ort-cpu", "--subgraph-from", "nowhere", "--subgraph-to", "MatMul_mm::0", code=1)
        self.assertIn("Error: Could not resolve --subgraph-from='nowhere'. Available: ['MatMul_mm::0', 'mm::0', 'Add_层 1', '层 1', ",
                      done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_an_end_before_the_beginning_is_skipped(self):
        done = self.discover("gen_odd", "ort-cpu", "--subgraph-from", "Add_层 1", "--subgraph-to", "mm::0", code=0)
        self.assertIn("Case generation skipped: --subgraph-from is node 1, which comes after --subgraph-to, node 0", done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
