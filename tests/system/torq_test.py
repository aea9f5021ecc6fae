"""The torq toolchain through stand-ins of its tools (tests/support/torq_standin): options of the user, dumps, missing tools. What torq-gen-config gave: golden_cases_test.py."""
import json
import unittest

from farm import Farm, onnx_model
from torq_tools import GOLDEN, use_standins


class Torq(Farm):
    def setUp(self):
        super().setUp()
        self.log = use_standins(self)

    def calls(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def test_options_of_the_user_reach_the_tools_and_the_report(self):
        arguments = ("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out, "--executors", "host", "--layers", "Relu*")
        options = ("--torq-hw-type", "aws_fpga", "--compiler-option=--torq-enable-buffer-debug-info", "--compiler-option=--standin-fail")
        self.run_farm(*arguments, code=0)
        plain = len(self.calls())
        self.run_farm(*arguments, *options, code=1)
        compiled = [call for call in self.calls()[plain:] if call[0] == "torq-compile"]
        self.assertTrue(compiled, "results with other options may not come from the store")
        for call in compiled:
            at = call.index("--torq-enable-buffer-debug-info")
            self.assertEqual(call[at + 1], "--standin-fail")
            self.assertIn("--torq-target-host-triple=native", call)
        report = self.report("mlp")
        self.assertEqual(report["_settings"]["compiler_options"], ["--torq-enable-buffer-debug-info", "--standin-fail"])
        self.assertEqual(report["_settings"]["torq_hw_type"], "aws_fpga")
        self.assertNotIn("runtime_options", report["_settings"])
        self.assertEqual(report["_evidence"]["host"], "hardware")
        (entry,) = [entry for entry in report["ops"].values() if entry["executors"]]
        self.assertIn("forced by --standin-fail", entry["executors"]["host"]["failure_report"]["summary"])

        # Without them the first results are back at once, and the settings say nothing of options.
        before = len(self.calls())
        self.run_farm(*arguments, "--torq-hw-type", "sim", code=0)
        self.assertEqual(len(self.calls()), before)
        self.assertEqual(set(self.report("mlp")["_settings"]), {"dims", "inputs"})

    def test_runtime_options_and_the_hardware_type_reach_the_run_tool(self):
        done = self.run_farm("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out, "--executors", "host", "--layers",
                             "Relu*", "--torq-hw-type", "board", "--runtime-option=--standin-run-fail")
        self.assertEqual(done.returncode, 1, done.stderr)
        runs = [call for call in self.calls() if call[0] == "torq-run-module"]
        self.assertTrue(runs)
        for call in runs:
            self.assertIn("--torq_hw_type=board", call)
            self.assertIn("--standin-run-fail", call)
        compiled = [call for call in self.calls() if call[0] == "torq-compile"]
        self.assertFalse([call for call in compiled if "--torq-target-host-triple=native" in call])
        self.assertEqual(self.report("mlp")["_settings"]["runtime_options"], ["--standin-run-fail"])

    def test_dumps_of_the_compiler_lie_by_layer_and_executor_also_of_what_it_refused(self):
        dumps = self.folder / "dumps"
        arguments = ("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out, f"--debug-ir={dumps}", "--layers",
                     "Sigmoid*", "--layers", "Relu*")
        done = self.run_farm(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        layers = {layer: entry for layer, entry in self.report("mlp")["ops"].items() if entry["executors"]}
        self.assertEqual({path.name for path in dumps.iterdir()}, set(layers))
        for layer in layers:
            for executor in ("nss", "css", "host"):
                with self.subTest(layer=layer, executor=executor):
                    folder = dumps / layer / executor
                    self.assertIn("torch.operator", (folder / "module.mlir").read_text())
                    self.assertIn(executor, (folder / "executor_map.json").read_text())
                    if layers[layer]["executors"][executor]["status"] != "error":
                        self.assertTrue((folder / "phases" / "module.input.mlir").exists())
                        self.assertTrue((folder / "debug" / "ir" / "module.input.mlir").exists())
        for call in self.calls():
            if call[0] == "torq-compile":
                self.assertIn("--mlir-print-ir-tree-dir=debug/ir", call)
        self.assertIn(f"[DebugIR] {3 * len(layers)} dump(s) written to {dumps}", done.stderr)

        # A second run finds everything in the store, and writes what was removed once more.
        before = len(self.calls())
        (dumps / next(iter(layers)) / "host" / "module.mlir").unlink()
        self.run_farm(*arguments)
        self.assertEqual(len(self.calls()), before)
        self.assertTrue((dumps / next(iter(layers)) / "host" / "module.mlir").exists())

    def test_small_elements_that_the_greatest_one_excuses_are_said_until_a_person_decides(self):
        model = self.folder / "net.onnx"  # the stand-in scales what css adds by 1.05
        model.write_bytes(onnx_model([("Add", ["x", "x"], ["y"])], [("x", 1, [4, 8])], [("y", 1, [4, 8])]))
        arguments = ("--model", model, "--output-dir", self.out)
        discover = ("discover", *arguments, "--executors", "css", "--tolerance-abs-frac", "0.1")
        done = self.run_farm(*discover, code=0)
        line = r"(?m)^\[Tolerance\] 1 result\(s\) are a success only because the greatest element .*: Add_y on css \(32 of 32\)$"
        self.assertRegex(done.stderr, line)
        self.assertEqual(self.report("net")["ops"]["Add_y"]["executors"]["css"]["_forgiven"], 32)
        done = self.run_farm("run", *arguments, code=0)
        self.assertRegex(done.stderr, r"(?m)^\[Tolerance\] Full model net: 32 of 32 element\(s\) pass only because ")
        self.assertEqual(self.report("net")["_whole_model"]["forgiven"], 32)
        self.run_farm("edit", self.report_path("net"), "--layer", "Add_y", "--tolerance-abs-frac", "0.1", code=0)
        self.assertNotIn("[Tolerance]", self.run_farm(*discover, code=0).stderr)
        self.run_farm("edit", self.report_path("net"), "--layer", "Add_y", "--tolerance-abs-frac", "0", code=0)
        self.assertNotIn("[Tolerance]", self.run_farm(*discover, code=1).stderr)
        self.assertEqual(self.report("net")["ops"]["Add_y"]["executors"]["css"]["status"], "difference")

    def test_a_folder_for_dumps_that_cannot_be_made_ends_the_run_before_it_begins(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        done = self.run_farm("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out, f"--debug-ir={blocked}", code=1)
        self.assertIn(f"Error: --debug-ir: cannot write into {blocked}", done.stderr)
        self.assertFalse(self.log.exists())

    def test_without_the_tools_the_variables_are_named_and_nothing_is_done(self):
        self.env["TORQ_COMPILE"] = str(self.folder / "not-there")
        done = self.run_farm("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Error: no chip was named, and the default, SL2610 (torq), cannot be used here: torq-compile", done.stderr)
        self.assertIn("TORQ_COMPILE", done.stderr)
        self.assertIn("on the PATH", done.stderr)
        self.assertIn("Chips that this machine can use now:", done.stderr)
        self.assertFalse((self.out / "torq_gen_config_mlp.json").exists())


if __name__ == "__main__":
    unittest.main()
