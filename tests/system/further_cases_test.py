"""Command lines that the cases of torq-gen-config in tests/golden/report do not have, on stand-ins of its tools. What must come out was derived from its rules (which executor
takes what, how lines and MACs are counted) apart from this program, by a small discover in Python."""
import json
import pathlib
import shutil
import tempfile
import unittest

from farm import Farm
from torq_tools import GOLDEN, use_standins

STATUS = {"s": "success", "d": "difference", "e": "error"}

# layer | status on nss, css, host | recommended | _node_index | mlir_location | MACs; "-": none
MLP = """
Gemm_h0      | s s s | nss | 0 | 10:10 | 512
Relu_a0      | s s s | nss | 1 | 11:10 | 0
Gemm_h1      | s s s | nss | 2 | 12:10 | 256
Sigmoid_gate | e s s | css | 3 | 13:10 | 0
Mul_silu     | d s s | css | 4 | 14:11 | 0
MatMul_mm    | s s s | nss | 5 | 15:11 | 64
Add_y        | s d s | nss | 6 | 16:11 | 0
"""
BRANCH = """
Add_/enc/add:0 | s d s | nss | 0 | 7:10  | 0
Split_s a      | e s s | css | 1 | 8:12  | 0
Clip_clip out  | s s s | nss | 2 | 9:10  | 0
TopK_top v     | e s s | css | 3 | 10:12 | 0
Mul_m:0        | d s s | css | 4 | 11:10 | 0
Sigmoid_nobody | e s s | css | 5 | 12:10 | 0
Relu_r         | s s s | nss | 6 | 13:10 | 0
Concat_z       | e s s | css | 7 | 14:11 | 0
Identity_idx   | e s s | css | 8 | 15:11 | 0
"""
CONSTS = """
Conv_c       | s s s | nss | 0 | 5:10  | 3456
Shape_sh     | e s s | css | 1 | 6:10  | 0
Gather_n0    | e s s | css | 2 | 8:10  | 0
Unsqueeze_n1 | e s s | css | 3 | 10:10 | 0
Concat_tgt   | e s s | css | 4 | 12:10 | 0
Reshape_f    | s s s | nss | 5 | 13:10 | 0
Mul_y        | d s s | css | 6 | 15:11 | 0
"""
# The bodies of If are judged with it, and so the Add in one of them makes the whole a difference on css. Their lines are nobody's.
IFM = """
Relu_a       | s s s | nss  | 0 | 6:10  | 0
ReduceSum_s  | e s s | css  | 1 | 7:10  | 0
Greater_cond | e s s | css  | 2 | 8:10  | 0
If_o         | e d s | host | 3 | 9:10  | 0
Add_y        | s d s | nss  | 4 | 18:10 | 0
"""
# Relu and Clip are fused into what is before them.
QNET = """
Conv_c0        | s s s | nss  | 0  | 50:11 | 9216
Relu_r0        | s s s | nss  | -  | Relu  | 0
Conv_c1        | s s s | nss  | 1  | 53:11 | 9216
LeakyRelu_l1   | e s s | css  | 2  | 56:11 | 0
Add_ad         | s d s | nss  | 3  | 59:11 | 0
Sigmoid_sg     | e s s | css  | 4  | 62:11 | 0
Mul_sw         | d s s | css  | 5  | 65:11 | 0
AveragePool_ap | e s s | css  | 6  | 68:11 | 0
Flatten_fl     | s s s | nss  | 7  | 71:11 | 0
MatMul_mm      | s s s | nss  | 8  | 74:11 | 512
Clip_cl        | s s s | nss  | -  | Clip  | 0
Gemm_gm        | s s s | nss  | 9  | 77:11 | 40
Softmax_y      | e e s | host | 10 | 80:11 | 0
"""


def rows_of(table):
    return [[cell.strip() for cell in line.split(" | ")] for line in table.strip().split("\n")]


def first_success(row):
    """Of a row, what skip mode leaves: the executors down to the first that works."""
    statuses = row[1].split()
    tested = statuses[: statuses.index("s") + 1] if "s" in statuses else statuses
    return [row[0], " ".join(tested + ["-"] * (3 - len(tested))), *row[2:]]


def without(row, *executors):
    """Of a row, what is left when these are left out."""
    statuses = ["-" if name in executors else status for name, status in zip(("nss", "css", "host"), row[1].split())]
    working = [name for wanted in "sd" for name, status in zip(("nss", "css", "host"), statuses) if status == wanted]
    return [row[0], " ".join(statuses), working[0] if working else "-", *row[3:]]


def change(rows, **cells):
    """With another recommendation for some layers."""
    return [[row[0], row[1], cells.get(row[0], row[2]), *row[3:]] for row in rows]


class FurtherCases(Farm):
    """One store for all: what a layer gives is asked of the tools once."""

    @classmethod
    def setUpClass(cls):
        cls.store = pathlib.Path(tempfile.mkdtemp(prefix="layerfarm-test-store-"))
        cls.addClassCleanup(shutil.rmtree, cls.store, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.cache = self.store
        self.env["LAYERFARM_CACHE_DIR"] = str(self.cache)
        use_standins(self)

    def step(self, code, command, model, *words, rows=None, part=""):
        """Runs a command on a model and looks at what its files say then."""
        done = self.run_farm(command, "--model", GOLDEN / "models" / f"{model}.onnx", "--output-dir", self.out.name, *words)
        self.assertEqual(done.returncode, code, f"{command} {words}: {done.stderr}")
        if rows is not None:
            self.look(model + part, rows_of(rows) if isinstance(rows, str) else rows)
        return done

    def look(self, name, rows):
        report = self.report(name)
        found = []
        for layer, entry in report["ops"].items():
            statuses = {executor: result["status"] for executor, result in entry["executors"].items()}
            letters = [next((letter for letter, word in STATUS.items() if word == statuses.get(executor)), "-") for executor in ("nss", "css", "host")]
            found.append([layer, " ".join(letters), entry["recommended_executor"] or "-", str(entry.get("_node_index", "-")), entry["mlir_location"],
                          str(entry["mac_count"])])
        self.assertEqual(found, rows)
        compiler = json.loads((self.out / f"torq_gen_config_{name}_compiler.json").read_text())["op_assignments"]
        self.assertEqual({place: entry["executor"] for place, entry in compiler.items()}, {row[4]: row[2] for row in rows if ":" in row[4] and row[2] != "-"})
        sidecar = json.loads((self.out / f"torq_gen_config_{name}_mac_debug.json").read_text())["ops"]
        self.assertEqual({layer: str(entry["mac_count"]) for layer, entry in sidecar.items()}, {row[0]: row[5] for row in rows})
        counts = report["discovery_report"]["summary"]["status_counts"]
        self.assertEqual([counts[word] for word in STATUS.values()], [sum(row[1].count(letter) for row in rows) for letter in STATUS])

    def passed(self, model, *words):
        """Of a run: it passes, and the report says so in its text."""
        done = self.step(0, "run", model, *words)
        self.assertIn(f"Full model {model}: comparison passed", done.stderr)
        return done

    def test_names_and_nodes_that_are_seldom(self):
        done = self.step(1, "discover", "branch", rows=BRANCH)
        self.assertIn("\nDetailed report saved to: out/torq_gen_config_branch.json\n", done.stderr)
        self.assertIn("\nOutput file: out/torq_gen_config_branch.json\n", done.stderr)
        done = self.passed("branch")
        self.assertIn("\nOutput file: out/torq_gen_config_branch.json\n", done.stderr)
        self.look("branch", rows_of(BRANCH))

    def test_constants_between_the_nodes_and_a_part_of_them(self):
        self.step(1, "discover", "consts", rows=CONSTS)
        self.passed("consts")
        part = ("--subgraph-from=Conv_c", "--subgraph-to=f")
        self.step(1, "discover", "consts", *part, rows=rows_of(CONSTS)[:-1], part="_subgraph_0_5")
        self.passed("consts", *part)
        self.step(1, "run", "consts", "--subgraph-from=Conv_c", "--subgraph-to=y")  # of which there is no report

    def test_bodies(self):
        self.step(1, "discover", "ifm", rows=IFM)
        self.passed("ifm")

    def test_quantized_operators_and_a_shared_bias(self):
        rows = [first_success(row) for row in rows_of(QNET)]
        self.step(1, "discover", "qnet", "--quantize", "--skip-mode", rows=rows)
        self.passed("qnet", "--quantize")
        self.look("qnet", rows)

    def test_what_is_left_out_leaves_the_files_and_comes_back(self):
        mlp = rows_of(MLP)
        self.step(1, "discover", "mlp", "--skip-mode", rows=[first_success(row) for row in mlp])
        files = self.files()
        self.step(0, "discover", "mlp", "--skip-mode")  # what works is not tested again, and no layer is without one that does
        self.assertEqual(self.files(), files)
        self.step(1, "discover", "mlp", rows=mlp)
        self.step(1, "discover", "mlp", "--skip-executors=css,HOST", rows=[without(row, "css", "host") for row in mlp])
        self.step(1, "discover", "mlp", "--skip-executors", "nss,bogus", rows=[without(row, "nss") for row in mlp])
        self.step(0, "discover", "mlp", "--skip-executors", "nss,css,host", rows=[without(row, "nss", "css", "host") for row in mlp])
        self.step(1, "discover", "mlp", "--recompute-cache", "--skip-mode", rows=[first_success(row) for row in mlp])

    def test_operators_that_are_left_out_have_an_entry(self):
        left = [without(row, "nss", "css", "host") if row[0].split("_")[0] in ("Gemm", "Mul") else row for row in rows_of(MLP)]
        done = self.step(1, "discover", "mlp", "--skip-ops", "gemm,Mul", rows=left)
        self.assertIn("Total layers tested: 4\n", done.stderr)
        done = self.passed("mlp")
        self.assertIn("3 layers have no executor; the compiler chooses", done.stderr)

    def test_bfloat16_gives_the_verdicts_of_float(self):
        saved = self.folder / "there" / "mlp.onnx"
        self.step(1, "discover", "mlp", "--auto-convert-bf16", "--save-bf16-model", saved, rows=MLP)
        self.assertTrue(saved.exists())
        self.passed("mlp", "--auto-convert-bf16")

    def test_a_person_chooses_and_the_run_shows_what_comes_of_it(self):
        mlp = rows_of(MLP)
        self.step(1, "discover", "mlp", rows=mlp)
        edit = ("edit", self.report_path("mlp"), "--layer")
        self.run_farm(*edit, "matmul", "--executor", "CSS", code=0)
        self.look("mlp", change(mlp, MatMul_mm="css"))
        self.passed("mlp")
        self.run_farm(*edit, "Mul_silu", "--executor", "nss", code=0)
        done = self.step(1, "run", "mlp")
        self.assertIn("Full model comparison failed: ", done.stderr)
        self.assertIn("--- Full Model Comparison ---", self.report("mlp")["final_report_text"])
        self.run_farm(*edit, "Sigmoid*", "--executor", "nss", code=0)
        done = self.step(1, "run", "mlp")
        self.assertIn("Full model setup failed: ", done.stderr)
        self.assertNotIn("--- Full Model Comparison ---", self.report("mlp")["final_report_text"])
        self.run_farm(*edit, "ALL", "--executor", "null", code=0)
        self.look("mlp", [[*row[:2], "-", *row[3:]] for row in mlp])
        self.passed("mlp")

    def test_a_compiler_file_alone_is_run_by_its_name_or_by_what_it_says(self):
        self.step(1, "run", "mlp")
        self.assertFalse(self.out.exists())
        self.step(1, "discover", "mlp", "--skip-mode")
        self.report_path("mlp").unlink()
        self.passed("mlp")
        self.assertFalse(self.report_path("mlp").exists())
        compiler = self.out / "torq_gen_config_mlp_compiler.json"
        other = compiler.rename(self.out / "torq_gen_config_other_compiler.json")
        self.passed("mlp")
        other.write_text(other.read_text().replace('"mlp"', '"another"'))
        self.step(1, "run", "mlp")


if __name__ == "__main__":
    unittest.main()
