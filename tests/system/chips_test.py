"""Reports of several chips and of subgraphs: which one a command means that names the model, with the real programs."""
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import MODELS, Farm

MODEL = MODELS / "gen_odd.onnx"


class Chips(Farm):
    def choose(self, command, *arguments, code=0):
        return self.run_farm(command, "--model", MODEL, "--output-dir", self.out, *arguments, code=code)

    def test_each_command_finds_the_report_of_the_chip_that_is_named(self):
        self.discover("gen_odd", "ort-cpu,null", code=0)
        layer = next(iter(self.report("gen_odd", self.out / "null")["ops"]))
        self.assertIn("CPU-NOOPT", self.choose("view", "--chip", "ort-cpu").stdout)
        self.assertIn("LAYER: " + layer, self.choose("view", layer, "--chip", "null").stdout)
        self.choose("edit", "--chip", "null", "--layer", layer, "--executor", "e2")
        self.assertEqual(self.report("gen_odd", self.out / "null")["ops"][layer]["recommended_executor"], "e2")
        self.assertEqual(self.report("gen_odd", self.out / "ort-cpu")["ops"][layer]["recommended_executor"], "cpu")
        self.choose("run", "--chip", "ort-cpu")
        self.assertEqual(self.report("gen_odd", self.out / "ort-cpu")["_whole_model"]["status"], "success")
        self.choose("edit", "--chip", "ort-cpu", "--layer", layer, "--executor", "cpu")  # takes the whole model's result out
        self.env["LAYERFARM_CHIP"] = "ort-cpu"
        self.choose("run", "--chip", "default")
        self.assertEqual(self.report("gen_odd", self.out / "ort-cpu")["_whole_model"]["status"], "success")
        other = self.folder / "other"
        shutil.copytree(self.out, other)
        self.run_farm("compare", self.out, other, "--model", MODEL, "--chip", "null", code=0)

    def test_without_a_name_several_are_listed_and_one_is_taken(self):
        self.discover("gen_odd", "ort-cpu,null", code=0)
        paths = [str(self.report_path("gen_odd", self.out / chip)) for chip in ("null", "ort-cpu")]
        for command, more in (("view", ()), ("edit", ("--list",)), ("run", ())):
            with self.subTest(command):
                done = self.choose(command, *more, code=1)
                self.assertTrue(done.stderr.startswith("Error: several reports fit gen_odd; "), done.stderr)
                self.assertEqual([line.strip() for line in done.stderr.splitlines()[1:]], paths)
                self.assertEqual(done.stdout, "")
        self.run_farm("compare", self.out, self.out, "--model", MODEL, code=2)
        shutil.rmtree(self.out / "null")
        self.assertIn("CPU-NOOPT", self.choose("view").stdout)

    def test_the_report_of_another_chip_is_not_shown_for_the_one_that_is_named(self):
        self.discover("gen_odd", "ort-cpu", code=0)
        files = self.files()
        for command, more in (("view", ()), ("edit", ("--layer", "ALL", "--executor", "null"))):
            done = self.choose(command, "--chip", "null", *more, code=1)
            self.assertEqual(done.stderr, f"Error: no report of chip null: {self.report_path('gen_odd')} is of chip ort-cpu\n")
        self.assertEqual(self.files(), files)
        self.env["LAYERFARM_CHIP"] = "ort-cpu"
        self.choose("view", "--chip", "default")

    def test_a_discover_of_several_chips_takes_over_what_one_of_them_left(self):
        self.discover("gen_odd", "ort-cpu", "--executors", "cpu", code=0)
        layer = next(iter(self.report("gen_odd")["ops"]))
        self.choose("edit", "--layer", layer, "--executor", "cpu-noopt")
        before = self.files()
        dry = self.discover("gen_odd", "ort-cpu,null", "--dry-run", code=0)
        target = self.out / "ort-cpu" / self.report_path("gen_odd").name
        self.assertIn(f"[ExecutorJSON] results of chip ort-cpu taken over, would be moved to {target}\n", dry.stderr)
        self.assertEqual(self.files(), before)
        done = self.discover("gen_odd", "ort-cpu,null", "--executors", "cpu-noopt", "--executors", "e0", code=0)
        self.assertIn(f"[ExecutorJSON] results of chip ort-cpu taken over, moved to {target}\n", done.stderr)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["null", "ort-cpu"])
        entry = self.report("gen_odd", self.out / "ort-cpu")["ops"][layer]
        self.assertEqual(list(entry["executors"]), ["cpu", "cpu-noopt"])
        self.assertEqual(entry["recommended_executor"], "cpu-noopt")
        # One that is there twice is left alone, and that is said; another chip's is none of our business.
        shutil.copy(target, self.report_path("gen_odd"))
        kept = self.report_path("gen_odd").read_bytes()
        done = self.discover("gen_odd", "ort-cpu,null", code=0)
        self.assertIn(f"{self.report_path('gen_odd')} is of chip ort-cpu too and stays as it is", done.stderr)
        self.assertEqual(self.report_path("gen_odd").read_bytes(), kept)


class Subgraphs(Farm):
    def test_a_subgraph_s_report_is_found_by_its_ends(self):
        report = self.make()
        ids = list(self.report_of(report)["ops"])
        first, last = ids[0], ids[-1]
        for ends in ((first, last), (first.split("_", 1)[1], last.split("_", 1)[1])):
            flags = ("--subgraph-from", ends[0], "--subgraph-to", ends[1])
            self.assertIn(f"LAYER: {last}\n", self.choose("view", last, *flags).stdout)
            self.assertIn(f"Total: {len(ids)} layer(s)", self.choose("edit", "--list", "", *flags).stdout)
        whole = self.report_path("gen_repeat_cnn").read_bytes()
        self.choose("edit", "--layer", last, "--executor", "cpu-noopt", "--subgraph-from", first, "--subgraph-to", last)
        self.assertEqual(self.report_of(report)["ops"][last]["recommended_executor"], "cpu-noopt")
        self.assertEqual(self.report_path("gen_repeat_cnn").read_bytes(), whole)
        self.run_farm("compare", self.out, self.out, "--model", MODELS / "gen_repeat_cnn.onnx", "--subgraph-from", first, "--subgraph-to", last, code=0)

    def test_what_fits_none_names_those_that_are_there(self):
        report = self.make()
        ids = list(self.report_of(report)["ops"])
        done = self.choose("view", "--subgraph-from", ids[0], "--subgraph-to", "Relu_none", code=1)
        self.assertEqual(done.stderr, f"Error: no report of gen_repeat_cnn from {ids[0]} to Relu_none; there are:\n  {ids[0]} to {ids[-1]}: {report}\n")
        for command in (("view",), ("edit", "--list", "")):
            done = self.choose(command[0], *command[1:], "--subgraph-from", ids[0], code=1)
            self.assertTrue(done.stderr.startswith("Error: --subgraph-from needs --subgraph-to"), done.stderr)
        done = self.run_farm("view", "--subgraph-from", "a", "--subgraph-to", "b", code=1)
        self.assertEqual(done.stderr, "Error: --subgraph-from and --subgraph-to need --model\n")

    def choose(self, command, *arguments, code=0):
        return self.run_farm(command, "--model", MODELS / "gen_repeat_cnn.onnx", "--output-dir", self.out, *arguments, code=code)

    def report_of(self, path):
        return self.report(path.stem[len("torq_gen_config_"):])

    def make(self):
        """Reports of the model and of a part of it; the latter's path."""
        self.discover("gen_repeat_cnn", "ort-cpu", code=0)
        layers = list(self.report("gen_repeat_cnn")["ops"])
        self.discover("gen_repeat_cnn", "ort-cpu", "--subgraph-from", layers[2], "--subgraph-to", layers[5], code=0)
        return self.out / "torq_gen_config_gen_repeat_cnn_subgraph_2_5.json"


if __name__ == "__main__":
    unittest.main()
