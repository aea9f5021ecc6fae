"""discover with the real programs: files, exit codes, sharing, selection."""
import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import BIN, LONGEST, MODELS, Farm, onnx_model


class Discover(Farm):
    def test_report_compiler_file_and_sidecar_come_out(self):
        done = self.discover("gen_odd", "ort-cpu", code=0)
        self.assertEqual(done.stdout, "")
        report = self.report("gen_odd")
        self.assertEqual(report["version"], "1.1")
        self.assertEqual(report["_chip"], "ort-cpu")
        self.assertEqual(report["_executors"], ["cpu", "cpu-noopt"])
        self.assertEqual(report["has_critical_failures"], False)
        self.assertTrue(report["final_report_text"].startswith("FINAL EXECUTOR DISCOVERY REPORT"))
        self.assertEqual(report["discovery_report"]["summary"]["total_layers"], len(report["ops"]))
        for entry in report["ops"].values():
            self.assertEqual({name: result["status"] for name, result in entry["executors"].items()},
                             {"cpu": "success", "cpu-noopt": "success"})
            self.assertRegex(entry["mlir_location"], r"^\d+:\d+$")
        compiler = json.loads((self.out / "torq_gen_config_gen_odd_compiler.json").read_text())
        self.assertEqual(compiler["op_assignments"], {entry["mlir_location"]: {"executor": "cpu"} for entry in report["ops"].values()})
        macs = json.loads((self.out / "torq_gen_config_gen_odd_mac_debug.json").read_text())
        self.assertEqual(sorted(macs["ops"]), list(macs["ops"]))
        self.assertNotIn("\x1b", done.stderr)
        self.assertRegex(done.stderr, r"\[progress\] (\d+)/\1 \[100%\]")

    def test_one_and_two_workers_write_the_same_bytes(self):
        self.discover("gen_repeat_cnn", "ort-cpu,null", workers=1)
        one = self.files()
        shutil.rmtree(self.out)
        shutil.rmtree(self.cache)
        self.discover("gen_repeat_cnn", "ort-cpu,null", workers=2)
        self.assertEqual(self.files(), one)

    def test_a_second_run_finds_everything_in_the_store(self):
        first = self.discover("gen_repeat_cnn", "ort-cpu")
        files = self.files()
        second = self.discover("gen_repeat_cnn", "ort-cpu", code=first.returncode)
        self.assertEqual(self.files(), files)
        self.assertIn("Results: 0 fresh, 72 from the store", second.stderr)
        third = self.discover("gen_repeat_cnn", "ort-cpu", "--recompute-cache", code=first.returncode)
        self.assertIn("Results: 72 fresh, 0 from the store", third.stderr)
        self.assertEqual(self.files(), files)

    def test_models_of_equal_bytes_are_each_read_with_the_data_beside_them(self):
        finds = self.folder / "finds.py"  # fails for a layer that holds threes
        finds.write_text("import struct, sys\nsys.exit(struct.pack('<f', 3.0) * 16 in open(sys.argv[1], 'rb').read())\n")
        chip = self.chip("finds", [sys.executable, str(finds)], executors=[{"name": "e0", "evidence": "stand-in"}],
                         options={"command": [sys.executable, str(finds)], "layer_argument": "1"})
        model = onnx_model([("MatMul", ["x", "w"], ["h"]), ("Relu", ["h"], ["y"])], [("x", 1, [4, 8])], [("y", 1, [4, 8])], [("w", 1, [8, 8], "w.bin")])
        paths = []
        for name, value in (("one", 1.0), ("three", 3.0), ("none", None)):
            (self.folder / name).mkdir()
            paths.append(self.folder / name / "net.onnx")
            paths[-1].write_bytes(model)
            if value is not None:
                (self.folder / name / "w.bin").write_bytes(struct.pack("<f", value) * 64)

        def discover(*models):
            named = [word for path in models for word in ("--model", path)]
            return self.run_farm("discover", *named, "--chip", chip, "--output-dir", self.out, "--workers", "2")

        def status(out):
            return self.report("net", out)["ops"]["MatMul_h"]["executors"]["e0"]["status"]

        one, three, none = paths
        for models in ((one, three), (three, one)):
            shutil.rmtree(self.cache, ignore_errors=True)
            for fresh in (True, False):
                shutil.rmtree(self.out, ignore_errors=True)
                done = discover(*models)
                self.assertNotIn("has changed", done.stderr)
                self.assertEqual(done.stderr.count("Results: 2 fresh, 0 from the store" if fresh else "Results: 0 fresh, 2 from the store"), 2)
                self.assertEqual((status(self.out / "one"), status(self.out / "three")), ("success", "error"))
        # One after the other.
        shutil.rmtree(self.cache)
        for path, right, results in ((one, "success", "2 fresh, 0"), (three, "error", "1 fresh, 1"), (one, "success", "0 fresh, 2"), (three, "error", "0 fresh, 2")):
            shutil.rmtree(self.out)
            self.assertIn(f"Results: {results} from the store", discover(path).stderr)
            self.assertEqual(status(self.out), right)
        # What is wrong with one model is not said of the other.
        shutil.rmtree(self.cache)
        shutil.rmtree(self.out)
        done = discover(none, three)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none/net.onnx: ", done.stderr)
        self.assertNotIn("three/net.onnx: ", done.stderr)
        self.assertEqual(status(self.out / "three"), "error")

    def test_what_a_file_holds_that_an_option_names_is_part_of_the_key(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("Relu", ["x"], ["y"])], [("x", 1, [1, 4])], [("y", 1, [1, 4])]))
        flags = self.folder / "flags.txt"
        for content, results, status in (("", "2 fresh, 0", "success"), ("--nonsense_flag=1\n", "2 fresh, 0", "error"), ("", "0 fresh, 2", "success")):
            flags.write_text(content)
            done = self.discover(model, "host-cpu", f"--runtime-option=--flagfile={flags}")
            self.assertIn(f"Results: {results} from the store", done.stderr)
            executors = self.report("net")["ops"]["Relu_y"]["executors"]
            self.assertEqual({name: result["status"] for name, result in executors.items()}, {"llvm-cpu": status, "vmvx": status})

    def test_equal_work_runs_once_also_across_models(self):
        twin = self.folder / "twin.onnx"
        shutil.copy(MODELS / "gen_repeat_cnn.onnx", twin)
        done = self.run_farm("discover", "--model", MODELS / "gen_repeat_cnn.onnx", "--model", twin, "--chip", "ort-cpu", "--output-dir",
                             self.out)
        self.assertIn("Total: 2 reports, 144 cases", done.stderr)
        first = self.report("gen_repeat_cnn")
        second = self.report("twin")
        self.assertEqual(first["ops"], second["ops"])
        self.assertNotIn("_copied_from", json.dumps(first))
        stats = json.loads(self.run_farm("cache", "stats", "--json", code=0).stdout)
        # 15 pieces of work that differ: a reference each, two executors each; one reading, since the content is the same.
        self.assertEqual(stats["keys"], 15 * 3 + 1)

    def test_several_chips_have_a_folder_each(self):
        self.discover("gen_odd", "ort-cpu,null")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["null", "ort-cpu"])
        self.assertEqual(self.report("gen_odd", self.out / "null")["_chip"], "null")

    def test_another_chip_moves_the_old_files_aside_once(self):
        self.discover("gen_odd", "ort-cpu")
        old = self.report_path("gen_odd").read_bytes()
        done = self.discover("gen_odd", "null")
        self.assertIn("ort-cpu", done.stderr)
        self.assertEqual((self.out / "ort-cpu" / "torq_gen_config_gen_odd.json").read_bytes(), old)
        self.assertEqual(self.report("gen_odd")["_chip"], "null")
        # From now on each has its place, and nothing is overwritten.
        for _ in range(2):
            done = self.discover("gen_odd", "ort-cpu", code=0)
            self.assertIn(f"is of chip null and stays as it is; this run goes on with {self.report_path('gen_odd', self.out / 'ort-cpu')}", done.stderr)
            self.assertEqual(self.report("gen_odd", self.out / "ort-cpu")["ops"], json.loads(old)["ops"])
            self.discover("gen_odd", "null")
            self.assertEqual(self.report("gen_odd")["_chip"], "null")

    def test_an_original_s_report_is_not_taken_for_another_chip_s(self):
        self.out.mkdir()
        theirs = MODELS.parent.parent / "golden" / "report" / "mlp_plain" / "01"
        for path in theirs.iterdir():
            shutil.copy(path, self.out)
        done = self.discover(MODELS.parent.parent / "golden" / "models" / "mlp.onnx", "ort-cpu", "--skip-mode", code=0)
        name = "torq_gen_config_mlp.json"
        self.assertIn(f"results of chip SL2610 moved to {self.out / 'SL2610' / name}", done.stderr)
        self.assertEqual((self.out / "SL2610" / name).read_bytes(), (theirs / name).read_bytes())
        self.assertEqual({executor for entry in self.report("mlp")["ops"].values() for executor in entry["executors"]}, {"cpu"})

    def test_equal_names_of_models_do_not_collide(self):
        for place in ("a", "b"):
            (self.folder / place).mkdir()
        shutil.copy(MODELS / "gen_odd.onnx", self.folder / "a" / "net.onnx")
        shutil.copy(MODELS / "gen_repeat_cnn.onnx", self.folder / "b" / "net.onnx")
        self.run_farm("discover", "--model", self.folder / "?" / "net.onnx", "--chip", "null", "--output-dir", self.out, code=0)
        self.assertEqual(len(self.report("net", self.out / "a")["ops"]), 9)
        self.assertEqual(len(self.report("net", self.out / "b")["ops"]), 36)

    def test_a_model_called_as_a_part_or_a_file_of_another_is_refused_and_nothing_is_mixed(self):
        net = onnx_model([("Relu", ["x"], ["h"]), ("Sigmoid", ["h"], ["y"])], [("x", 1, [1, 4])], [("y", 1, [1, 4])])
        for name in ("net", "net_subgraph_0_1", "net_compiler"):
            (self.folder / f"{name}.onnx").write_bytes(net)
        self.discover(self.folder / "net.onnx", "ort-cpu", "--subgraph-from", "h", "--subgraph-to", "y", code=0)
        files = self.files()
        done = self.discover(self.folder / "net_subgraph_0_1.onnx", "ort-cpu", code=1)
        path = self.report_path("net_subgraph_0_1")
        self.assertIn(f"{path} is of nodes 0 to 1 of net, and net_subgraph_0_1 would write to the same name; rename or link the model", done.stderr)
        self.assertEqual(self.files(), files)
        done = self.run_farm("view", "--model", "net_subgraph_0_1.onnx", "--output-dir", self.out, code=1)
        self.assertEqual(done.stderr, f"Error: no report of net_subgraph_0_1: {path} is of nodes 0 to 1 of net\n")
        other = self.folder / "other"
        self.discover(self.folder / "net_subgraph_0_1.onnx", "ort-cpu", code=0, out=other)
        done = self.discover(self.folder / "net.onnx", "ort-cpu", "--subgraph-from", "h", "--subgraph-to", "y", code=1, out=other)
        self.assertIn(" is of the model net_subgraph_0_1, and net would write to the same name", done.stderr)
        self.discover(self.folder / "net_compiler.onnx", "ort-cpu", code=0, out=other)
        done = self.discover(self.folder / "net.onnx", "ort-cpu", code=1, out=other)
        self.assertIn("torq_gen_config_net_compiler.json is of another model: it is a report, and net would write", done.stderr)

    def test_odd_names_are_nothing_special(self):
        for name in ("a b.onnx", "it's.onnx", "x;rm -rf y.onnx", "größe漢.onnx", "-v.onnx", 'q"q.onnx', "100%.onnx", "$(id).onnx"):
            with self.subTest(name):
                shutil.copy(MODELS / "gen_odd.onnx", self.folder / name)
                out = self.folder / "odd"
                argument = f"--model={name}"
                self.run_farm("discover", argument, "--chip", "ort-cpu", "--output-dir", out, code=0)
                self.assertTrue((out / f"torq_gen_config_{name[:-5]}.json").exists(), sorted(out.iterdir()))
                shutil.rmtree(out)

    def test_json_list_goes_to_standard_output(self):
        done = self.discover("gen_odd", "ort-cpu", "--json", "-q", code=0)
        rows = json.loads(done.stdout)
        self.assertEqual(len(rows), 18)
        self.assertEqual({row["status"] for row in rows}, {"success"})
        self.assertEqual(done.stderr, "")

    def test_a_log_file_on_a_full_disk_is_said_once_and_ends_nothing(self):
        line = "[LogFile] cannot write /dev/full: No space left on device; lines will be missing there, and the work goes on\n"
        for flags in ((), ("-q",)):
            done = self.discover("gen_odd", "ort-cpu", "--log-file", "/dev/full", *flags, code=0)
            self.assertEqual(done.stderr.count(line), 1)
            self.assertEqual("FINAL EXECUTOR DISCOVERY REPORT" in done.stderr, not flags)
            done = self.run_farm("run", "--model", MODELS / "gen_odd.onnx", "--output-dir", self.out, "--log-file", "/dev/full", *flags, code=0)
            self.assertEqual(done.stderr.count(line), 1)
            self.assertEqual("Full model gen_odd: comparison passed" in done.stderr, not flags)

    def test_the_log_file_gets_what_a_quiet_console_does_not(self):
        log = self.folder / "logs" / "run.log"
        done = self.discover("gen_odd", "ort-cpu", "-q", "--log-file", log, code=0)
        self.assertEqual(done.stderr + done.stdout, "")
        self.assertIn("FINAL EXECUTOR DISCOVERY REPORT", log.read_text())
        self.assertNotIn("\x1b", log.read_text())


class Selection(Farm):
    def statuses(self, model="gen_odd"):
        return {name: {executor: result["status"] for executor, result in entry["executors"].items()}
                for name, entry in self.report(model)["ops"].items()}

    def test_skip_mode_stops_a_layer_at_its_first_success(self):
        self.discover("gen_odd", "ort-cpu", "--skip-mode", code=0)
        self.assertEqual({tuple(found.items()) for found in self.statuses().values()}, {(("cpu", "success"),)})

    def test_skip_mode_gives_the_same_bytes_with_any_number_of_workers(self):
        self.discover("gen_repeat_cnn", "ort-cpu", "--skip-mode", workers=1)
        one = self.files()
        shutil.rmtree(self.out)
        shutil.rmtree(self.cache)
        self.discover("gen_repeat_cnn", "ort-cpu", "--skip-mode", workers=3)
        self.assertEqual(self.files(), one)

    def test_executors_and_ops_can_be_left_out_or_chosen(self):
        self.discover("gen_odd", "ort-cpu", "--skip-executors", "cpu", code=0)
        self.assertEqual({tuple(found) for found in self.statuses().values()}, {("cpu-noopt",)})
        shutil.rmtree(self.out)
        self.discover("gen_odd", "ort-cpu", "--executors", "cpu", "--skip-ops", "if,SQRT", code=0)
        skipped = {name for name, found in self.statuses().items() if not found}
        self.assertEqual({name.split("_")[0] for name in skipped}, {"If", "Sqrt"})
        self.assertEqual({self.report("gen_odd")["ops"][name]["recommended_executor"] for name in skipped}, {None})

    def test_a_run_that_leaves_out_every_executor_tests_nothing_and_says_so(self):
        self.discover("gen_odd", "null", code=0)
        done = self.discover("gen_odd", "null", "--skip-executors", "e0,E1,e2", code=0)
        self.assertIn("[SkipExecutors] Warning: nothing is tested, since every executor of the chips of this run is left out (e0, e1, e2)", done.stderr)
        # As with any executor that is left out: its results leave the file.
        self.assertEqual({tuple(found) for found in self.statuses().values()}, {()})
        self.assertEqual({entry["recommended_executor"] for entry in self.report("gen_odd")["ops"].values()}, {None})
        done = self.discover("gen_odd", "null", "--executors", "e0", "--skip-executors", "e0", code=0)
        self.assertIn("every executor that --executors names is left out (e0)", done.stderr)

    def test_layers_are_chosen_by_pattern_and_others_keep_their_results(self):
        self.discover("gen_odd", "ort-cpu", "--layers", "c*_*", code=0)
        tested = {name for name, found in self.statuses().items() if found}
        self.assertEqual({name.split("_")[0] for name in tested}, {"Clip", "Concat"})
        self.discover("gen_odd", "ort-cpu", "--layers", "picked", code=0)
        self.assertEqual({name for name, found in self.statuses().items() if found}, tested | {"If_picked"})

    def test_an_unknown_executor_is_refused_with_the_known_ones(self):
        done = self.discover("gen_odd", "ort-cpu", "--executors", "gpu", code=1)
        self.assertIn("cpu-noopt", done.stderr)
        self.assertFalse(self.out.exists())

    def test_dedup_copies_between_layers_that_differ_in_float_values(self):
        self.discover("gen_repeat_cnn", "ort-cpu", "--dedup-layers")
        ops = self.report("gen_repeat_cnn")["ops"]
        copied = {name: result["_copied_from"] for name, entry in ops.items() for result in entry["executors"].values()
                  if "_copied_from" in result}
        self.assertEqual(copied["Conv_b3.c2"], "Conv_b1.c1")
        self.assertEqual(copied["Relu_b6.out"], "Relu_b0.out" if "Relu_b0.out" in copied.values() else "Relu_b1.r1")
        self.assertNotIn("Conv_stem.out", copied)

    def test_exact_dedup_gives_the_results_of_a_plain_run_marked_as_copies(self):
        self.discover("gen_repeat_cnn", "ort-cpu")
        plain = self.report("gen_repeat_cnn")
        shutil.rmtree(self.out)
        self.discover("gen_repeat_cnn", "ort-cpu", "--dedup-layers=exact")
        exact = self.report("gen_repeat_cnn")
        copies = 0
        for entry in exact["ops"].values():
            for result in entry["executors"].values():
                copies += 1 if result.pop("_copied_from", None) else 0
        self.assertEqual(exact, plain)
        self.assertEqual(copies, (36 - 15) * 2)

    def test_timing_is_stored_and_can_decide(self):
        self.discover("gen_odd", "ort-cpu", "--layers", "clip*", code=0)
        timing = ("--collect-timing", "--timing-runs", "3", "--recommend-by-timing", "--layers", "clip*")
        self.assertIn("\nResults: 0 fresh, 2 from the store, 2 timed\n", self.discover("gen_odd", "ort-cpu", *timing, code=0).stderr)
        self.assertIn("\nResults: 0 fresh, 2 from the store\n", self.discover("gen_odd", "ort-cpu", *timing, code=0).stderr)
        entry = next(entry for entry in self.report("gen_odd")["ops"].values() if entry["executors"])
        for result in entry["executors"].values():
            self.assertEqual(result["timing"]["runs"], 3)
            self.assertGreater(result["timing"]["runtime_ms"], 0)
            self.assertIn("_median_ms", result["timing"])
        quickest = min(entry["executors"], key=lambda name: entry["executors"][name]["timing"]["runtime_ms"])
        self.assertEqual(entry["recommended_executor"], quickest)

    def test_a_wait_for_other_farms_is_said(self):
        line = "[Farm] worker w0 waits for other farms on this machine to finish their work before it takes times\n"
        locks = self.folder / "tmp"
        locks.mkdir()
        self.env["TMPDIR"] = str(locks)
        arguments = ("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "ort-cpu", "--workers", "1", "--output-dir", self.out,
                     "--layers", "clip*", "--collect-timing", "--timing-runs", "1")
        with open(locks / "layerfarm-work.lock", "w") as other_farm:
            fcntl.flock(other_farm, fcntl.LOCK_SH)
            run = self.start(*arguments)
            said = ""
            while line not in said and (more := run.stderr.readline()):
                said += more
            self.assertIn(line, said)
        rest = run.communicate(timeout=LONGEST)[1]
        self.assertEqual(run.returncode, 0, said + rest)
        self.assertNotIn(line, rest)
        free = self.run_farm(*arguments, "--recompute-cache", code=0)
        self.assertNotIn("waits for", free.stderr)

    def test_a_recommendation_by_timing_without_times_is_said(self):
        line = "--recommend-by-timing finds no times in the report"
        done = self.discover("gen_odd", "ort-cpu", "--recommend-by-timing", code=0)
        self.assertEqual(done.stderr.count(line), 1)
        self.assertIn("--collect-timing", done.stderr)
        with_times = self.discover("gen_odd", "ort-cpu", "--recommend-by-timing", "--collect-timing", "--layers", "clip*", code=0)
        self.assertNotIn(line, with_times.stderr)
        again = self.discover("gen_odd", "ort-cpu", "--recommend-by-timing", "--layers", "if*", code=0)
        self.assertNotIn(line, again.stderr)

    def test_times_of_an_emulator_do_not_decide_beside_those_of_hardware(self):
        done = self.discover("gen_odd", "SM8550", "--recommend-by-timing", "--collect-timing", "--layers", "Clip*")
        self.assertIn("times on SM8550 do not say which executor is quicker (htp: emulator, host: hardware)", done.stderr)
        for entry in self.report("gen_odd")["ops"].values():
            results = entry["executors"]
            if results and results["htp"]["status"] == "success":
                self.assertIn("timing", results["htp"])
                self.assertEqual(entry["recommended_executor"], "htp")
                break
        else:
            self.fail("no layer ran on htp")

    def test_lines_name_the_model_where_there_are_several(self):
        twin = self.folder / "twin.onnx"
        shutil.copy(MODELS / "gen_odd.onnx", twin)
        several = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--model", twin, "--chip", "ort-cpu", "--output-dir", self.out,
                                "--layers", "clip*", code=0)
        lines = [line for line in several.stderr.splitlines() if line.startswith("Layer ")]
        self.assertEqual(len(lines), 4)
        for model in ("gen_odd", "twin"):
            self.assertEqual(len([line for line in lines if re.match(rf"Layer Clip_\S+ \({model}\): CPU(-NOOPT)? = success", line)]), 2, lines)
        one = self.discover("gen_odd", "ort-cpu", "--layers", "clip*", code=0)
        self.assertRegex(one.stderr, r"\nLayer Clip_\S+: CPU = success\n")

    def test_a_dry_run_runs_nothing(self):
        done = self.discover("gen_odd", "ort-cpu", "--dry-run", code=0)
        self.assertIn("execute: 18 to run", done.stdout)
        self.assertFalse(self.report_path("gen_odd").exists())
        self.discover("gen_odd", "ort-cpu", code=0)
        self.assertIn("Cases: 18 (18 known", self.discover("gen_odd", "ort-cpu", "--dry-run", code=0).stdout)

    def everything(self):
        """All below the test's folder but the cache: path, content and time of the last change."""
        found = [self.folder, *self.folder.rglob("*")]
        return {path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
                for path in found if self.cache not in (path, *path.parents)}

    def test_a_dry_run_writes_in_the_cache_folder_alone(self):
        self.cache.mkdir()
        more = ("--dry-run", "--log-file", self.folder / "logs" / "run.log", "--keep-failed", self.folder / "kept")
        before = self.everything()
        self.discover("gen_odd", "ort-cpu,null", *more, code=0, out=self.folder / "deep" / "down")
        self.assertEqual(self.everything(), before)
        (self.folder / "file").write_text("")
        refused = self.discover("gen_odd", "null", *more, code=1, out=self.folder / "file" / "below")
        self.assertIn("Error: cannot make the output folder", refused.stderr)

    def test_a_dry_run_leaves_another_chip_s_files_where_they_are(self):
        self.discover("gen_odd", "ort-cpu")
        before = self.everything()
        done = self.discover("gen_odd", "null", "--dry-run", code=0)
        self.assertIn(f"results of chip ort-cpu would be moved to {self.report_path('gen_odd', self.out / 'ort-cpu')}", done.stderr)
        self.assertEqual(self.everything(), before)
        self.discover("gen_odd", "null", code=0)
        self.assertTrue(self.report_path("gen_odd", self.out / "ort-cpu").exists())
        before = {path: path.read_bytes() for path in self.out.rglob("*.json")}
        self.assertIn("stays as it is; this run goes on with", self.discover("gen_odd", "ort-cpu", "--dry-run", code=0).stderr)
        self.assertEqual({path: path.read_bytes() for path in self.out.rglob("*.json")}, before)

    def test_a_dry_run_of_several_models_can_be_repeated(self):
        for _ in range(2):
            done = self.run_farm("discover", "--model", MODELS / "gen_*.onnx", "--chip", "ort-cpu", "--dry-run", "--json", "--output-dir",
                                 self.out, code=0)
            self.assertEqual(json.loads(done.stdout)["cases"], (9 + 36 + 62) * 2)

    def test_a_tolerance_flag_judges_stored_numbers_again(self):
        strict = ("--tolerance-max", "1e-12", "--tolerance-avg", "1e-12", "--tolerance-abs-frac", "0")
        self.discover("gen_repeat_cnn", "ort-cpu", code=0)
        done = self.discover("gen_repeat_cnn", "ort-cpu", *strict, code=1)
        self.assertIn("difference", done.stderr)
        self.discover("gen_repeat_cnn", "ort-cpu", *strict, "--fail-on", "error", code=0)
        self.discover("gen_repeat_cnn", "ort-cpu", *strict, "--fail-on", "never", code=0)
        used = self.report("gen_repeat_cnn")["ops"]["Conv_stem.out"]["executors"]["cpu-noopt"]["tolerance_used"]
        self.assertEqual(used["fp_max_tol"], 1e-12)


FLOAT, INT64, BOOL = 1, 7, 9  # ONNX's numbers


class Names(Farm):
    """Words of the command line that only the models can know."""

    def model(self, name, batch="batch"):
        path = self.folder / f"{name}.onnx"
        path.write_bytes(onnx_model([("Relu", ["image"], ["r"]), ("Add", ["r", "mask"], ["y"])],
                                    [("image", FLOAT, [batch, 4]), ("mask", FLOAT, [4])], [("y", FLOAT, [batch, 4])]))
        return path

    def errors(self, done):
        return [line for line in done.stderr.splitlines() if line.startswith("Error: ")]

    def array(self, name, values, dtype="f4"):
        """A .npy file, of float32 unless said otherwise."""
        header = f"{{'descr': '<{dtype}', 'fortran_order': False, 'shape': ({', '.join(map(str, values[0]))},), }}"
        header += " " * (63 - (10 + len(header)) % 64) + "\n"
        folder = self.folder / "arrays"
        folder.mkdir(exist_ok=True)
        data = struct.pack(f"<{len(values[1])}{'f' if dtype == 'f4' else 'd'}", *values[1])
        (folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
        return folder

    def test_a_dim_that_the_model_lacks_is_an_error_before_any_work(self):
        model = self.model("net")
        for more in ((), ("--dry-run",)):
            done = self.discover(str(model), "null", "--dim", "batc=2", *more, code=1)
            self.assertEqual(self.errors(done), ["Error: --dim batc would change nothing; net: no input has a dim named 'batc' (its dims with "
                                                 "names: batch)"])
            self.assertEqual(self.files(), {})
        self.discover(str(model), "null", "--dim", "batch=2", code=0)

    def test_of_several_models_one_must_have_the_dim(self):
        models = ("--model", self.model("net"), "--model", self.model("other", "n"), "--chip", "null", "--output-dir", self.out)
        self.run_farm("discover", *models, "--dim", "batch=2", "--dim", "n=3", code=0)
        shutil.rmtree(self.out)
        done = self.run_farm("discover", *models, "--dim", "batch=2", "--dim", "m=3", code=1)
        self.assertEqual(len(self.errors(done)), 1, done.stderr)
        self.assertRegex(done.stderr, r"--dim m .* net: .*batch.* other: .*\bn\b")
        self.assertEqual(self.files(), {})
        (self.folder / "bad.onnx").write_bytes(b"no")
        done = self.run_farm("discover", *models, "--model", self.folder / "bad.onnx", "--dim", "batch=2", code=1)
        self.assertEqual(len(self.errors(done)), 1, done.stderr)
        self.assertEqual(len(self.report("other")["ops"]), 2)

    def test_a_dim_of_two_values_is_a_usage_error(self):
        done = self.discover(str(self.model("net")), "null", "--dim", "batch=2", "--dim", "batch=3", code=2)
        self.assertIn("batch", done.stderr)

    def test_arrays_that_fit_no_input_are_an_error_before_any_work(self):
        folder = self.array("imgae", ((1, 4), [1.0] * 4))
        done = self.discover(str(self.model("net")), "ort-cpu", "--inputs", folder, code=1)
        errors = self.errors(done)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn("imgae", errors[0])
        self.assertIn("net has the inputs image, mask", errors[0])
        self.assertEqual(self.files(), {})

    def test_arrays_of_another_type_or_shape_are_an_error_before_any_work(self):
        net = str(self.model("net"))
        self.discover(net, "ort-cpu", code=0)
        files = self.files()
        wide = [1.0] * 4
        shape = "; give it that shape (an open dim of the model is 1 where --dim says nothing)"
        dtype = "; save it as float32, with NumPy array.astype('float32')"
        layer = "(of Relu_r)"
        for name, values, kind, more, text in (
                ("image", ((1, 4), wide), "f8", (), f"image.npy is float64[1,4], but the input 'image' {layer} is float32[1,4]{dtype}"),
                ("image", ((2, 4), wide * 2), "f4", (), f"image.npy is float32[2,4], but the input 'image' {layer} is float32[1,4]{shape}"),
                ("image", ((1, 4), wide), "f4", ("--dim", "batch=2"), f"image.npy is float32[1,4], but the input 'image' {layer} is float32[2,4]{shape}"),
                ("r", ((4,), wide), "f8", (), f"r.npy is float64[4], but the input 'r' (of Add_y) is float32[1,4]{dtype}{shape}")):
            with self.subTest(text):
                folder = self.array(name, values, kind)
                done = self.discover(net, "ort-cpu", "--inputs", folder, *more, code=1)
                self.assertEqual(self.errors(done), [f"Error: --inputs: net: the array '{name}' of {text}"])
                if name == "image" and not more:
                    done = self.run_farm("run", "--model", net, "--chip", "ort-cpu", "--output-dir", self.out, "--inputs", folder, code=1)
                    self.assertEqual(len(self.errors(done)), 1, done.stderr)
                    self.assertIn(f"the array 'image' of image.npy is {'float64[1,4]' if kind == 'f8' else 'float32[2,4]'}", done.stderr)
                self.assertEqual(self.files(), files)
                shutil.rmtree(folder)
        folder = self.array("image", ((2, 4), wide * 2))
        self.discover(net, "ort-cpu", "--inputs", folder, "--dim", "batch=2", code=0)
        self.run_farm("run", "--model", net, "--chip", "ort-cpu", "--output-dir", self.out, "--inputs", folder, "--dim", "batch=2", code=0)

    def test_what_comes_from_arrays_and_what_does_not_is_told(self):
        self.array("image", ((1, 4), [1.0] * 4))
        folder = self.array("maks", ((4,), [1.0] * 4))
        done = self.discover(str(self.model("net")), "ort-cpu", "--inputs", folder, code=0)
        self.assertIn("[Inputs] net: 1 of 3 layer inputs come from 1 array(s) of --inputs, the others are random (model inputs without an "
                      "array: mask)", done.stderr)
        self.assertIn("[Inputs] no layer has an input of the name maks", done.stderr)


class Values(Farm):
    def test_a_layer_whose_outputs_are_empty_is_a_success_that_says_so(self):
        model = self.folder / "net.onnx"
        model.write_bytes(onnx_model([("Relu", ["x"], ["e"]), ("Relu", ["z"], ["y"])], [("x", 1, [0, 4]), ("z", 1, [1, 4])],
                                     [("e", 1, [0, 4]), ("y", 1, [1, 4])]))
        done = self.discover(model, "ort-cpu", code=0)
        note = "no output has an element, so nothing was compared"
        self.assertIn(f"Layer Relu_e: CPU = success ({note})", done.stderr)
        results = {layer: entry["executors"]["cpu"] for layer, entry in self.report("net")["ops"].items()}
        self.assertEqual((results["Relu_e"]["status"], results["Relu_e"]["_note"]), ("success", note))
        self.assertNotIn("_note", results["Relu_y"])

    def test_a_quantized_model_gets_one_hint_at_the_unit_that_fits_it(self):
        line = "[Layers] mobilenet_edge_qdq_int8: quantized (QDQ); with --layer-unit qdq each operator is tested together"
        done = self.discover("mobilenet_edge_qdq_int8", "null")
        self.assertEqual(done.stderr.count(line), 1)
        self.assertNotIn("[Layers]", self.discover("mobilenet_edge_qdq_int8", "null", "--layer-unit", "qdq").stderr)
        self.assertNotIn("[Layers]", self.discover("gen_odd", "null").stderr)

    def test_a_shape_that_depends_on_values_is_that_of_the_reference(self):
        model = self.folder / "values.onnx"
        model.write_bytes(onnx_model([("NonZero", ["keep"], ["places"])], [("keep", BOOL, [3, 5])], [("places", INT64, [2, "n"])]))
        self.discover(str(model), "host-cpu", "--executors", "llvm-cpu", code=0)
        (result,) = [entry["executors"]["llvm-cpu"] for entry in self.report("values")["ops"].values()]
        self.assertEqual(result["status"], "success")
        # As many as are true among the drawn ones; the run that shows shapes has none, or all.
        self.assertNotIn(result["_num_elements"], (0, 30))


class Refusals(Farm):
    def check_refused(self, content, word):
        model = self.folder / "bad.onnx"
        model.write_bytes(content)
        done = self.discover(str(model), "ort-cpu", code=1)
        errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn("bad.onnx", errors[0])
        self.assertIn(word, errors[0].lower())
        self.assertEqual(self.files() if self.out.exists() else {}, {})

    def test_a_model_that_cannot_be_read_is_one_line(self):
        good = (MODELS / "gen_repeat_cnn.onnx").read_bytes()
        self.check_refused(b"", "empty")
        self.check_refused(good[: len(good) // 2], "bad.onnx")
        self.check_refused(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "onnx")

    def test_one_bad_model_among_several_does_not_stop_the_others(self):
        (self.folder / "bad.onnx").write_bytes(b"no")
        done = self.run_farm("discover", "--model", self.folder / "bad.onnx", "--model", MODELS / "gen_odd.onnx", "--chip", "null",
                             "--output-dir", self.out, code=1)
        self.assertIn("bad.onnx", done.stderr)
        self.assertEqual(len(self.report("gen_odd")["ops"]), 9)

    def test_what_is_missing_is_said_before_any_work(self):
        cases = [
            (["discover"], 1, "--model is required"),
            (["discover", "--model", "none.onnx", "--chip", "null"], 1, "Model not found: none.onnx"),
            (["discover", "--model", MODELS / "gen_odd.onnx", "--chip", "nothing.group"], 1, "nothing.group"),
            (["discover", "--model", MODELS / "gen_odd.onnx", "--chip", "SM855"], 1, "did you mean SM8550?"),
            (["discover", "--model", MODELS / "gen_odd.onnx", "--chip", "quite-another"], 1, "(nearest: "),
            (["discover", "--model", MODELS / "gen_odd.onnx"], 1, "Chips that this machine can use now"),
            (["discover", "--model", MODELS / "gen_odd.onnx", "--chip", "null", "--inputs", "none"], 1, "--inputs"),
            (["discover", "--no-such-flag"], 2, "--no-such-flag"),
            (["discover", "--skip-mod"], 2, "Error: `discover` has no flag --skip-mod; did you mean --skip-mode?\n"),
            (["run", "--model", "x.onnx", "--workers", "2"], 2, "Error: `run` has no flag --workers; it is one of discover\n"),
            (["view", "--ouput-dir=x"], 2, "Error: `view` has no flag --ouput-dir; did you mean --output-dir?\n"),
            (["discover", "--model", MODELS / "gen_odd.onnx", "--dim", "x"], 2, "--dim"),
            (["discovr"], 2, "Error: no subcommand 'discovr'; did you mean discover? There are: discover, run, "),
            (["completion", "tcsh"], 2, "Error: no subcommand 'tcsh' of completion; there are: bash, zsh, fish\n"),
            (["completion"], 2, "Error: a subcommand of completion is missing; there are: bash, zsh, fish\n"),
            ([], 2, ""),
        ]
        for arguments, code, text in cases:
            with self.subTest(arguments):
                done = self.run_farm(*arguments, "--output-dir", self.out, code=code) if code == 1 else self.run_farm(*arguments, code=code)
                self.assertIn(text, done.stderr)
                self.assertFalse(self.out.exists())

    def test_a_fifo_is_refused_at_once(self):
        os.mkfifo(self.folder / "fifo.onnx")
        done = self.discover(str(self.folder / "fifo.onnx"), "null", code=1)
        self.assertIn("not a regular file", done.stderr)

    def test_errors_are_said_also_when_quiet(self):
        done = self.run_farm("discover", "--model", "none.onnx", "--chip", "null", "-q", code=1)
        self.assertIn("Error: Model not found", done.stderr)

    def test_results_that_cannot_be_written_are_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(self.command("chips", "--json"), env=self.env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_a_reader_that_goes_away_is_no_error(self):
        read, write = os.pipe()
        os.close(read)
        for command in (("chips", "--json"), ("completion", "bash")):
            done = subprocess.run(self.command(*command), env=self.env, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        os.close(write)

    def test_layers_and_op_types_that_no_model_has_are_said(self):
        for more in ((), ("--dry-run",)):
            done = self.discover("gen_odd", "null", "--layers", "If_pickd", *more, code=1)
            self.assertIn("Error: --layers If_pickd matches no layer of gen_odd; nearest: If_picked, ", done.stderr)
            self.assertFalse(self.report_path("gen_odd").exists())
        done = self.discover("gen_odd", "null", "--skip-ops", "Concatt", "--layers", "If_picked,Concat*", "--executors", "E0,e2", code=0)
        self.assertEqual(done.stderr.count("[SkipOps] Warning: no layer is of type 'Concatt'; nearest: Concat, "), 1)
        tested = {layer: set(entry["executors"]) for layer, entry in self.report("gen_odd")["ops"].items() if entry["executors"]}
        self.assertEqual(tested, {"If_picked": {"e0", "e2"}, "Concat_joined": {"e0", "e2"}})

    def test_without_a_chip_it_is_said_that_none_was_named_and_what_to_do(self):
        self.env["TORQ_COMPILE"] = str(self.folder / "not-there")
        done = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--output-dir", self.out, code=1)
        self.assertIn("Error: no chip was named, and the default, SL2610 (torq), cannot be used here: torq-compile", done.stderr)
        self.assertIn("--chip NAME or the variable LAYERFARM_CHIP names another", done.stderr)
        usable = done.stderr.splitlines()[-1].removeprefix("  Chips that this machine can use now: ").split(", ")
        self.assertIn("ort-cpu", usable)
        self.assertFalse({"null", "true"} & set(usable), usable)
        done = self.run_farm("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "sm8550", "--output-dir", self.out, code=1)
        self.assertIn("no chip file is called 'sm8550'; did you mean SM8550?", done.stderr)
        self.assertNotIn("install the torq tools", done.stderr)

    def test_numbers_that_are_none_are_usage_errors(self):
        for flag, value in (("--tolerance-avg", "nan"), ("--run-timeout", "nan"), ("--memory", "-1"), ("--memory", "99999999999999999999"),
                            ("--dim", "a=99999999999999999999"), ("--fail-on", "sometimes"), ("--workers", "0")):
            with self.subTest(flag):
                done = self.discover("gen_odd", "null", flag, value, code=2)
                self.assertIn(flag, done.stderr)

    def test_a_chip_file_with_a_typo_names_file_key_and_reason(self):
        self.chip("typo", ["true"], exectors=[])
        done = self.discover("gen_odd", "typo", code=1)
        self.assertIn("typo.json", done.stderr)
        self.assertIn("exectors", done.stderr)

    def test_a_read_only_output_folder_is_found_before_the_work(self):
        if os.geteuid() == 0:
            target = pathlib.Path("/proc/layerfarm-out")  # root may write anywhere but here
        else:
            target = self.folder / "ro"
            target.mkdir(mode=0o500)
        done = self.discover("gen_odd", "null", out=target, code=1)
        self.assertIn("output folder", done.stderr)

    def test_what_stands_in_the_way_in_the_cache_is_named_and_no_model_blamed(self):
        for taken in ("blobs", "scratch", "blobs/ab"):
            with self.subTest(taken):
                path = self.cache / taken
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("a file where a folder should be")
                done = self.discover("gen_odd", "null", code=1)
                errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertIn(str(path), errors[0])
                self.assertIn("LAYERFARM_CACHE_DIR", errors[0])
                self.assertNotIn("gen_odd", done.stderr)
                path.unlink()

    def test_a_folder_for_failed_cases_that_cannot_be_is_found_before_the_work(self):
        (self.folder / "file").write_text("x")
        for kept in (self.folder / "file", self.folder / "file" / "below", pathlib.Path("/proc/layerfarm-kept")):
            with self.subTest(kept):
                done = self.discover("gen_odd", "null", "--keep-failed", kept, code=1)
                self.assertIn("Error: --keep-failed: cannot write into " + str(kept), done.stderr)
                self.assertFalse(self.out.exists())
        self.discover("gen_odd", "null", "--keep-failed", self.folder / "deep" / "kept", code=0)
        self.assertFalse((self.folder / "deep").exists())

    def test_a_limit_of_the_shell_that_is_too_small_is_named(self):
        for limit, value, flag in ((resource.RLIMIT_NOFILE, 64, "-n"), (resource.RLIMIT_STACK, 64 << 10, "-s"),
                                   (resource.RLIMIT_AS, 1 << 30, "-v")):
            with self.subTest(flag):
                done = self.discover_under(limit, (value, value), code=1)
                errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertIn(f"ulimit {flag}", errors[0])
                self.assertFalse(self.out.exists())

    def test_a_soft_limit_of_the_shell_is_raised(self):
        for limit, value in ((resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_STACK, 128 << 10)):
            self.discover_under(limit, (value, resource.getrlimit(limit)[1]), code=0)

    def discover_under(self, limit, values, code):
        done = subprocess.run(self.command("discover", "--model", MODELS / "gen_odd.onnx", "--chip", "ort-cpu", "--workers", "2",
                                           "--output-dir", self.out), env=self.env, cwd=self.folder, capture_output=True, text=True,
                              timeout=LONGEST, preexec_fn=lambda: resource.setrlimit(limit, values))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_version_and_help_need_nothing(self):
        self.assertRegex(self.run_farm("--version", code=0).stdout, r"^layerfarm \d+\.\d+\.\d+ \(commit \S+, protocol 1-1\)\n$")
        self.assertIn("discover", self.run_farm("--help", code=0).stdout)
        self.assertFalse(self.cache.exists())

    def test_the_light_commands_do_not_link_onnx(self):
        linked = subprocess.run(["ldd", str(BIN / "layerfarm")], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(linked, r"onnx|protobuf")


if __name__ == "__main__":
    unittest.main(verbosity=2)
