"""configs/schemas against the files of torq-gen-config and against files that are wrong."""
import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
CHECK = pathlib.Path(os.environ["LAYERFARM_TEST_BIN"]) / "schema_check"
SCHEMAS = TESTS.parent / "configs" / "schemas"


def kind_of(path):
    return next((kind for kind in ("compiler", "mac_debug") if path.stem.endswith("_" + kind)), "report")


def check(kind, *paths, closed=True):
    return subprocess.run([CHECK, *(["--closed"] if closed else []), SCHEMAS / f"{kind}.schema.json", *paths], capture_output=True, text=True, check=False)


class Schemas(unittest.TestCase):
    def test_they_take_every_file_of_torq_gen_config(self):
        for kind in ("report", "compiler", "mac_debug"):
            paths = [path for path in (TESTS / "golden").rglob("*.json") if kind_of(path) == kind]
            self.assertGreaterEqual(len(paths), 4)
            done = check(kind, *paths, closed=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            # The specification's example has keys of others in it on purpose.
            done = check(kind, *[path for path in paths if path.name != "report.json"])
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_they_refuse_what_no_reader_could_use(self):
        golden = TESTS / "golden" / "report" / "mlp_plain" / "01"
        wrong = {
            "report": [("ops.Gemm_h0.executors.nss.status", "passed"), ("ops.Gemm_h0.recommended_executor", 1), ("ops.Gemm_h0.executors", []),
                       ("ops.Gemm_h0._orig_index", -1), ("ops.Gemm_h0.executors.nss.tolerance_used.fp_max_tol", "0.01"), ("version", "2"),
                       ("model_name", None), ("discovery_report.summary", {}), ("_chip", ""), ("has_critical_failures", "no"),
                       ("final_report_text", "report"), ("_settings", {"dims": {"n": 0}, "inputs": {}}), ("unheard_of", 1),
                       ("ops.Gemm_h0.unheard_of", 1), ("ops.Gemm_h0.executors.nss.unheard_of", 1)],
            "compiler": [("op_assignments.10:10.executor", None), ("op_assignments", []), ("op_assignments", {"Conv_a": {"executor": "nss"}}), ("unheard_of", 1)],
            "mac_debug": [("ops.Gemm_h0.mac_count", 1.5), ("ops.Gemm_h0.mac_breakdown", {}), ("model_name", 1), ("ops.Gemm_h0.mac_breakdown", [{"op_type": "Gemm"}])],
        }
        with tempfile.TemporaryDirectory() as folder:
            for kind, changes in wrong.items():
                file = next(path for path in golden.glob("*.json") if kind_of(path) == kind)
                good = json.loads(file.read_text())
                for place, value in changes:
                    with self.subTest(kind=kind, place=place, value=value):
                        document = copy.deepcopy(good)
                        at = document
                        *way, last = place.split(".")
                        for key in way:
                            at = at[key]
                        at[last] = value
                        path = pathlib.Path(folder) / "wrong.json"
                        path.write_text(json.dumps(document))
                        done = check(kind, path)
                        self.assertEqual(done.returncode, 1, done.stdout)
                        self.assertIn("wrong.json: ", done.stdout)
                        if last == "unheard_of":  # keys of others are for readers to keep
                            self.assertEqual(check(kind, path, closed=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
