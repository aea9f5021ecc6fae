"""What a person changes in a report, and what discover makes of a report that is not like its own run: with the real programs."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import MODELS, Farm, onnx_model

FLOAT = 1  # ONNX's number
STRICT = ("--tolerance-max", "1e-12", "--tolerance-avg", "1e-12", "--tolerance-abs-frac", "0")


class Reports(Farm):
    def edit(self, model, *arguments, code=0):
        return self.run_farm("edit", self.report_path(model), *arguments, code=code)

    def rewrite(self, model, change):
        """What a text editor does to a report."""
        report = self.report(model)
        change(report)
        self.report_path(model).write_text(json.dumps(report, indent=2))

    def recommended(self, model):
        return {layer: entry["recommended_executor"] for layer, entry in self.report(model)["ops"].items()}

    def compiler(self, model):
        return json.loads((self.out / f"torq_gen_config_{model}_compiler.json").read_text())["op_assignments"]

    def batch_model(self):
        path = self.folder / "net.onnx"
        path.write_bytes(onnx_model([("Relu", ["image"], ["r"]), ("Add", ["r", "mask"], ["s"]), ("Exp", ["s"], ["y"])],
                                    [("image", FLOAT, ["batch", 4]), ("mask", FLOAT, [4])], [("y", FLOAT, ["batch", 4])]))
        return path


class Recommendations(Reports):
    def test_every_discover_keeps_what_a_person_chose(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        by_edit, by_hand, none, text, plain = list(self.report("gen_odd")["ops"])[:5]
        self.edit("gen_odd", "--layer", by_edit, "--executor", "cpu-noopt")
        def change(report):
            report["ops"][by_hand]["recommended_executor"] = "cpu-noopt"
            report["ops"][none]["recommended_executor"] = None
            report["ops"][text]["recommended_executor"] = "null"  # as torq-gen-config's edit writes it
        self.rewrite("gen_odd", change)
        chosen = {by_edit: "cpu-noopt", by_hand: "cpu-noopt", none: None, text: None, plain: "cpu"}
        for flags in ((), ("--recompute-cache",), ("--skip-mode",), ("--collect-timing",), ("--recommend-by-timing",), ("--layers", plain),
                      ("--layers", by_hand), ("--skip-ops", "Concat"), ("--skip-executors", "cpu-noopt"), ()):
            with self.subTest(flags=flags):
                done = self.discover("gen_odd", "ort-cpu", *flags, code=0)
                self.assertRegex(done.stderr, rf"(?m)^\[ExecutorJSON\] 4 recommendation\(s\) edited by hand are kept: {by_edit}, ")
                found = self.recommended("gen_odd")
                by_time = "timing" in " ".join(flags)
                self.assertEqual({layer: found[layer] for layer in chosen if not (by_time and layer == plain)},
                                 {layer: executor for layer, executor in chosen.items() if not (by_time and layer == plain)})
                report = self.report("gen_odd")
                self.assertEqual({layer for layer, entry in report["ops"].items() if entry.get("_edited")}, {by_edit, by_hand, none, text})
                assigned = self.compiler("gen_odd")
                for layer, executor in found.items():
                    place = report["ops"][layer]["mlir_location"]
                    self.assertEqual(assigned.get(place), {"executor": executor} if executor else None)
                    self.assertEqual(report["_assignments"][layer]["executor"], executor)

    def test_null_is_json_null_and_a_name_that_the_chip_lacks_changes_nothing(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        layer = next(iter(self.report("gen_odd")["ops"]))
        self.edit("gen_odd", "--layer", layer, "--executor", "null")
        self.assertIsNone(self.report("gen_odd")["ops"][layer]["recommended_executor"])
        files = self.files()
        for name in ("nss", "cpu-", "cpu "):
            done = self.edit("gen_odd", "--layer", layer, "--executor", name, code=1)
            self.assertEqual(done.stderr, f"Error: '{name}' is no executor of chip ort-cpu; choose one of cpu, cpu-noopt, null or auto\n")
        self.assertEqual(self.files(), files)
        self.edit("gen_odd", "--layer", layer, "--executor", "CPU-NoOpt")
        self.assertEqual(self.report("gen_odd")["ops"][layer]["recommended_executor"], "cpu-noopt")

    def test_keys_of_others_stay_through_discover_edit_and_run(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        layer = next(iter(self.report("gen_odd")["ops"]))
        def change(report):
            report["owner"] = {"name": "größe"}
            report["ops"][layer]["note"] = ["mine", 1.0]
        self.rewrite("gen_odd", change)
        self.edit("gen_odd", "--layer", layer, "--executor", "cpu-noopt")
        self.discover("gen_odd", "ort-cpu", "--recompute-cache", code=0)
        self.run_farm("run", "--model", MODELS / "gen_odd.onnx", "--output-dir", self.out, code=0)
        report = self.report("gen_odd")
        self.assertEqual(report["owner"], {"name": "größe"})
        self.assertEqual(report["ops"][layer]["note"], ["mine", 1.0])


class Tolerances(Reports):
    def test_edit_judges_what_the_report_tells_as_a_discover_would(self):
        self.discover("gen_repeat_cnn", "ort-cpu", *STRICT, code=1)
        layer = next(layer for layer, entry in self.report("gen_repeat_cnn")["ops"].items()
                     if entry["executors"]["cpu-noopt"]["status"] == "difference")
        done = self.edit("gen_repeat_cnn", "--layer", layer, "--tolerance-max", "0.5")
        self.assertIn(f"{layer} on cpu-noopt: difference -> success", done.stderr)
        self.assertRegex(done.stdout, rf"^Updated tolerance for '{layer}' to {{'fp_max_tol': 0.5}}\nUpdated compiler JSON: \S+\n$")
        result = self.report("gen_repeat_cnn")["ops"][layer]["executors"]["cpu-noopt"]
        self.assertEqual(result["status"], "success")
        self.assertEqual(result["tolerance_used"], {"fp_avg_tol": 1e-12, "fp_max_tol": 0.5})
        self.assertNotIn("failure_report", result)
        files = self.files()
        self.discover("gen_repeat_cnn", "ort-cpu", *STRICT, code=1)
        self.assertEqual(self.files(), files)

    def test_what_the_report_does_not_tell_the_next_discover_judges(self):
        exact = ("--tolerance-abs-frac", "0")
        self.discover("gen_repeat_cnn", "ort-cpu", *exact)
        layer, needed = next((layer, result["_required_tolerance"]) for layer, entry in self.report("gen_repeat_cnn")["ops"].items()
                             for result in [entry["executors"]["cpu-noopt"]] if 0 < result["_required_tolerance"] < 0.01)
        before = self.report("gen_repeat_cnn")["ops"][layer]["executors"]
        done = self.edit("gen_repeat_cnn", "--layer", layer, "--tolerance-max", needed / 3)
        self.assertIn("until the next discover", done.stderr)
        self.assertIn(f"{layer} on cpu-noopt", done.stderr)
        self.assertEqual(self.report("gen_repeat_cnn")["ops"][layer]["executors"]["cpu-noopt"], before["cpu-noopt"])
        # Without a flag: the entry's edit wins over the chip file.
        self.discover("gen_repeat_cnn", "ort-cpu", *exact, code=1)
        judged = self.report("gen_repeat_cnn")["ops"][layer]["executors"]["cpu-noopt"]
        self.assertEqual(judged["status"], "difference")
        self.assertEqual(judged["tolerance_used"]["fp_max_tol"], needed / 3)
        # And over flags.
        self.discover("gen_repeat_cnn", "ort-cpu", *exact, "--tolerance-max", "0.5", code=1)
        self.assertEqual(self.report("gen_repeat_cnn")["ops"][layer]["executors"]["cpu-noopt"], judged)


    def test_every_bound_can_be_edited_and_taken_back(self):
        exact = ("--tolerance-abs-frac", "0")
        self.discover("gen_repeat_cnn", "ort-cpu", *exact, code=0)
        before = self.files()
        layer, needed = next((layer, result["_required_tolerance"]) for layer, entry in self.report("gen_repeat_cnn")["ops"].items()
                             for result in [entry["executors"]["cpu-noopt"]] if 0 < result["_required_tolerance"] < 0.01)
        bounds = {"fp_avg_tol": needed / 2, "fp_max_tol": needed / 2, "fp_abs_tol_frac": 0.5, "int_tol": 0}
        done = self.edit("gen_repeat_cnn", "--layer", layer, "--tolerance-avg", needed / 2, "--tolerance-max", needed / 2,
                         "--tolerance-abs-frac", "0.5", "--tolerance-int", "0", code=0)
        self.assertIn(f"int_tol has no effect on 1 layer(s), since no result of them has integers: {layer}\n", done.stderr)
        self.assertEqual(self.report("gen_repeat_cnn")["ops"][layer]["tolerance_used"], bounds)
        # The difference is too small beside the greatest value to count any more, and that holds through later discovers.
        for _ in range(2):
            self.discover("gen_repeat_cnn", "ort-cpu", *exact, code=0)
            judged = self.report("gen_repeat_cnn")["ops"][layer]["executors"]["cpu-noopt"]
            self.assertEqual((judged["status"], judged["tolerance_used"]), ("success", bounds))
        self.edit("gen_repeat_cnn", "--layer", layer, "--tolerance-abs-frac", "auto", code=0)
        self.discover("gen_repeat_cnn", "ort-cpu", *exact, code=1)
        self.assertEqual(self.report("gen_repeat_cnn")["ops"][layer]["executors"]["cpu-noopt"]["status"], "difference")
        done = self.edit("gen_repeat_cnn", "--layer", layer, "--tolerance-avg", "auto", "--tolerance-max", "auto", "--tolerance-int", "auto", code=0)
        self.assertIn(f"Updated tolerance for '{layer}' to auto\n", done.stdout)
        self.assertNotIn("tolerance_used", self.report("gen_repeat_cnn")["ops"][layer])
        self.discover("gen_repeat_cnn", "ort-cpu", *exact, code=0)
        self.assertEqual(self.files(), before)
        for flag, value in (("--tolerance-int", "0.5"), ("--tolerance-abs-frac", "2"), ("--tolerance-max", "Auto"), ("--tolerance-avg", "-1")):
            self.edit("gen_repeat_cnn", "--layer", layer, flag, value, code=2)
        self.assertEqual(self.files(), before)

    def test_a_choice_can_be_taken_back(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        before = self.files()
        layer = next(iter(self.report("gen_odd")["ops"]))
        self.edit("gen_odd", "--layer", layer, "--executor", "cpu-noopt", code=0)
        done = self.edit("gen_odd", "--layer", layer, "--executor", "auto", code=0)
        self.assertIn(f"Updated recommended_executor for '{layer}' to 'auto' (now cpu)\n", done.stdout)
        self.assertEqual(self.files(), before)


class OtherSettings(Reports):
    def test_their_results_are_set_aside_and_count_for_nothing(self):
        model = self.batch_model()
        self.discover(model, "ort-cpu", code=0)
        self.edit("net", "--layer", "Add_s", "--executor", "cpu-noopt")
        self.edit("net", "--layer", "Exp_y", "--tolerance-max", "0.25")
        before = self.report("net")
        # In skip mode an old success skips its layer; these are of another model, and it is tested.
        done = self.discover(model, "ort-cpu", "--dim", "batch=3", "--skip-mode", code=0)
        self.assertIn(f"[ExecutorJSON] 6 result(s) in {self.report_path('net')} are set aside: dims: {{}} there, {{'batch': 3}} here\n", done.stderr)
        self.assertIn("[ExecutorJSON] 1 recommendation(s) edited by hand are kept: Add_s\n", done.stderr)
        report = self.report("net")
        self.assertEqual(report["_settings"]["dims"], {"batch": 3})
        self.assertEqual({layer: list(entry["executors"]) for layer, entry in report["ops"].items()},
                         {"Relu_r": ["cpu"], "Add_s": ["cpu"], "Exp_y": ["cpu"]})
        self.assertEqual(report["ops"]["Relu_r"]["executors"]["cpu"]["_num_elements"], 12)
        self.assertEqual(report["ops"]["Add_s"]["recommended_executor"], "cpu-noopt")
        self.assertEqual(report["ops"]["Exp_y"]["tolerance_used"], {"fp_max_tol": 0.25})
        self.assertEqual(report["ops"]["Exp_y"]["executors"]["cpu"]["tolerance_used"]["fp_max_tol"], 0.25)
        # A layer that is not selected keeps nothing of them either; the way back finds all in the store.
        self.discover(model, "ort-cpu", "--layers", "Relu_r", code=0)
        self.assertEqual({layer: list(entry["executors"]) for layer, entry in self.report("net")["ops"].items()},
                         {"Relu_r": ["cpu", "cpu-noopt"], "Add_s": [], "Exp_y": []})
        done = self.discover(model, "ort-cpu", code=0)
        self.assertIn("Results: 0 fresh, 6 from the store", done.stderr)
        self.assertNotIn("set aside", done.stderr)
        self.assertEqual(self.report("net"), before)

    def test_results_of_another_model_of_the_name_are_set_aside(self):
        model = self.batch_model()
        self.discover(model, "ort-cpu", code=0)
        model.write_bytes(model.read_bytes().replace(b"Exp", b"Neg"))
        done = self.discover(model, "ort-cpu", "--skip-mode", code=0)
        self.assertIn(f"[ExecutorJSON] 6 result(s) in {self.report_path('net')} are set aside: the model's content has changed since\n", done.stderr)
        self.assertEqual({layer: list(entry["executors"]) for layer, entry in self.report("net")["ops"].items()},
                         {"Relu_r": ["cpu"], "Add_s": ["cpu"], "Neg_y": ["cpu"]})
        # Equal layers come from the store at once.
        self.assertIn("Results: 1 fresh, 2 from the store", done.stderr)

    def test_in_skip_mode_a_success_counts_only_for_what_was_asked_then(self):
        strict = ("--tolerance-avg", "1e-12", "--tolerance-max", "1e-12", "--tolerance-abs-frac", "0")
        self.discover("gen_repeat_cnn", "ort-cpu", "--executors", "cpu-noopt", "--tolerance-avg", "0.5", "--tolerance-max", "0.5", code=0)
        self.discover("gen_repeat_cnn", "ort-cpu", "--executors", "cpu-noopt", "--skip-mode", *strict, code=1)
        statuses = {result["status"] for entry in self.report("gen_repeat_cnn")["ops"].values() for result in entry["executors"].values()}
        self.assertEqual(statuses, {"success", "difference"})
        tolerances = {json.dumps(result["tolerance_used"]) for entry in self.report("gen_repeat_cnn")["ops"].values()
                      for result in entry["executors"].values()}
        self.assertEqual(tolerances, {'{"fp_avg_tol": 1e-12, "fp_max_tol": 1e-12}'})
        # Where no more is asked than then, it counts: only what failed is judged anew.
        failed = sum(entry["executors"]["cpu-noopt"]["status"] == "difference" for entry in self.report("gen_repeat_cnn")["ops"].values())
        done = self.discover("gen_repeat_cnn", "ort-cpu", "--executors", "cpu-noopt", "--skip-mode", code=0)
        self.assertIn(f"Results: 0 fresh, {failed} from the store", done.stderr)

    def test_a_report_that_names_no_settings_is_taken_with_a_note(self):
        model = self.batch_model()
        self.discover(model, "ort-cpu", code=0)
        def change(report):  # to what torq-gen-config would have written
            for key in [key for key in report if key.startswith("_")]:
                del report[key]
            for entry in report["ops"].values():
                for result in entry["executors"].values():
                    for key in [key for key in result if key.startswith("_")]:
                        del result[key]
            report["ops"]["Add_s"]["executors"]["cpu"]["theirs"] = 1
        self.rewrite("net", change)
        note = f"[ExecutorJSON] {self.report_path('net')} does not say of which settings its results are; they are taken as they are\n"
        done = self.discover(model, "ort-cpu", "--layers", "Relu_r", "--dim", "batch=3", code=0)
        self.assertIn(note, done.stderr)
        report = self.report("net")
        self.assertEqual(report["ops"]["Add_s"]["executors"]["cpu"]["theirs"], 1)
        self.assertEqual(report["_settings"]["dims"], {"batch": 3})
        self.assertNotIn("edited by hand", done.stderr)
        # In skip mode its successes count, as torq-gen-config's own do.
        self.rewrite("net", lambda report: report.pop("_settings"))
        done = self.discover(model, "ort-cpu", "--skip-mode", "-v", code=0)
        self.assertIn(note, done.stderr)
        self.assertIn("skipped (layer already works with cpu", done.stderr)
        self.assertEqual(self.report("net")["ops"]["Add_s"]["executors"]["cpu"]["theirs"], 1)


if __name__ == "__main__":
    unittest.main()
