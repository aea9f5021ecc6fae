#!/usr/bin/env python3
"""Runs discover on ort-cpu for each of ONNX's node models with the inputs that its own test holds, and compares what the product prepared with what the test expects.

usage: node_models_given.py NODE_FOLDER WORK_FOLDER [NAME...]

NODE_FOLDER holds <name>/model.onnx and <name>/test_data_set_0/{input,output}_*.pb (scripts/setup --tests: onnx-testdata-*/node). The inputs go through
`--inputs`, so through the product's reading of them; what is looked at afterwards are the prepare jobs in the store and their blobs: the inputs byte for byte, the
outputs within 1e-3 of the value plus 1e-5. Only a model of one layer says something of its outputs: inside a larger one, layers get drawn inputs.
Prints one line per model: name, state, reason. States (docs/node-models.md): equal; as-onnxruntime = not what the test expects, but bit for bit what plain ONNX Runtime gives or
refuses; several-layers; exception. What WORK_FOLDER has a report of is not run again. Needs onnx, numpy, onnxruntime; $LAYERFARM_BIN names the programs.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

PREPARE, DONE = 2, 1  # domain/outcome.h
FORMATS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
LENGTHS = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}


def unpacked(data, at=0):
    """One msgpack value, and where the next begins."""
    head, at = data[at], at + 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 0x100, at
    if head in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[head], at
    if head in FORMATS:
        return struct.unpack_from(FORMATS[head], data, at)[0], at + struct.calcsize(FORMATS[head])
    if head in LENGTHS:
        length, at = struct.unpack_from(LENGTHS[head], data, at)[0], at + struct.calcsize(LENGTHS[head])
    else:
        length = head & (0x1F if 0xA0 <= head < 0xC0 else 0x0F)
    if head in (0xC4, 0xC5, 0xC6):
        return data[at:at + length], at + length
    if 0xA0 <= head < 0xC0 or head in (0xD9, 0xDA, 0xDB):
        return data[at:at + length].decode(), at + length
    if 0x90 <= head < 0xA0 or head in (0xDC, 0xDD):
        items = []
        for _ in range(length):
            item, at = unpacked(data, at)
            items.append(item)
        return items, at
    pairs = {}
    for _ in range(length):
        key, at = unpacked(data, at)
        pairs[key], at = unpacked(data, at)
    return pairs, at


def tensors(folder, kind):
    """Arrays of a test, None for what is no tensor."""
    found = []
    for place in range(len(list(folder.glob(f"{kind}_*.pb")))):
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString((folder / f"{kind}_{place}.pb").read_bytes())
            found.append((tensor.data_type, numpy_helper.to_array(tensor)))
        except Exception:
            found.append(None)
    return found


def first_line(text):
    return text.strip().splitlines()[0] if text.strip() else ""


class Check:
    def __init__(self, nodes, work):
        self.nodes = nodes
        self.work = work

    def discover(self, name):
        """Exit code and what was printed."""
        out = self.work / "out" / name
        out.mkdir(parents=True, exist_ok=True)
        if (out / "torq_gen_config_model.json").is_file():
            return 0, ""
        folder = self.nodes / name
        command = [pathlib.Path(os.environ["LAYERFARM_BIN"]) / "layerfarm", "discover", "--model", folder / "model.onnx", "--chip", "ort-cpu", "--workers", "1",
                   "--inputs", folder / "test_data_set_0", "--output-dir", out]
        env = dict(os.environ, LAYERFARM_CACHE_DIR=str(self.work / "cache"))
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        return done.returncode, done.stdout + done.stderr

    def prepared(self):
        """Digests of the inputs -> what was prepared from them, over the whole store."""
        found = {}
        with sqlite3.connect(f"file:{self.work / 'cache' / 'store.sqlite'}?mode=ro", uri=True) as store:
            for run, body in store.execute("SELECT run, body FROM outcome WHERE stage = ? AND ending = ? ORDER BY sequence", (PREPARE, DONE)):
                found.setdefault(run, []).append(unpacked(body)[0]["prepared"])
            runs = {pathlib.Path(path).parent.name: run for run, path in store.execute("SELECT run, model_path FROM run_file ORDER BY id")}
        return {name: found.get(run, []) for name, run in runs.items()}, [one for several in found.values() for one in several]

    def blob(self, digest):
        return (self.work / "cache" / "blobs" / digest.hex()[:2] / digest.hex()[2:]).read_bytes()

    def state(self, name, code, printed, own, everything):
        path = self.work / "out" / name / "torq_gen_config_model.json"
        if not path.is_file():
            said = (printed.strip().splitlines() or [f"exit code {code}"])[-1]
            return "exception", "no report: " + said.rpartition("model.onnx: ")[2]
        report = json.loads(path.read_text())
        if len(report["ops"]) != 1:
            return ("several-layers", "") if report["ops"] else ("exception", "no layer")
        folder = self.nodes / name / "test_data_set_0"
        given = tensors(folder, "input")
        for executor, result in next(iter(report["ops"].values()))["executors"].items():
            if result["status"] == "error":
                failure = result["failure_report"]
                text = first_line(failure.get("_text") or failure["summary"].removeprefix("Fixture/setup failed: "))
                return self.refused(name, given, failure.get("_where", "")), f"{failure.get('_where', '')}: {text}"
            if result["status"] == "difference":
                return "exception", f"{executor} differs from the reference: {result.get('_reason', '')}"
        if None in given:
            return "exception", "an input is no tensor"
        graph = onnx.load(self.nodes / name / "model.onnx", load_external_data=False).graph
        used = {value for node in graph.node for value in node.input}
        digests = {hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=32).digest()
                   for value, (_, array) in zip(graph.input, given) if value.name in used and array.size}
        # An equal job of an earlier model answers for this one.
        fitting = [one for one in own or everything if digests <= set(one.get("inputs", []))]
        if not fitting:
            return "exception", "the inputs that were prepared are not those that were given"
        problems = [(self.compared(one, tensors(folder, "output")), one) for one in fitting]
        if "" in (problem for problem, _ in problems):
            return "equal", ""
        problem, prepared = problems[0]
        try:
            plain = self.plain(name, given)
        except Exception as error:
            return "exception", f"{problem}; plain ONNX Runtime: {first_line(str(error))}"
        same = all(np.ascontiguousarray(array).tobytes() == self.blob(digest) for array, digest in zip(plain, prepared["expected"]))
        return "as-onnxruntime" if same else "exception", problem

    def plain(self, name, given):
        """The outputs of the whole model by ONNX Runtime alone."""
        session = onnxruntime.InferenceSession(str(self.nodes / name / "model.onnx"), providers=["CPUExecutionProvider"])
        return session.run(None, {value.name: array for value, (_, array) in zip(session.get_inputs(), given)})

    def refused(self, name, given, where):
        """The state of a model that could not be run: whether plain ONNX Runtime cannot either."""
        if where == "import" or None in given:
            return "exception"
        try:
            self.plain(name, given)
        except Exception:
            return "as-onnxruntime"
        return "exception"

    def compared(self, prepared, wanted):
        """Empty, or what is different."""
        if len(prepared["expected"]) != len(wanted):
            return f"{len(prepared['expected'])} outputs, expected {len(wanted)}"
        for place, (digest, kind, expected) in enumerate(zip(prepared["expected"], prepared["types"], wanted)):
            if expected is None:
                return "an output is no tensor"
            dtype, array = expected
            if kind["t"] != dtype:
                return f"output {place} is of type {kind['t']}, expected {dtype}"
            if list(kind.get("d", [])) != list(array.shape):
                return f"output {place} has shape {kind.get('d', [])}, expected {list(array.shape)}"
            actual = np.frombuffer(self.blob(digest), dtype=helper.tensor_dtype_to_np_dtype(dtype)).reshape(array.shape)
            if array.dtype.kind in "biu":
                wrong = int(np.sum(actual != array))
                worst = 0 if wrong == 0 else np.max(np.abs(actual.astype(np.float64) - array.astype(np.float64)))
            else:
                a, b = actual.astype(np.float64), array.astype(np.float64)
                wrong = int(np.sum(~np.isclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)))
                worst = np.nanmax(np.abs(a - b)) if wrong else 0
            if wrong:
                return f"output {place}: {wrong} of {array.size} elements differ, by {worst:.3g} at most"
        return ""


def main():
    onnxruntime.set_default_logger_severity(4)
    check = Check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
    names = sys.argv[3:] or sorted(folder.name for folder in check.nodes.iterdir() if (folder / "model.onnx").is_file())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = dict(zip(names, pool.map(check.discover, names)))
    own, everything = check.prepared()
    print("model\tstate\treason")
    for name in names:
        print(f"{name}\t" + "\t".join(check.state(name, *ends[name], own.get(name, []), everything)).replace("\n", " "))


if __name__ == "__main__":
    main()
