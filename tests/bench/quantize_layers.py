"""Reading a model with --quantize beside reading it without, on the chip null, cold: what quantizing costs for each layer that differs.

The difference of the two holds all of it: the whole model for the places, each kind of layer in the sidecar, the canonical modules, the second import. Prints one JSON
line per model.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["LAYERFARM_BIN"])
MODELS = pathlib.Path(__file__).resolve().parent.parent / "data" / "models"


def discover(model, chip, workers, *flags):
    """Seconds of a discover with an empty cache, and its report. Differences and errors of layers are results too."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, LAYERFARM_CACHE_DIR=os.path.join(folder, "cache"))
        command = [str(BIN / "layerfarm"), "discover", "--model", str(model), "--chip", chip, "--workers", str(workers), "--output-dir", folder, *flags]
        begun = time.monotonic()
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        took = time.monotonic() - begun
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return took, json.loads((pathlib.Path(folder) / f"torq_gen_config_{pathlib.Path(model).stem}.json").read_text())


def main():
    for model in sys.argv[1:] or [MODELS / "basic_pitch.onnx", MODELS / "gen_repeat_cnn.onnx"]:
        plain, _ = discover(model, "null", 1)
        took, report = discover(model, "null", 1, "--quantize", "--full-integer")
        counts = report["_quantization"]
        layers = counts["quantized"] + counts["float"]
        print(json.dumps({"bench": "quantize_layers", "model": pathlib.Path(model).stem, "layers": layers, "quantized": counts["quantized"],
                          "plain_s": round(plain, 2), "quantize_s": round(took, 2), "layers_per_s": round(layers / (took - plain), 1), "goal": 10}))


if __name__ == "__main__":
    main()
