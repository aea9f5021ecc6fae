"""Command lines of torq-gen-config with what it gave for them (tests/golden/report), step by step in one folder, on stand-ins of the torq tools of the same rules."""
import json
import unittest

from farm import Farm
from torq_tools import GOLDEN, use_standins


def facts(name, content):
    """What must be as there, by a name for people."""
    if "op_assignments" in content:
        return {"assignments": {place: entry["executor"] for place, entry in content["op_assignments"].items()}}
    if name.endswith("_mac_debug.json"):
        return {"MACs": {layer: entry["mac_count"] for layer, entry in content["ops"].items()}}
    found = {"layers": sorted(content["ops"])}
    for layer, entry in content["ops"].items():
        found[f"statuses of {layer}"] = {executor: result["status"] for executor, result in entry["executors"].items()}
        found[f"recommendation for {layer}"] = entry["recommended_executor"]
        for key in ("mlir_location", "_node_index", "mac_count"):
            found[f"{key} of {layer}"] = entry.get(key)
    # The differences of a whole model are those of the processor; how many elements count is not. Out of how many: the original says its last output's.
    block = content["final_report_text"].partition("--- Full Model Comparison ---")[2]
    found["block of the whole model"] = [line.split(" out of ")[0] for line in block.split("\n") if line.startswith("  Number of differences")]
    return found


class GoldenCases(Farm):
    def setUp(self):
        super().setUp()
        self.log = use_standins(self)

    def steps(self, case, model, *steps, but=()):
        """Each step is its number, its exit code and its words. `but`: keys that the original gives and the specification does not."""
        path = GOLDEN / "models" / f"{model}.onnx"
        for number, code, command, *words in steps:
            with self.subTest(step=number):
                before = self.files()
                done = self.run_farm(command, *(("--model", path, "--output-dir", self.out) if command != "edit" else ()), *words)
                self.assertEqual(done.returncode, code, done.stderr)
                golden = GOLDEN / "report" / case / f"{number:02d}"
                for theirs in sorted(golden.glob("*.json")):
                    wanted = facts(theirs.name, json.loads(theirs.read_text()))
                    ours = facts(theirs.name, json.loads((self.out / theirs.name).read_text()))
                    wanted = {key: value for key, value in wanted.items() if key.split(" ")[0] not in but}
                    self.assertEqual({key: ours.get(key) for key in wanted}, wanted, theirs.name)
                if not golden.is_dir():
                    self.assertEqual(self.files(), before)
        return done

    def calls(self, program):
        calls = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [call for call in calls if call[0] == program]

    def test_mlp_plain(self):
        self.steps("mlp_plain", "mlp", (1, 1, "discover"), (2, 0, "run"))

    def test_macs_plain(self):
        self.steps("macs_plain", "macs", (1, 1, "discover"), (2, 0, "run"))

    def test_gather_plain(self):
        self.steps("gather_plain", "gather_const", (1, 1, "discover"), (2, 0, "run"))
        # Integers are signed to the run tool, as in the imported module.
        inputs = {word.split("=@")[0] for call in self.calls("torq-run-module") for word in call if word.startswith("--input=")}
        self.assertEqual(inputs, {"--input=1x6xsi64", "--input=1x6x8xf32", "--input=1x6x1xf32"})

    def test_cnn_subgraph(self):
        report = self.out / "torq_gen_config_cnn_repeat_subgraph_2_5.json"
        self.steps(
            "cnn_subgraph",
            "cnn_repeat",
            (1, 0, "discover", "--subgraph-from=Conv_c1", "--subgraph-to=r2"),
            (2, 0, "run", "--subgraph-from=c1", "--subgraph-to=Relu_r2"),
            (4, 0, "edit", report, "--layer", "Conv_c1", "--executor", "host"),
            (5, 0, "run", "--subgraph-from=Conv_c1", "--subgraph-to=r2"),
            (6, 1, "discover", "--subgraph-from=conv1", "--subgraph-to=r2"),
            (7, 0, "discover", "--subgraph-from=Relu_r2", "--subgraph-to=Conv_c1"),
            (8, 0, "discover", "--subgraph-from=Gemm_logits", "--subgraph-to=Gemm_logits"),
        )

    def test_cnn_quant_qdq(self):
        flags = ("--quantize", "--full-integer")
        # The original numbers fused layers by their place in the float model, the specification by none.
        self.steps("cnn_quant_qdq", "cnn_repeat", (1, 1, "discover", *flags), (2, 0, "run", *flags), but=("_node_index",))
        block = "--- Full Model Comparison ---\n  Max absolute difference: 0.0\n  Number of differences: 0 out of 4 [0.00%]\n"
        self.assertIn(block, self.report("cnn_repeat")["final_report_text"])
        whole = self.calls("torq-run-module")[-1]
        self.assertEqual([word.split("=@")[0] for word in whole if word.startswith("--input=")], ["--input=1x3x8x8xsi8"])
        # Step 3 of the case, a run without these flags, is refused here. And the map names lines of the quantized module: a wrong executor shows.
        plain = self.run_farm("run", "--model", GOLDEN / "models" / "cnn_repeat.onnx", "--output-dir", self.out, code=1)
        self.assertIn("was made with other settings: quantize: ", plain.stderr)
        self.run_farm("edit", self.report_path("cnn_repeat"), "--layer", "Add_res", "--executor", "css", code=0)
        wrong = self.run_farm("run", "--model", GOLDEN / "models" / "cnn_repeat.onnx", "--output-dir", self.out, *flags, code=1)
        self.assertIn("Full model comparison failed: ", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
