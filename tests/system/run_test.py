"""run with the real programs: the whole model by its report or compiler file, split by executor or by torq's map."""
import json
import pathlib
import shutil
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import MODELS, Farm, onnx_model
from torq_tools import GOLDEN, use_standins


class RunFarm(Farm):
    def run_model(self, model, *arguments, code=None):
        path = model if isinstance(model, pathlib.Path) else MODELS / f"{model}.onnx"
        return self.run_farm("run", "--model", path, "--output-dir", self.out, *arguments, code=code)

    def edit(self, model, layer, executor):
        self.run_farm("edit", self.report_path(model), "--layer", layer, "--executor", executor, code=0)

    def alternate(self, model):
        """Every layer on another executor than the one before."""
        report = self.report(model)
        for place, layer in enumerate(report["ops"]):
            self.edit(model, layer, report["_executors"][place % 2])


class Run(RunFarm):
    def test_a_mixed_assignment_runs_segment_by_segment(self):
        self.discover("gen_tiny_transformer", "ort-cpu", code=0)
        before = self.report("gen_tiny_transformer")
        self.alternate("gen_tiny_transformer")
        done = self.run_model("gen_tiny_transformer", "--check-boundaries", code=0)
        self.assertEqual(done.stdout, "")
        self.assertIn("Full model gen_tiny_transformer: comparison passed", done.stderr)
        self.assertIn("--- Full Model Comparison ---\n  Max relative difference: ", done.stderr)
        report = self.report("gen_tiny_transformer")
        whole = report["_whole_model"]
        self.assertEqual(whole["status"], "success")
        self.assertGreaterEqual(len(whole["segments"]), 3)
        self.assertEqual(whole["switches"], len(whole["segments"]) - 1)
        self.assertGreater(whole["bytes_crossed"], 0)
        self.assertEqual({segment["status"] for segment in whole["segments"]}, {"success"})
        self.assertEqual({segment["executor"] for segment in whole["segments"]}, {"cpu", "cpu-noopt"})
        self.assertIn("\n\n--- Full Model Comparison ---\n", report["final_report_text"])
        self.assertEqual(list(report["ops"]), list(before["ops"]))
        self.assertEqual(list(report)[-3:], ["discovery_report", "has_critical_failures", "final_report_text"])
        # The same again comes from the store and writes the same bytes.
        files = self.files()
        self.run_model("gen_tiny_transformer", "--check-boundaries", code=0)
        self.assertEqual(self.files(), files)
        # A discover begins anew.
        self.discover("gen_tiny_transformer", "ort-cpu", code=0)
        self.assertNotIn("_whole_model", self.report("gen_tiny_transformer"))

    def test_it_runs_from_the_compiler_file_alone_and_leaves_it_as_it_is(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        self.report_path("gen_odd").unlink()
        compiler = self.out / "torq_gen_config_gen_odd_compiler.json"
        content = json.loads(compiler.read_text())
        for place, entry in list(content["op_assignments"].items())[::2]:
            entry["executor"] = "cpu-noopt"
        compiler.write_text(json.dumps(content))
        files = self.files()
        done = self.run_model("gen_odd", "--chip", "ort-cpu", code=0)
        self.assertIn("Full model gen_odd: comparison passed", done.stderr)
        self.assertRegex(done.stderr, r"Full model gen_odd: [2-9] segment\(s\)")
        # Of layers a compiler file tells nothing, and no report is written.
        self.assertRegex(done.stderr, r"\n\n--- Full Model Comparison ---\n  Max relative difference: ")
        for untrue in ("Total layers tested", "at least one working executor", "Output file", "Detailed report"):
            self.assertNotIn(untrue, done.stderr)
        self.assertEqual(self.files(), files)

    def test_it_runs_from_the_report_alone_and_makes_the_compiler_file(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        compiler = self.out / "torq_gen_config_gen_odd_compiler.json"
        content = compiler.read_bytes()
        compiler.unlink()
        self.run_model("gen_odd", code=0)
        self.assertEqual(compiler.read_bytes(), content)

    def test_a_wrong_boundary_is_no_pass_where_the_outputs_are_right(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("Sigmoid", ["x"], ["h"]), ("Sigmoid", ["h"], ["i"]), ("Ceil", ["i"], ["y"])], [("x", 1, [1, 512])], [("y", 1, [1, 512])]))
        self.discover(model, "host-cpu", code=0)
        self.edit("net", "Ceil_y", "vmvx")
        # The second Sigmoid, above 0.5, is right to its last bits only; its ceiling is 1 whatever these are.
        report = self.report("net")
        report["default_tolerance"].update(fp_avg_tol=0.0, fp_max_tol=0.0, fp_abs_tol_frac=0.0)
        self.report_path("net").write_text(json.dumps(report))
        self.run_model(model, code=0)
        done = self.run_model(model, "--check-boundaries", code=1)
        self.assertIn("Full model net: passed at the outputs, but segment 1 (llvm-cpu) goes wrong", done.stderr)
        self.assertNotIn("comparison passed", done.stderr)
        whole = self.report("net")["_whole_model"]
        self.assertEqual((whole["status"], whole["first_wrong_segment"]), ("success", 0))
        self.run_model(model, "--check-boundaries", code=1)  # from the store

    def test_an_output_that_is_listed_twice_is_compared_once(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("Relu", ["x"], ["h"]), ("Sigmoid", ["h"], ["y"])], [("x", 1, [1, 4])], [("y", 1, [1, 4]), ("y", 1, [1, 4])]))
        self.discover(model, "ort-cpu", code=0)
        self.edit("net", "Relu_h", "cpu-noopt")
        self.run_model(model, "--check-boundaries", code=0)
        self.assertEqual(self.report("net")["_whole_model"]["total"], 4)

    def test_a_shape_that_what_is_fed_decides_is_no_constant_and_stays_in_one_segment(self):
        model = self.folder / "net.onnx"
        one = struct.pack("<q", 1)
        model.write_bytes(onnx_model(
            [("Relu", ["x"], ["r"]), ("NonZero", ["r"], ["z"]), ("Transpose", ["z"], ["t"]), ("GatherND", ["k", "t"], ["v"]), ("ReduceSum", ["v"], ["s"]),
             ("Shape", ["z"], ["h"]), ("Gather", ["h", "one"], ["n"]), ("Mul", ["k", "n"], ["m"]), ("Add", ["m", "s"], ["y"])],
            [("x", 1, [64]), ("k", 7, [64])], [("y", 7, [64])], [("one", 7, [], one)]))
        self.discover(model, "ort-cpu", code=0)
        done = self.run_model(model, "--check-boundaries", code=0)
        self.assertIn("Full model net: 1 segment(s)", done.stderr)
        self.assertNotIn("together with", done.stderr)
        self.alternate("net")
        done = self.run_model(model, "--check-boundaries", code=0)
        self.assertIn("[ExecutorAssignments] 2 operator(s) run on cpu-noopt together with NonZero_z (Transpose_t of cpu, ReduceSum_s of cpu)", done.stderr)
        self.assertIn("Full model net: comparison passed", done.stderr)
        self.assertGreaterEqual(len(self.report("net")["_whole_model"]["segments"]), 3)

    def test_what_follows_from_random_numbers_decides_nothing(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("RandomNormalLike", ["x"], ["r"]), ("Add", ["x", "r"], ["a"]), ("Relu", ["a"], ["y"]), ("Neg", ["x"], ["z"])],
                                     [("x", 1, [1, 64])], [("y", 1, [1, 64]), ("z", 1, [1, 64])]))
        self.discover(model, "ort-cpu", code=0)
        said = "not compared, as the model's format leaves open what is in them (random numbers, for one): 1 of 2 output(s), y\n"
        self.assertIn(said, self.run_model(model, "--check-boundaries", code=0).stderr)
        self.alternate("net")
        self.assertIn(said, self.run_model(model, "--check-boundaries", code=0).stderr)
        self.assertGreaterEqual(len(self.report("net")["_whole_model"]["segments"]), 2)

    def test_iree_compiles_each_segment_for_its_backend(self):
        self.discover("gen_odd", "host-cpu", code=0)
        self.alternate("gen_odd")
        self.run_model("gen_odd", code=0)
        whole = self.report("gen_odd")["_whole_model"]
        self.assertEqual(whole["status"], "success")
        self.assertGreaterEqual(len(whole["segments"]), 3)
        self.assertEqual({segment["executor"] for segment in whole["segments"]}, {"llvm-cpu", "vmvx"})

    def test_an_input_that_nothing_takes_is_given_all_the_same(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("Relu", ["x"], ["h"]), ("Sigmoid", ["h"], ["y"])], [("unused", 1, [2]), ("x", 1, [1, 4])], [("y", 1, [1, 4])]))
        for chip, other in (("ort-cpu", "cpu-noopt"), ("host-cpu", "vmvx")):
            with self.subTest(chip=chip):
                out = self.folder / chip
                self.discover(model, chip, code=0, out=out)
                for segments in (1, 2):
                    done = self.run_farm("run", "--model", model, "--output-dir", out, code=0)
                    self.assertIn(f"Full model net: {segments} segment(s)", done.stderr)
                    self.run_farm("edit", self.report_path("net", out), "--layer", "Relu_h", "--executor", other, code=0)

    def test_another_chip_and_other_settings_are_refused_by_name(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        files = self.files()
        chip = self.run_model("gen_odd", "--chip", "host-cpu", code=1)
        self.assertIn("is of chip ort-cpu, not of host-cpu", chip.stderr)
        settings = self.run_model("gen_odd", "--dim", "batch=3", code=1)
        self.assertIn("dims: {} there, {'batch': 3} here", settings.stderr)
        self.assertEqual(self.files(), files)

    def test_a_tolerance_that_can_be_none_is_refused_by_name(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        path = self.report_path("gen_odd")
        for value, shown in ((-1, "-1"), (float("nan"), "null")):
            report = self.report("gen_odd")
            report["default_tolerance"]["fp_max_tol"] = value
            path.write_text(json.dumps(report))
            done = self.run_model("gen_odd", code=1)
            self.assertEqual(done.stderr, f"Error: {path}: 'default_tolerance.fp_max_tol' is {shown}, and must be a number from 0 on; correct it "
                                          "there, or take it out and discover again\n")
        layer = next(iter(report["ops"]))
        report["ops"][layer]["tolerance_used"] = {"fp_avg_tol": -1}
        path.write_text(json.dumps(report))
        self.assertIn(f"{path}: 'ops.{layer}.tolerance_used.fp_avg_tol' is -1, and", self.discover("gen_odd", "ort-cpu", code=1).stderr)

    def test_a_file_that_does_not_say_its_chip_is_named_where_the_default_is_not_it(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        path = self.report_path("gen_odd")
        compiler = self.out / "torq_gen_config_gen_odd_compiler.json"
        report = self.report("gen_odd")
        path.unlink()
        said = f"Error: {compiler} does not say of which chip it is; name it with --chip: "
        # Neither can the default be used here, nor would it have these executors.
        self.assertTrue(self.run_model("gen_odd", code=1).stderr.startswith(said))
        self.env["LAYERFARM_CHIP"] = "null"
        self.assertEqual(self.run_model("gen_odd", code=1).stderr, said + "none of its executors is one of null\n")
        self.run_model("gen_odd", "--chip", "ort-cpu", code=0)
        del report["_chip"]
        path.write_text(json.dumps(report))
        self.assertTrue(self.run_model("gen_odd", code=1).stderr.startswith(f"Error: {path} does not say of which chip"))

    def test_a_report_of_another_model_of_the_same_name_is_refused_and_left_as_it_is(self):
        model = self.folder / "net.onnx"
        chain = [("Relu", ["x"], ["h"]), ("Sigmoid", ["h"], ["i"]), ("Tanh", ["i"], ["y"])]
        model.write_bytes(onnx_model(chain, [("x", 1, [1, 4])], [("y", 1, [1, 4])]))
        self.discover(model, "ort-cpu", code=0)
        model.write_bytes(onnx_model([("Relu", ["x"], ["h"]), ("Sigmoid", ["h"], ["y"])], [("x", 1, [1, 4])], [("y", 1, [1, 4])]))
        report, files = self.report_path("net"), self.files()
        done = self.run_model(model, code=1)
        self.assertIn(f"Error: {report} is of another model: net.onnx has no layer Sigmoid_i, Tanh_y; discover again", done.stderr)
        self.assertEqual(self.files(), files)
        # What a discover has marked as gone is no reason.
        kept = self.report("net")
        for layer in ("Sigmoid_i", "Tanh_y"):
            kept["ops"][layer]["_not_in_model"] = True
        report.write_text(json.dumps(kept))
        self.run_model(model, code=0)
        report.unlink()
        compiler = self.out / "torq_gen_config_net_compiler.json"
        compiler.write_bytes(files[compiler.name])
        done = self.run_model(model, "--chip", "ort-cpu", code=1)
        self.assertRegex(done.stderr, "Error: .*_compiler.json is of another model: net.onnx has no operator at line [0-9]+:[0-9]+; discover again")
        self.assertEqual(compiler.read_bytes(), files[compiler.name])
        self.assertFalse(report.exists())

    def test_without_report_and_compiler_file_three_lines_say_what_to_do(self):
        done = self.run_model("gen_odd", "--chip", "ort-cpu", code=1)
        lines = done.stderr.strip().split("\n")
        self.assertEqual(len(lines), 3, done.stderr)
        self.assertEqual(lines[0], "Error: Config not found for gen_odd")
        self.assertIn("layerfarm discover --model", lines[2])
        self.assertIn("--chip ort-cpu", lines[2])

    def test_refused_models(self):
        self.assertIn("--model is required", self.run_farm("run", code=1).stderr)
        lite = self.folder / "m.tflite"
        lite.write_bytes(b"x")
        self.assertRegex(self.run_model(lite, code=1).stderr, "^Error: ")
        self.run_farm("run", "--no-such-flag", code=2)

    def test_what_only_discover_does_is_refused_by_name(self):
        for flags, words in [(["--save-bf16-model", "x"], "--save-bf16-model"),
                             (["--subgraph-from", "a"], "--subgraph-from needs --subgraph-to")]:
            with self.subTest(flags=flags):
                self.assertRegex(self.run_model("gen_odd", *flags, code=1).stderr, f"^Error: .*{words}")

    def test_a_subgraph_runs_from_a_report_of_its_own_and_leaves_the_whole_models_files_alone(self):
        model = "gen_tiny_transformer"
        self.discover(model, "ort-cpu", code=0)
        whole = self.files()
        names = list(self.report(model)["ops"])
        part = ("--subgraph-from", names[4], "--subgraph-to", names[9].split("_", 1)[1])
        other = ("--subgraph-from", names[1], "--subgraph-to", names[3])
        # Neither the whole model's report nor another subgraph's will do.
        self.discover(model, "ort-cpu", *other, code=0)
        missing = self.run_model(model, *part, code=1)
        self.assertIn(f"Error: Config not found for {model}", missing.stderr)
        self.assertIn(f"--subgraph-from={names[4]} --subgraph-to=", missing.stderr)
        self.discover(model, "ort-cpu", *part, code=0)
        own = f"{model}_subgraph_4_9"
        self.assertEqual(self.report(own)["_subgraph"], [4, 9])
        self.edit(own, names[6], "cpu-noopt")
        done = self.run_model(model, *part, "--check-boundaries", code=0)
        self.assertIn(f"[Subgraph] Resolved '{names[4]}' -> 4, ", done.stderr)
        self.assertIn(f"Full model {model}: comparison passed", done.stderr)
        report = self.report(own)
        self.assertEqual(list(report["ops"]), names[4:10])
        self.assertEqual(report["_whole_model"]["status"], "success")
        self.assertEqual(sum(segment["operators"] for segment in report["_whole_model"]["segments"]), 6)
        self.assertGreaterEqual(report["_whole_model"]["switches"], 1)
        files = self.files()
        self.assertEqual({name: files[name] for name in whole}, whole)
        self.assertNotIn("_whole_model", self.report(f"{model}_subgraph_1_3"))
        # Where the numbers come from is asked once more; the run itself comes from the store.
        self.run_model(model, *part, "--check-boundaries", code=0)
        self.assertEqual(self.files(), files)

    def test_a_subgraphs_compiler_file_serves_where_its_report_is_gone(self):
        part = ("--subgraph-from", "mm::0", "--subgraph-to", "mm::0")
        self.discover("gen_odd", "ort-cpu", *part, code=0)
        self.report_path("gen_odd_subgraph_0_0").unlink()
        files = self.files()
        done = self.run_model("gen_odd", "--chip", "ort-cpu", *part, code=0)
        self.assertIn("Full model gen_odd: comparison passed", done.stderr)
        self.assertEqual(self.files(), files)

    def test_names_of_a_subgraph_that_mean_nothing(self):
        done = self.run_model("gen_odd", "--subgraph-from", "nowhere", "--subgraph-to", "mm::0", code=1)
        self.assertIn("Error: Could not resolve --subgraph-from='nowhere'. Available: ['MatMul_mm::0', ", done.stderr)
        done = self.run_model("gen_odd", "--subgraph-from", "Add_层 1", "--subgraph-to", "mm::0", code=0)
        self.assertIn("Case generation skipped: --subgraph-from='Add_层 1' comes after --subgraph-to='mm::0'", done.stderr)

    def quantized(self, chip, *flags, **edits):
        """Discovers cnn_repeat, edits it, runs it with boundaries; what the report says of the run, and all that was printed."""
        cnn = GOLDEN / "models" / "cnn_repeat.onnx"
        self.discover(cnn, chip, "--quantize", *flags)
        for layer, executor in edits.items():
            self.edit("cnn_repeat", layer, executor)
        done = self.run_model(cnn, "--quantize", *flags, "--check-boundaries")
        return self.report("cnn_repeat")["_whole_model"], done

    def test_a_quantized_model_runs_by_the_layers_that_its_operators_stand_for(self):
        whole, done = self.quantized("ort-cpu", "--full-integer", Conv_c1="cpu-noopt", Gemm_logits="cpu-noopt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[QuantizedONNXtoMLIR] Mapped 9/13 original layers to 9 quantized compute ops", done.stderr)
        self.assertNotIn("are of no operator", done.stderr)
        # Pooling has no executor and goes with what it pools, Q and DQ with their operator.
        self.assertEqual([segment["executor"] for segment in whole["segments"]], ["cpu", "cpu-noopt", "cpu", "cpu-noopt"])
        self.assertEqual({segment["status"] for segment in whole["segments"]}, {"success"})
        # Four values of logits; int8 is compared by its steps.
        self.assertEqual((whole["status"], whole["total"]), ("success", 4))
        self.assertNotIn("max_rel_diff", whole["max_diff"])
        ops = self.report("cnn_repeat")["ops"]
        self.assertEqual(ops["Relu_r1"]["mlir_location"], "Relu")
        # In float the two values of 8x8x8 and the one of 8 would take this many.
        self.assertLess(whole["bytes_crossed"], (2 * 512 + 8) * 4)
        again = self.run_model(GOLDEN / "models" / "cnn_repeat.onnx", "--quantize", "--full-integer", "--check-boundaries", code=0)
        self.assertEqual(self.report("cnn_repeat")["_whole_model"], whole, again.stderr)

    def test_each_form_of_a_quantized_model_runs(self):
        for flags in (("--per-channel",), ("--quant-format", "qoperator"), ("--quant-format", "hybrid", "--full-integer")):
            with self.subTest(flags=flags):
                whole, done = self.quantized("ort-cpu", *flags, Conv_c2="cpu-noopt")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(whole["status"], "success")
                self.assertGreaterEqual(whole["switches"], 2)

    def test_a_quantized_model_runs_only_as_it_was_discovered(self):
        cnn = GOLDEN / "models" / "cnn_repeat.onnx"
        self.discover(cnn, "ort-cpu", "--quantize", "--layers", "Conv_c0")
        files = self.files()
        for flags, here in (((), "not set here"), (("--quantize", "--per-channel"), "'per_channel': True")):
            done = self.run_model(cnn, *flags, code=1)
            self.assertRegex(done.stderr, r"was made with other settings: quantize: \{'format': 'qdq'.* there, .*" + here)
        self.assertEqual(self.files(), files)

    def test_a_quantized_subgraph_runs(self):
        cnn = GOLDEN / "models" / "cnn_repeat.onnx"
        part = ("--quantize", "--subgraph-from=Conv_c1", "--subgraph-to=MaxPool_mp")
        self.discover(cnn, "ort-cpu", *part)
        own = "cnn_repeat_subgraph_2_9"
        self.edit(own, "Add_res", "cpu-noopt")
        done = self.run_model(cnn, *part, code=0)
        self.assertIn("Full model cnn_repeat: comparison passed", done.stderr)
        self.assertEqual([segment["executor"] for segment in self.report(own)["_whole_model"]["segments"]], ["cpu", "cpu-noopt", "cpu"])

    def test_dumps_of_the_compiler_are_kept_where_they_are_asked_for(self):
        self.discover("gen_odd", "host-cpu", code=0)
        self.alternate("gen_odd")
        dumps = self.folder / "dumps"
        done = self.run_model("gen_odd", f"--debug-ir={dumps}", code=0)
        self.assertIn(f"[DebugIR] 1 dump(s) written to {dumps}", done.stderr)
        segments = self.report("gen_odd")["_whole_model"]["segments"]
        folders = {f"segment_{number}_{segment['executor']}" for number, segment in enumerate(segments, 1)}
        self.assertEqual({path.name for path in (dumps / "gen_odd_full_model").iterdir()}, folders)
        for folder in folders:
            self.assertTrue([path for path in (dumps / "gen_odd_full_model" / folder).rglob("*") if path.is_file()])
        shutil.rmtree(dumps)
        self.run_model("gen_odd", f"--debug-ir={dumps}", code=0)  # from the store
        self.assertTrue(dumps.exists())
        shutil.rmtree(dumps)
        self.run_model("gen_odd", code=0)
        self.assertFalse(dumps.exists() or (self.folder / "tmp").exists())

    def test_a_chip_that_takes_no_inputs_fails_and_says_so(self):
        self.discover("gen_odd", "null")
        done = self.run_model("gen_odd", code=1)
        self.assertIn("Full model run failed: the toolchain 'null' takes no inputs", done.stderr)
        self.assertEqual(self.report("gen_odd")["_whole_model"]["status"], "error")


class RunTorq(RunFarm):
    def setUp(self):
        super().setUp()
        self.log = use_standins(self)
        self.mlp = GOLDEN / "models" / "mlp.onnx"

    def calls(self, program):
        calls = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [call for call in calls if call[0] == program]

    def test_the_whole_model_passes_by_its_map_as_it_did_with_torq_gen_config(self):
        self.run_farm("discover", "--model", self.mlp, "--output-dir", self.out, code=1)
        self.log.unlink()
        compiler = (self.out / "torq_gen_config_mlp_compiler.json").read_bytes()
        done = self.run_model(self.mlp, code=0)
        self.assertIn("Full model mlp: comparison passed", done.stderr)
        self.assertNotIn("finished with", done.stderr)
        self.assertIn("\nLAST RUN OF THE WHOLE MODEL: passed\n", self.run_farm("view", self.report_path("mlp"), code=0).stdout)
        theirs = json.loads((GOLDEN / "report" / "mlp_plain" / "02" / "torq_gen_config_mlp.json").read_text())
        numbers = r"--- Full Model Comparison ---\n  Max relative difference: \S+\n  Max absolute difference: \S+\n  Number of differences: 0 out of 4 \[0.00%\]"
        self.assertRegex(theirs["final_report_text"], numbers)
        self.assertRegex(self.report("mlp")["final_report_text"], numbers)
        self.assertEqual((self.out / "torq_gen_config_mlp_compiler.json").read_bytes(), compiler)
        (compile_call,) = self.calls("torq-compile")
        self.assertFalse([flag for flag in compile_call if flag.startswith("--torq-disable")])
        self.assertTrue(compile_call[-2].startswith("--torq-executor-map="))
        self.assertEqual(len(self.calls("torq-run-module")), 1)
        # The hardware type that the chip names anyway is no other setting; another one is.
        self.run_model(self.mlp, "--torq-hw-type", "sim", code=0)
        self.assertIn("torq_hw_type", self.run_model(self.mlp, "--torq-hw-type", "board", code=1).stderr)

    def test_an_edit_that_picks_a_wrong_executor_shows_in_the_whole_model(self):
        self.run_farm("discover", "--model", self.mlp, "--output-dir", self.out, code=1)
        self.edit("mlp", "Mul_silu", "nss")  # gives 1.10 times what it should
        done = self.run_model(self.mlp, code=1)
        self.assertIn("Full model comparison failed: ", done.stderr)
        self.assertRegex(done.stderr, r"\n\nRun finished with a failing whole model: [0-9]+/4 exceed fp_max_tol [0-9.]+\n$")
        self.assertRegex(self.run_farm("view", self.report_path("mlp"), code=0).stdout, r"\nLAST RUN OF THE WHOLE MODEL: [0-9]+/4 exceed fp_max_tol [0-9.]+\n")
        self.assertEqual(self.report("mlp")["_whole_model"]["status"], "difference")
        self.edit("mlp", "Sigmoid_gate", "nss")  # refused at compile time
        done = self.run_model(self.mlp, code=1)
        self.assertIn("Full model setup failed: ", done.stderr)
        self.assertIn("Sigmoid", done.stderr)
        self.assertRegex(done.stderr, r"\n\nRun finished with a failing whole model: setup failed: [^\n]*\n$")

    def test_the_report_of_a_subgraph_by_torq_gen_config_is_taken_and_an_edit_reaches_the_tool(self):
        self.out.mkdir()
        golden = GOLDEN / "report" / "cnn_subgraph" / "01"
        for path in golden.glob("*.json"):
            shutil.copy(path, self.out)
        files = self.files()
        cnn, own = GOLDEN / "models" / "cnn_repeat.onnx", "cnn_repeat_subgraph_2_5"
        done = self.run_model(cnn, "--subgraph-from=c1", "--subgraph-to=Relu_r2", code=0)
        self.assertIn("Full model cnn_repeat: comparison passed", done.stderr)
        self.assertRegex(self.report(own)["final_report_text"], r"Number of differences: 0 out of 512 \[0\.00%\]")
        self.assertEqual(self.report(own)["ops"], json.loads((golden / f"torq_gen_config_{own}.json").read_text())["ops"])
        self.assertEqual({name for name, content in self.files().items() if files.get(name) != content}, {f"torq_gen_config_{own}.json"})
        # As the original's case goes on: a layer moves to another executor.
        self.edit(own, "Conv_c1", "host")
        compiler = self.out / f"torq_gen_config_{own}_compiler.json"
        theirs = json.loads((GOLDEN / "report" / "cnn_subgraph" / "04" / compiler.name).read_text())
        self.run_model(cnn, "--subgraph-from=Conv_c1", "--subgraph-to=r2", code=0)
        self.assertEqual(json.loads(compiler.read_text()), theirs)
        self.assertEqual(len(self.calls("torq-compile")), 2)  # none is lost on the way

    def test_the_dump_of_a_map_is_one_also_where_the_compiler_refuses(self):
        self.run_farm("discover", "--model", self.mlp, "--output-dir", self.out, code=1)
        self.edit("mlp", "Sigmoid_gate", "nss")
        dumps = self.folder / "dumps"
        self.run_model(self.mlp, f"--debug-ir={dumps}", code=1)
        self.assertIn("torch.operator", (dumps / "mlp_full_model" / "module.mlir").read_text())
        self.assertIn("nss", (dumps / "mlp_full_model" / "executor_map.json").read_text())
        (call,) = self.calls("torq-compile")[-1:]
        self.assertIn("--mlir-print-ir-after-all", call)

    def test_the_compiler_file_of_torq_gen_config_is_taken_as_it_is(self):
        self.out.mkdir()
        shutil.copy(GOLDEN / "report" / "mlp_plain" / "01" / "torq_gen_config_mlp_compiler.json", self.out)
        files = self.files()
        done = self.run_model(self.mlp, code=0)
        self.assertIn("Full model mlp: comparison passed", done.stderr)
        self.assertEqual(self.files(), files)

    def test_the_report_of_torq_gen_config_is_taken_and_keeps_its_own(self):
        self.out.mkdir()
        golden = GOLDEN / "report" / "mlp_plain" / "01" / "torq_gen_config_mlp.json"
        shutil.copy(golden, self.out)
        self.run_model(self.mlp, code=0)
        ours, theirs = self.report("mlp"), json.loads(golden.read_text())
        self.assertEqual(ours["ops"], theirs["ops"])
        self.assertEqual(ours["discovery_report"], theirs["discovery_report"])


if __name__ == "__main__":
    unittest.main()
