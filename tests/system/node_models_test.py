"""Verdicts of ONNX's own node models against the tables of a whole run of them (tests/golden/node_models, docs/node-models.md): a sample spread over all of them, on two
toolchains. The models are there after `scripts/setup --tests`."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from farm import Farm

TESTS = pathlib.Path(__file__).resolve().parent.parent
TABLES = TESTS / "golden" / "node_models"
# What a model computes is the same on any processor where all agrees; a difference may lie in the processor's own arithmetic.
STEP = int(os.environ.get("LAYERFARM_TEST_NODE_STEP", "71"))


def dependencies():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(os.environ.get("LAYERFARM_DEPS_DIR") or os.path.join(home, "layerfarm-deps"))


class NodeModels(Farm):
    def setUp(self):
        super().setUp()
        folders = [path for path in dependencies().glob("onnx-testdata-*") if (path / ".complete").exists()]
        if not folders:
            self.skipTest("no node models here (scripts/setup --tests)")
        self.nodes = folders[0] / "node"

    def check_sample(self, chip):
        head, *rows = (TABLES / f"{chip}.tsv").read_text().splitlines()
        agreed = [row for row in rows if all(cell.split("/")[1] == "0" for cell in row.split("\t")[1:])]
        chosen = agreed[::STEP]
        models = self.folder / "models"
        models.mkdir()
        for row in chosen:
            name = row.split("\t")[0]
            (models / f"{name}.onnx").symlink_to(self.nodes / name / "model.onnx")
        self.run_farm("discover", "--model", models / "*.onnx", "--chip", chip, "--workers", "2", "--output-dir", self.out, "-q")
        table = subprocess.run([sys.executable, TESTS / "support" / "verdict_table.py", self.out], capture_output=True, text=True, check=True).stdout
        self.assertEqual(table.splitlines(), [head, *chosen])

    def test_a_sample_on_host_cpu_is_as_in_the_table(self):
        self.check_sample("host-cpu")

    def test_a_sample_on_sm8550_is_as_in_the_table(self):
        self.check_sample("SM8550")


if __name__ == "__main__":
    unittest.main(verbosity=2)
