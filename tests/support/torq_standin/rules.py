"""What the stand-ins for the torq tools accept, refuse and bend: success, difference, compile error and run error all occur.

The real tools cannot be had here. The tables are those under which torq-gen-config made the reports in tests/golden/report, so that ours
can be compared with its own. Nothing outside tests/ uses this.
"""
import json
import os
import re
import sys

NSS_TAKES = frozenset(
    "Conv Gemm MatMul Relu MaxPool Add Mul Reshape Flatten Transpose Clip QuantizeLinear DequantizeLinear "
    "QLinearConv QLinearMatMul MatMulInteger Cast".split()
)
REFUSED = {"css": {"MaxPool", "Erf", "LSTM"}, "host": {"Erf"}}
BENT = {"nss": {"Mul": 1.10}, "css": {"Add": 1.05, "GlobalAveragePool": 1.05, "Relu": 1.001}}
FAILS_AT_RUN = {"css": {"Softmax"}}

EXECUTOR_OF_FLAGS = {
    frozenset({"--torq-disable-css", "--torq-disable-host"}): "nss",
    frozenset({"--torq-disable-slices", "--torq-disable-host"}): "css",
    frozenset({"--torq-disable-slices", "--torq-disable-css"}): "host",
}
OPERATOR = re.compile(r'torch\.operator\s+"onnx\.([A-Za-z]+)"')


class Verdict:
    """What becomes of a module: what is refused, by how much outputs are bent, whether running it fails."""

    def __init__(self):
        self.refusals = []
        self.scale = 1.0
        self.fails = False

    def add(self, op, executor, place):
        if executor is None:
            return
        if op in REFUSED.get(executor, ()) or (executor == "nss" and op not in NSS_TAKES):
            self.refusals.append(f"{place}: error: 'onnx.{op}' op cannot be lowered to the {executor.upper()} executor")
            return
        self.scale *= BENT.get(executor, {}).get(op, 1.0)
        self.fails = self.fails or op in FAILS_AT_RUN.get(executor, ())


def assignments(path):
    """`line:col` -> executor of a map, as the real compiler reads it: `x_compiler.json` beside `x.json` wins; both formats."""
    stem, extension = os.path.splitext(path)
    beside = stem + "_compiler" + extension
    with open(beside if os.path.exists(beside) else path) as file:
        document = json.load(file)
    if not isinstance(document, dict) or not ({"op_assignments", "ops"} & document.keys()):
        raise ValueError("the executor map has neither op_assignments nor ops")
    out = {}
    for entry in document.get("ops", {}).values():
        if isinstance(entry.get("mlir_location"), str) and entry.get("recommended_executor"):
            out[entry["mlir_location"]] = entry["recommended_executor"]
    for place, entry in document.get("op_assignments", {}).items():
        out[place] = entry.get("executor")
    return out


def judge(text, flags, by_place):
    only = EXECUTOR_OF_FLAGS.get(frozenset(flag for flag in flags if flag.startswith("--torq-disable-")))
    verdict = Verdict()
    for number, line in enumerate(text.split("\n"), 1):
        found = OPERATOR.search(line)
        if found and found.group(1) != "Constant":
            place = f"{number}:{line.find('torch.operator') + 1}"
            verdict.add(found.group(1), only or by_place.get(place), place)
    return verdict


def result_types(text):
    """Element types that the last function returns."""
    types = []
    for line in text.split("\n"):
        if re.match(r"\s*(func\.)?return\b", line):
            types = re.findall(r"vtensor<\[[^\]]*\],(\w+)>", line)
    return types


def log_call():
    """Appends the command line to $STANDIN_LOG, when that is set: tests look at what was sent."""
    path = os.environ.get("STANDIN_LOG")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\n")


def split_flags(arguments, known, with_value):
    """(plain words, flag -> values); a flag that is in neither list ends the program, as the real tools do."""
    words, flags = [], {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not argument.startswith("--"):
            words.append(argument)
        elif (equals and name in with_value) or (not equals and name in known):
            flags.setdefault(name, []).append(value)
        else:
            die(f"{os.path.basename(sys.argv[0])}: Unknown command line argument '{argument}'.")
    return words, flags


def die(text, code=1):
    print(text, file=sys.stderr)
    sys.exit(code)
