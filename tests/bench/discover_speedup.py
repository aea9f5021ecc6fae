"""Discover on gen_repeat_cnn, cold, two workers, beside one native tool process per step, layer by layer, in sequence.

The sequence does what a script around the plain tools does: import each layer, compile it for both back ends, run it. Prints one JSON line per figure.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import onnx
from onnx import helper, shape_inference

BIN = pathlib.Path(os.environ["LAYERFARM_BIN"])
MODEL = pathlib.Path(__file__).resolve().parent.parent / "data" / "models" / "gen_repeat_cnn.onnx"
ROUNDS = 3


def layers(model):
    """One model per node, weights inside, batch 1."""
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_value = 1
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    types = {v.name: v for v in [*inferred.graph.input, *inferred.graph.output, *inferred.graph.value_info]}
    constants = {c.name: c for c in inferred.graph.initializer}
    for node in inferred.graph.node:
        inputs = [types[name] for name in dict.fromkeys(node.input) if name not in constants]
        held = [constants[name] for name in node.input if name in constants]
        graph = helper.make_graph([node], "layer", inputs, [types[name] for name in node.output], held)
        yield helper.make_model(graph, opset_imports=inferred.opset_import, ir_version=inferred.ir_version)


def tools():
    import iree.compiler
    import iree.runtime

    compiler = pathlib.Path(iree.compiler.__file__).parent / "_mlir_libs" / "iree-compile"
    root = pathlib.Path(list(iree.__path__)[0])
    return compiler, root / "_runtime_libs" / "iree-run-module"


def sequence(folder):
    compiler, runner = tools()
    begun = time.monotonic()
    for place, layer in enumerate(layers(onnx.load(MODEL))):
        path = folder / f"{place}.onnx"
        onnx.save(layer, path)
        module = folder / f"{place}.mlir"
        subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", path, "-o", module, "--data-prop"], check=True)
        arguments = []
        for value in layer.graph.input:
            dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            arguments.append("--input=" + "x".join(map(str, dims)) + "xf32=1")
        for backend in ("llvm-cpu", "vmvx"):
            binary = folder / f"{place}.{backend}.vmfb"
            subprocess.run([compiler, module, "-o", binary, "--iree-hal-target-device=local", f"--iree-hal-local-target-device-backends={backend}",
                            "--iree-llvmcpu-target-cpu=host"], check=True, capture_output=True)
            subprocess.run([runner, f"--module={binary}", "--device=local-task", "--function=layer", *arguments], check=True, capture_output=True)
    return time.monotonic() - begun


def discover(folder, chip):
    env = dict(os.environ, LAYERFARM_CACHE_DIR=str(folder / "cache"))
    begun = time.monotonic()
    subprocess.run([BIN / "layerfarm", "discover", "--model", MODEL, "--chip", chip, "--workers", "2", "--output-dir", folder / "out", "-q"],
                   env=env, check=True)
    return time.monotonic() - begun


def main():
    cold, warm = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(discover(pathlib.Path(folder), "host-cpu"))
            warm.append(discover(pathlib.Path(folder), "host-cpu"))
    with tempfile.TemporaryDirectory() as folder:
        plain = sequence(pathlib.Path(folder))
    value = statistics.median(cold)
    print(json.dumps({"name": "discover_host_cpu_cold", "value": round(value, 2), "unit": "s", "peer": "one native process per step, in sequence",
                      "peer_value": round(plain, 2), "ratio": round(plain / value, 2)}))
    print(json.dumps({"name": "discover_host_cpu_warm", "value": round(statistics.median(warm), 3), "unit": "s", "peer": "limit", "peer_value": 0.5,
                      "ratio": round(0.5 / statistics.median(warm), 2)}))


if __name__ == "__main__":
    main()
