"""What a user of torq-gen-config does from the first discover to the quantized model, command by command, on stand-ins of the torq tools: one discover
shared by all, each test in a folder of its own, every file checked against its schema and field by field, and nothing else left."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import BIN, LONGEST, Farm, onnx_model
from torq_tools import TESTS, use_standins

EXAMPLES = TESTS / "golden" / "examples"
SCHEMAS = TESTS.parent / "configs" / "schemas"
CHECK = BIN.parent / "tests" / "bin" / "schema_check"
FLOAT = 1  # ONNX's number
# Of all farms of a machine together, so they stay; and what ONNX Runtime leaves wherever it is used.
LOCKS = {"layerfarm-work.lock", "layerfarm-turn.lock", ".ses"}
EXECUTORS = ["nss", "css", "host"]
TOLERANCE = {"fp_avg_tol": 0.01, "fp_max_tol": 0.01}
LAYERS = ["Conv_conv_out", "Conv_h", "Mul_m", "Add_y"]
# By the tables of the stand-ins: nss gives Mul times 1.10, css gives Add times 1.05.
STATUSES = {("Mul_m", "nss"): "difference", ("Add_y", "css"): "difference"}
RECOMMENDED = {"Conv_conv_out": "nss", "Conv_h": "nss", "Mul_m": "css", "Add_y": "nss"}
PLACES = {"Conv_conv_out": "10:10", "Conv_h": "11:10", "Mul_m": "12:10", "Add_y": "13:10"}
MACS = {"Conv_conv_out": 4 * 6 * 6 * 3 * 3 * 3, "Conv_h": 4 * 6 * 6 * 4, "Mul_m": 0, "Add_y": 0}


def model_bytes():
    """Four layers; its six constants put the first of them on line 10 of the imported module, as in the manual's example."""
    def floats(count, step):
        return struct.pack(f"<{count}f", *(((i * step) % 11 - 5) / 50 for i in range(count)))
    return onnx_model(
        [("Conv", ["x", "w0", "b0"], ["conv_out"]), ("Conv", ["conv_out", "w1", "b1"], ["h"]), ("Mul", ["h", "k"], ["m"]), ("Add", ["m", "c"], ["y"])],
        [("x", FLOAT, [1, 3, 8, 8])], [("y", FLOAT, [1, 4, 6, 6])],
        [("w0", FLOAT, [4, 3, 3, 3], floats(108, 7)), ("b0", FLOAT, [4], floats(4, 3)), ("w1", FLOAT, [4, 4, 1, 1], floats(16, 5)),
         ("b1", FLOAT, [4], floats(4, 2)), ("k", FLOAT, [4, 1, 1], struct.pack("<4f", 0.5, 1.5, 2.5, 3.5)), ("c", FLOAT, [4, 1, 1], floats(4, 9))])


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Workflow(Farm):
    """A folder `work` with the model, where commands are called; places of their own for what a program may leave elsewhere."""

    def setUp(self):
        super().setUp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        use_standins(self)
        self.work = self.folder / "work"
        self.work.mkdir()
        self.elsewhere = self.folder / "elsewhere"
        self.elsewhere.mkdir()
        self.env |= {"TMPDIR": str(self.elsewhere)}
        (self.work / "model.onnx").write_bytes(model_bytes())

    def tool(self, *arguments, code=0, name="torq-gen-config"):
        done = subprocess.run([BIN / name, *map(str, arguments)], env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LONGEST, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def read(self, name):
        return json.loads((self.work / name).read_text())

    def check_left(self, *names):
        """Nothing but these files, and nothing of ours elsewhere."""
        self.assertEqual(sorted(files_in(self.work)), sorted(names))
        self.assertEqual({path.name for path in self.elsewhere.iterdir()} - LOCKS, set())
        self.assertEqual(self.processes(), [])

    def check_schemas(self, model="model"):
        for kind, end in (("report", ""), ("compiler", "_compiler"), ("mac_debug", "_mac_debug")):
            path = self.work / f"torq_gen_config_{model}{end}.json"
            done = subprocess.run([CHECK, "--closed", SCHEMAS / f"{kind}.schema.json", path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertEqual(path.read_text(), json.dumps(json.loads(path.read_text()), indent=2))


FILES = ("model.onnx", "torq_gen_config_model.json", "torq_gen_config_model_compiler.json", "torq_gen_config_model_mac_debug.json")


class Shared(Workflow):
    """Tests that begin with the files of one discover."""

    first = Workflow()
    done = None

    def setUp(self):
        super().setUp()
        for name in FILES:
            shutil.copy(self.first.work / name, self.work / name)
        # What tests ask for again is known, and none sees what another has done.
        shutil.copytree(self.first.cache, self.cache)


def setUpModule():
    unittest.addModuleCleanup(Shared.first.doCleanups)
    Shared.first.setUp()
    Shared.done = Shared.first.tool("discover", "--model", "model.onnx", code=1)
    Shared.first.check_left(*FILES)


class Discover(Shared):
    def test_the_three_files_fit_their_schemas_and_nothing_else_is_left(self):
        self.check_left(*FILES)
        self.check_schemas()

    def test_the_report_says_of_every_layer_what_was_found(self):
        report = self.read(FILES[1])
        self.assertEqual(list(report), ["version", "default_tolerance", "ops", "model_name", "_model_digest", "_chip", "_executors", "_evidence", "_settings",
                                        "_default_tolerances", "_reference", "_tools", "_assignments", "discovery_report", "has_critical_failures",
                                        "final_report_text"])
        self.assertEqual(report["version"], "1.1")
        self.assertEqual(report["default_tolerance"], TOLERANCE)
        self.assertEqual(report["model_name"], "model")
        self.assertEqual(report["_chip"], "SL2610")
        self.assertEqual(report["_executors"], EXECUTORS)
        self.assertEqual(report["_evidence"], {name: "emulator" for name in EXECUTORS})
        self.assertEqual(report["_settings"], {"dims": {}, "inputs": {"seed": 1234}})
        self.assertEqual(report["_default_tolerances"], {name: TOLERANCE for name in EXECUTORS})
        self.assertRegex(report["_reference"], r"^onnxruntime \d+\.\d+\.\d+$")
        self.assertEqual(list(report["_tools"]), ["torq"])
        self.assertEqual(list(report["ops"]), LAYERS)
        for place, layer in enumerate(LAYERS):
            entry = report["ops"][layer]
            self.assertEqual(list(entry), ["executors", "_node_index", "_orig_index", "mac_count", "mlir_location", "recommended_executor"])
            self.assertEqual((entry["_node_index"], entry["_orig_index"]), (place, place))
            self.assertEqual(entry["mac_count"], MACS[layer])
            self.assertEqual(entry["mlir_location"], PLACES[layer])
            self.assertEqual(entry["recommended_executor"], RECOMMENDED[layer])
            self.assertEqual(list(entry["executors"]), EXECUTORS)
            for executor, result in entry["executors"].items():
                with self.subTest(layer=layer, executor=executor):
                    self.check_result(result, STATUSES.get((layer, executor), "success"))
        self.assertEqual({layer: one["executor"] for layer, one in report["_assignments"].items()}, RECOMMENDED)
        self.assertEqual(report["discovery_report"], {
            "summary": {"total_layers": 4, "status_counts": {"success": 10, "difference": 2, "error": 0}, "executor_counts": {"nss": 3, "css": 1, "host": 0}},
            "critical_failures": []})
        self.assertIs(report["has_critical_failures"], False)
        self.assertEqual(report["final_report_text"], "\n".join([
            "FINAL EXECUTOR DISCOVERY REPORT", "", "Model: model", "Total layers tested: 4", "", "Status Summary:", "  success: 10", "  difference: 2",
            "  error: 0", "", "First Working Executor Distribution:", "  NSS: 3", "  CSS: 1", "  HOST: 0", "",
            "No critical failures - all layers have at least one working executor", "", "Per-Layer Status:",
            "  Layer          NSS          CSS          HOST         Recommended", "-" * 74,
            "  Conv_conv_out  success      success      success      nss", "  Conv_h         success      success      success      nss",
            "  Mul_m          difference   success      success      css", "  Add_y          success      difference   success      nss"]))

    def check_result(self, result, status):
        self.assertEqual(result["status"], status)
        self.assertEqual(result["tolerance_used"], TOLERANCE)
        self.assertEqual(result["_num_elements"], 144)
        self.assertGreater(result["_cosine"], 0.99)
        self.assertLess(result["_worst_index"], 144)
        self.assertEqual(set(result["max_diff"]), {"max_rel_diff", "max_abs_diff"})
        if status == "success":
            self.assertEqual(set(result), {"status", "tolerance_used", "max_diff", "_num_diffs", "_num_elements", "_mean_rel_diff", "_required_tolerance",
                                           "_cosine", "_worst_index"})
            self.assertLess(result["_required_tolerance"], 0.01)
            return
        self.assertGreater(result["max_diff"]["max_rel_diff"], 0.01)
        self.assertEqual(result["_required_tolerance"], result["max_diff"]["max_rel_diff"])
        count = result["_num_diffs"]
        self.assertEqual(result["_reason"], f"{count}/144 exceed fp_max_tol 0.01")
        self.assertEqual(result["failure_report"], {"type": "accuracy_failure", "summary": "\n".join([
            f"Max relative difference: {result['max_diff']['max_rel_diff']!r}", f"Max absolute difference: {result['max_diff']['max_abs_diff']!r}",
            f"Number of differences: {count} out of 144 [{100 * count / 144:.2f}%]"])})

    def test_the_compiler_file_and_the_sidecar_say_the_same(self):
        self.assertEqual(self.read(FILES[2]), {"op_assignments": {PLACES[layer]: {"executor": RECOMMENDED[layer]} for layer in LAYERS}, "model_name": "model"})
        macs = self.read(FILES[3])
        self.assertEqual(list(macs), ["ops", "model_name"])
        self.assertEqual(list(macs["ops"]), sorted(LAYERS))
        for layer, entry in macs["ops"].items():
            self.assertEqual(entry["mac_count"], MACS[layer])
            self.assertEqual(sum(record["mac_count"] for record in entry["mac_breakdown"]), MACS[layer])
        (record,) = macs["ops"]["Conv_conv_out"]["mac_breakdown"]
        self.assertEqual(record, {"op_type": "Conv", "mac_count": 3888, "output_shape": [1, 4, 6, 6], "weight_shape": [4, 3, 3, 3], "per_element_macs": 27,
                                  "input_dtype": "float32", "weight_dtype": "float32", "output_dtype": "float32",
                                  "formula": "prod(output_shape) * prod(weight_shape[1:])"})

    def test_what_is_printed_names_chip_cases_progress_and_report(self):
        text = self.done.stderr
        self.assertEqual(self.done.stdout, "")
        self.assertTrue(text.startswith("[Chip] chip=SL2610 target=SL2610\n"), text[:200])
        for layer in LAYERS:
            for executor in EXECUTORS:
                self.assertRegex(text, rf"(?m)^Layer {layer}: {executor.upper()} = {STATUSES.get((layer, executor), 'success')}\b")
        self.assertEqual(re.findall(r"(?m)^\[progress\] (\d+)/12 \[", text), [str(i) for i in range(1, 13)])
        self.assertIn("\nDetailed report saved to: ", text)
        self.assertTrue(text.endswith("\nDiscovery finished with 2 failing case(s)\n"), text[-200:])

    def test_the_other_name_of_the_program_writes_the_same_bytes(self):
        before = files_in(self.work)
        for name in FILES[1:]:
            (self.work / name).unlink()
        shutil.rmtree(self.cache)
        self.tool("discover", "--model", "model.onnx", code=1, name="layerfarm")
        self.assertEqual(files_in(self.work), before)


class Use(Shared):
    def test_view_shows_the_report_a_layer_and_the_compiler_file(self):
        before = files_in(self.work)
        summary = self.tool("view", "torq_gen_config_model.json").stdout
        self.assertTrue(summary.startswith("=" * 80 + "\nMODEL: model\n" + "=" * 80 + "\n\nSTATUS COUNTS:\n  success: 10\n  difference: 2\n  error: 0\n"), summary)
        self.assertIn("CRITICAL FAILURES (all executors error): 0\n", summary)
        self.assertIn("DEFAULT TOLERANCE:\n  fp_avg_tol: 0.01\n  fp_max_tol: 0.01\n", summary)
        self.assertEqual(self.tool("view", "--model", "model.onnx").stdout, summary)
        layer = self.tool("view", "torq_gen_config_model.json", "Mul_m").stdout
        self.assertEqual(self.tool("view", "--model", "model.onnx", "Mul_m").stdout, layer)
        for line in ("LAYER: Mul_m", "Node Index: 2", "MLIR Location: 12:10", "Recommended Executor: css", "  [NSS]: difference", "    Type: accuracy_failure",
                     "    Tolerance: {'fp_avg_tol': 0.01, 'fp_max_tol': 0.01}", "  [HOST]: success"):
            self.assertIn(f"\n{line}\n", layer)
        compiler = self.tool("view", "torq_gen_config_model_compiler.json").stdout
        self.assertIn("Total assignments: 4\n\nExecutor distribution:\n  NSS: 3\n  CSS: 1\n\nAssignments:\n  10:10 → nss\n", compiler)
        self.assertIn("not found", self.tool("view", "torq_gen_config_model.json", "Mul_x", code=1).stdout)
        self.assertEqual(files_in(self.work), before)
        self.check_left(*FILES)

    def test_edit_changes_one_entry_and_the_compiler_file(self):
        before, macs = self.read(FILES[1]), (self.work / FILES[3]).read_bytes()
        done = self.tool("edit", "--model", "model.onnx", "--layer", "Conv_conv_out", "--executor", "host")
        self.assertEqual(done.stdout, "Updated recommended_executor for 'Conv_conv_out' to 'host'\nUpdated compiler JSON: torq_gen_config_model_compiler.json\n")
        self.assertEqual(done.stderr, "")
        wanted = before
        wanted["ops"]["Conv_conv_out"] |= {"recommended_executor": "host", "_edited": True}
        wanted["_assignments"]["Conv_conv_out"]["executor"] = "host"
        wanted["final_report_text"] = wanted["final_report_text"].replace("success      nss\n  Conv_h", "success      host\n  Conv_h")
        self.assertEqual(self.read(FILES[1]), wanted)
        self.assertEqual(self.read(FILES[2])["op_assignments"]["10:10"], {"executor": "host"})
        self.assertEqual((self.work / FILES[3]).read_bytes(), macs)
        self.check_schemas()
        self.check_left(*FILES)
        listed = self.tool("edit", "--model", "model.onnx", "--list", "conv").stdout
        self.assertIn("  Conv_conv_out  success      success      success      host\n", listed)
        self.assertTrue(listed.endswith("\n\nTotal: 2 layer(s) (filtered from 4)\n"))

    def test_an_edited_tolerance_turns_a_difference_into_the_recommendation(self):
        done = self.tool("edit", "--model", "model.onnx", "--layer", "Mul_m", "--tolerance-max", "0.1")
        self.assertIn("Mul_m on nss: difference -> success", done.stderr)
        self.assertEqual(self.read(FILES[1])["ops"]["Mul_m"]["recommended_executor"], "nss")
        self.assertEqual(self.read(FILES[2])["op_assignments"]["12:10"], {"executor": "nss"})
        self.check_schemas()
        edited = files_in(self.work)
        self.tool("discover", "--model", "model.onnx", code=1)
        self.assertEqual(files_in(self.work), edited)

    def test_run_passes_by_the_files_and_fails_by_a_wrong_edit(self):
        before = self.read(FILES[1])
        done = self.tool("run", "--model", "model.onnx")
        self.assertIn("Full model model: comparison passed", done.stderr)
        report = self.read(FILES[1])
        whole = report["_whole_model"]
        self.assertEqual((whole["status"], whole["tolerance_used"], whole["num_diffs"], whole["total"]), ("success", TOLERANCE, 0, 144))
        self.assertIn("\n\n--- Full Model Comparison ---\n  Max relative difference: ", report["final_report_text"])
        self.assertEqual({key: value for key, value in report.items() if key not in ("_whole_model", "final_report_text")},
                         {key: value for key, value in before.items() if key != "final_report_text"})
        self.check_schemas()
        self.check_left(*FILES)
        self.tool("edit", "--model", "model.onnx", "--layer", "Mul_m", "--executor", "nss")
        self.assertIn("Full model comparison failed: ", self.tool("run", "--model", "model.onnx", code=1).stderr)
        self.assertEqual(self.read(FILES[1])["_whole_model"]["status"], "difference")
        self.check_schemas()
        self.check_left(*FILES)

    def test_run_goes_by_the_compiler_file_alone(self):
        (self.work / FILES[1]).unlink()
        before = files_in(self.work)
        self.assertIn("Full model model: comparison passed", self.tool("run", "--model", "model.onnx").stderr)
        self.assertEqual(files_in(self.work), before)

    def test_a_quiet_run_says_all_in_its_log_file_and_errors_on_the_console_too(self):
        loud = self.tool("run", "--model", "model.onnx", "--log-file", "logs/loud.log")
        self.assertEqual((self.work / "logs" / "loud.log").read_text(), loud.stderr)
        quiet = self.tool("run", "--model", "model.onnx", "--log-file", "logs/quiet.log", "-q")
        self.assertEqual(quiet.stdout + quiet.stderr, "")
        self.assertEqual((self.work / "logs" / "quiet.log").read_text(), loud.stderr)
        wrong = self.tool("run", "--model", "model.onnx", "--log-file", "logs/wrong.log", "-q", "--chip", "null", code=1)
        self.assertRegex(wrong.stderr, "^Error: .*not of null")
        self.assertEqual((self.work / "logs" / "wrong.log").read_text(), wrong.stderr)

    def test_compare_says_what_an_edit_changed(self):
        shutil.copy(self.work / FILES[1], self.work / "before.json")
        self.assertIn("No difference: 4 layer(s)", self.tool("compare", "before.json", FILES[1]).stdout)
        self.tool("edit", FILES[1], "--layer", "Add_y", "--executor", "null")
        self.assertIn("Add_y: nss -> -\n", self.tool("compare", "before.json", FILES[1], code=1).stdout)
        self.check_left(*FILES, "before.json")

    def test_quantize_writes_a_model_that_can_be_discovered(self):
        done = self.tool("quantize", "--model", "model.onnx")
        self.assertIn("Quantized model saved to: model.int8.onnx\n", done.stdout + done.stderr)
        self.check_left(*FILES, "model.int8.onnx")
        self.tool("discover", "--model", "model.int8.onnx", "--skip-executors=nss,css")
        self.check_schemas("model.int8")
        types = {layer.split("_", 1)[0] for layer in self.read("torq_gen_config_model.int8.json")["ops"]}
        self.assertTrue({"QuantizeLinear", "DequantizeLinear", "Conv"} <= types, types)
        self.check_left(*FILES, "model.int8.onnx", *[name.replace("_model", "_model.int8") for name in FILES[1:]])


class Manual(Workflow):
    """The commands and files of the original's manual."""

    REPORTS = FILES[1:]

    def statuses(self, name="model"):
        return {(layer, executor): result["status"] for layer, entry in self.read(f"torq_gen_config_{name}.json")["ops"].items()
                for executor, result in entry["executors"].items()}

    def discover(self, *flags, code):  # pylint: disable=arguments-differ
        done = self.tool("discover", "--model", "model.onnx", *flags, code=code)
        if not any(flag.startswith("--subgraph") for flag in flags):
            self.check_schemas()
        return done

    def test_its_discover_commands(self):
        # Layer discovery with skip mode
        self.discover("--skip-mode", code=1)
        self.assertEqual(set(self.statuses()), {("Conv_conv_out", "nss"), ("Conv_h", "nss"), ("Mul_m", "nss"), ("Mul_m", "css"), ("Add_y", "nss")})
        # Skip crashing executors
        self.discover("--skip-executors=nss", code=1)
        self.assertEqual({executor for _, executor in self.statuses()}, {"css", "host"})
        # Timing-based executor recommendation
        self.discover("--collect-timing", "--timing-runs=5", "--recommend-by-timing", "--layers=Conv_h", code=0)
        report = self.read(FILES[1])
        entry = report["ops"]["Conv_h"]
        times = {name: result["timing"]["runtime_ms"] for name, result in entry["executors"].items()}
        self.assertEqual({result["timing"]["runs"] for result in entry["executors"].values()}, {5})
        self.assertEqual(list(times), EXECUTORS)
        self.assertEqual(entry["recommended_executor"], min(times, key=times.get))
        self.assertEqual(set(report["discovery_report"]["summary"]["timing_summary"]), set(EXECUTORS))
        # Skip duplicate layers
        self.discover("--dedup-layers", "--skip-mode", code=0)
        self.check_left(*FILES)
        # Redirect output to log file
        done = self.discover("--log-file=discovery.log", code=1)
        self.assertEqual((self.work / "discovery.log").read_text(), done.stderr)
        self.check_left(*FILES, "discovery.log")

    def test_its_run_command(self):
        # Full model with debug output
        self.discover("--skip-executors=nss,css", code=0)
        done = self.tool("run", "--model", "model.onnx", "--debug-ir=tmp")
        self.assertIn("Full model model: comparison passed", done.stderr)
        left = set(files_in(self.work)) - set(FILES)
        self.assertEqual({name.split(os.sep)[0] for name in left}, {"tmp"})
        self.assertTrue(any(name.endswith(".mlir") for name in left), left)

    def test_its_subgraph_commands(self):
        # Subgraph debugging
        self.discover("--subgraph-from=Conv_h", "--subgraph-to=Mul_m", code=1)
        part = "model_subgraph_1_2"
        self.check_schemas(part)
        self.assertEqual(list(self.read(f"torq_gen_config_{part}.json")["ops"]), ["Conv_h", "Mul_m"])
        self.assertEqual(self.read(f"torq_gen_config_{part}.json")["model_name"], "model")
        names = [name.replace("_model", "_" + part) for name in self.REPORTS]
        self.check_left("model.onnx", *names)
        # Re-test a single layer (scope a subgraph to that one op)
        self.discover("--subgraph-from=Conv_h", "--subgraph-to=Conv_h", "--recompute-cache", code=0)
        self.check_schemas("model_subgraph_1_1")
        self.check_left("model.onnx", *names, *[name.replace("_model", "_model_subgraph_1_1") for name in self.REPORTS])

    def test_what_it_refuses(self):
        for name in ("model.tflite", "model.pt", "model.pth", "model.py"):
            (self.work / name).write_bytes(b"x")
            refusals = {self.tool(command, "--model", name, code=1).stderr for command in ("discover", "run", "quantize")}
            self.assertEqual(len(refusals), 1, refusals)
            self.assertRegex(refusals.pop(), rf"^Error: .*{re.escape(name)}\n$")
        for flag, other in (("--subgraph-from", "--subgraph-to"), ("--subgraph-to", "--subgraph-from")):
            self.assertRegex(self.discover_refused(flag, "Conv_h").stderr, rf"^Error: {flag} needs {other}")
        self.check_left("model.onnx", "model.tflite", "model.pt", "model.pth", "model.py")

    def discover_refused(self, *flags):
        return self.tool("discover", "--model", "model.onnx", *flags, code=1)

    def test_its_example_files_are_taken_by_every_command(self):
        (self.work / "model.onnx").rename(self.work / "encoder.onnx")
        names = ["torq_gen_config_encoder.json", "torq_gen_config_encoder_compiler.json"]
        for name in names:
            shutil.copy(EXAMPLES / name, self.work / name)
        before = files_in(self.work)
        summary = self.tool("view", "--model", "encoder.onnx").stdout
        self.assertIn("  CSS: 12.3ms (min: 12.3ms, max: 12.3ms, samples: 1)\n", summary)
        self.assertIn("[HOST]: success (45.6ms)", self.tool("view", names[0], "Conv_conv_out").stdout)
        self.assertIn("  10:10 → css\n  11:10 → host\n", self.tool("view", names[1]).stdout)
        self.assertIn("No difference", self.tool("compare", names[0], EXAMPLES / names[0]).stdout)
        self.assertIn("No difference", self.tool("compare", names[1], EXAMPLES / names[1]).stdout)
        self.tool("edit", names[0], "--layer", "Conv_conv_out")
        self.assertEqual(files_in(self.work), before)

        # run by the compiler file alone leaves its bytes, by the report it renews both.
        (self.work / names[0]).unlink()
        self.assertIn("Full model encoder: comparison passed", self.tool("run", "--model", "encoder.onnx").stderr)
        self.assertEqual((self.work / names[1]).read_bytes(), before[names[1]])
        (self.work / names[0]).write_bytes(before[names[0]])
        self.tool("run", "--model", "encoder.onnx")
        report = self.read(names[0])
        self.assertEqual(report["ops"], json.loads(before[names[0]])["ops"])
        self.assertEqual(report["_whole_model"]["status"], "success")

        done = self.tool("edit", "--model", "encoder.onnx", "--layer", "Conv_conv_out", "--executor", "nss")
        self.assertIn("Updated recommended_executor for 'Conv_conv_out' to 'nss'\n", done.stdout)
        entry = self.read(names[0])["ops"]["Conv_conv_out"]
        self.assertEqual(entry, json.loads(before[names[0]])["ops"]["Conv_conv_out"] | {"recommended_executor": "nss", "_edited": True})
        self.assertEqual(self.read(names[1])["op_assignments"], {"10:10": {"executor": "nss"}})
        self.check_left("encoder.onnx", *names)


class Clean(unittest.TestCase):
    def test_the_folder_goes_also_after_a_failure(self):
        seen = []
        class Failing(Workflow):
            def runTest(self):
                seen.append(self.folder)
                self.tool("view", "not-there.json", code=0)
        result = unittest.TestResult()
        Failing().run(result)
        self.assertEqual(len(result.failures), 1)
        self.assertFalse(seen[0].exists())
        self.assertEqual(seen[0].parent, pathlib.Path(tempfile.gettempdir()))


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    unittest.main()
