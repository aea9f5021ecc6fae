"""The torq toolchain through stand-ins of its tools (tests/support/torq_standin): a discover gives what torq-gen-config gave for the same model with stand-ins of
the same rules (tests/golden/report/mlp_plain)."""
import json
import os
import pathlib
import unittest

from farm import Farm

TESTS = pathlib.Path(__file__).resolve().parent.parent
STANDINS = TESTS / "support" / "torq_standin"
GOLDEN = TESTS / "golden"


def python_packages():
    """Of the dependency cache (scripts/lib/deps.sh), where IREE's native programs are."""
    home = os.environ.get("LAYERFARM_DEPS_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache")
    folder = pathlib.Path(home or os.path.join(cache, "layerfarm-deps"))
    found = [path for path in folder.glob("python-*/site-packages") if (path / "iree" / "compiler").is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime)


class Torq(Farm):
    def setUp(self):
        super().setUp()
        packages = python_packages()
        self.log = self.folder / "calls.jsonl"
        self.env |= {
            "TORQ_COMPILE": str(STANDINS / "torq-compile"),
            "TORQ_RUN_MODULE": str(STANDINS / "torq-run-module"),
            "STANDIN_IREE_COMPILE": str(packages / "iree" / "compiler" / "_mlir_libs" / "iree-compile"),
            "STANDIN_IREE_RUN_MODULE": str(packages / "iree" / "_runtime_libs" / "iree-run-module"),
            "STANDIN_LOG": str(self.log),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def test_a_discover_says_what_torq_gen_config_said(self):
        done = self.run_farm("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out)
        self.assertEqual(done.returncode, 1, done.stderr)  # some cases are meant to differ and to fail
        ours = json.loads((self.out / "torq_gen_config_mlp.json").read_text())["ops"]
        theirs = json.loads((GOLDEN / "report" / "mlp_plain" / "01" / "torq_gen_config_mlp.json").read_text())["ops"]
        self.assertEqual(sorted(ours), sorted(theirs))
        for layer, entry in theirs.items():
            with self.subTest(layer):
                for key in ("recommended_executor", "mlir_location", "_node_index", "mac_count"):
                    self.assertEqual(ours[layer].get(key), entry.get(key), key)
                self.assertEqual(
                    {name: result["status"] for name, result in ours[layer]["executors"].items()},
                    {name: result["status"] for name, result in entry["executors"].items()},
                )
        self.assertEqual(
            json.loads((self.out / "torq_gen_config_mlp_compiler.json").read_text()),
            json.loads((GOLDEN / "report" / "mlp_plain" / "01" / "torq_gen_config_mlp_compiler.json").read_text()),
        )
        programs = [json.loads(line)[0] for line in self.log.read_text().splitlines()]
        self.assertEqual(set(programs), {"torq-compile", "torq-run-module"})

    def test_without_the_tools_the_variables_are_named_and_nothing_is_done(self):
        self.env["TORQ_COMPILE"] = str(self.folder / "not-there")
        done = self.run_farm("discover", "--model", GOLDEN / "models" / "mlp.onnx", "--output-dir", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Error: chip SL2610 cannot be used here: torq-compile", done.stderr)
        self.assertIn("TORQ_COMPILE", done.stderr)
        self.assertIn("Chips that this machine can use now:", done.stderr)
        self.assertFalse((self.out / "torq_gen_config_mlp.json").exists())


if __name__ == "__main__":
    unittest.main()
