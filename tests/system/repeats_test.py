"""--repeats: a case on several sets of random inputs, with the real programs."""
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import Farm

MODEL = "gen_repeat_cnn"
RANK = ["error", "difference", "success"]  # the worst first


class Repeats(Farm):
    def repeat(self, count, *arguments, **options):
        return self.discover(MODEL, "ort-cpu", "--repeats", count, "--tolerance-abs-frac", "0", "--fail-on", "never", *arguments, code=0, **options)

    def results(self):
        return {(layer, executor): result for layer, entry in self.report(MODEL)["ops"].items() for executor, result in entry["executors"].items()}

    def text(self):
        return self.report_path(MODEL).read_text()

    def test_verdicts_that_disagree_give_the_most_frequent_one_and_a_mark(self):
        done = self.repeat(3)
        self.assertRegex(done.stderr, r"\[progress\] 72/72 \[100%\]")
        report = self.report(MODEL)
        self.assertEqual(report["_settings"]["inputs"], {"seed": 1234, "repeats": 3})
        # Rounding differs from input to input: between what one repeat needs and what another does lie bounds that divide them.
        bounds = sorted({result["_required_tolerance"] for result in self.results().values() if 0 < result.get("_required_tolerance", 0) < 0.1})
        flaky = {}
        while bounds and not flaky:
            flags = ("--tolerance-max", bounds.pop() * 0.999)
            done = self.repeat(3, *flags)
            flaky = {key: result for key, result in self.results().items() if "_flaky" in result}
        self.assertTrue(flaky, "no bound divides the repeats")
        for (layer, executor), result in flaky.items():
            counts = result["_flaky"]
            self.assertEqual(sum(counts.values()), 3)
            self.assertGreater(sorted(counts.values())[1], 0)
            self.assertEqual(result["status"], max(RANK, key=lambda status: (counts[status], -RANK.index(status))))
            self.assertRegex(done.stderr, rf"(?m)^Layer {layer}: {executor.upper()} = {result['status']} .*"
                                          rf"\(flaky: {counts['success']} success, {counts['difference']} difference, {counts['error']} error\)$")
        text, three = self.text(), self.results()
        # From the store, in whatever order it answers: a fresh run may differ, as ONNX Runtime does not round alike in every process.
        shutil.rmtree(self.out)
        self.repeat(3, *flags, workers=1)
        self.assertEqual(self.text(), text)
        # One repeat is another setting, and what all agree about it says in the same words.
        done = self.repeat(1, *flags)
        self.assertIn("are set aside: inputs: {'seed': 1234, 'repeats': 3} there, {'seed': 1234} here", done.stderr)
        self.assertIn("Results: 0 fresh, 72 from the store", done.stderr)
        for key, result in self.results().items():
            if key not in flaky:
                self.assertEqual(result | {"_cosine": 0}, three[key] | {"_cosine": 0})

    def test_timing_and_skip_mode_go_with_it(self):
        self.repeat(2, "--skip-mode", "--collect-timing", "--layers", "Conv_stem.out")
        tested = {key: result for key, result in self.results().items() if key[0] == "Conv_stem.out"}
        self.assertEqual(list(tested), [("Conv_stem.out", "cpu")])
        self.assertEqual(tested["Conv_stem.out", "cpu"]["timing"]["runs"], 1)
        self.run_farm("discover", "--model", "x.onnx", "--repeats", "0", code=2)


if __name__ == "__main__":
    unittest.main()
