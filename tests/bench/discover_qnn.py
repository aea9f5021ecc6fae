"""Discover on gen_repeat_cnn for SM8550, cold, two workers, beside our own layerfarm-ort started anew for each layer and step, in sequence.

The peer asks the helper in its own words (docs/helpers.md), one request per process: run the reference; compile a context binary for htp; run it; run on the host. It judges
nothing and shares nothing, as a script over the layers would. Prints one JSON line.
"""
import importlib.util
import json
import os
import pathlib
import signal
import socket
import statistics
import struct
import tempfile
import time

import numpy as np
import onnx

from discover_speedup import BIN, MODEL, discover, layers

CHIP = json.loads((pathlib.Path(__file__).resolve().parents[2] / "configs" / "chips" / "SM8550.json").read_text())
ROUNDS = 3


def fresh_helper(request):
    """The answer of a helper that lives for this one request."""
    ours, its = socket.socketpair()
    quiet = (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)
    pid = os.posix_spawn(BIN / "layerfarm-ort", ["layerfarm-ort"], os.environ, file_actions=[quiet, (os.POSIX_SPAWN_DUP2, its.fileno(), 3)],
                         setsigmask=[], setsigdef=[signal.SIGPIPE])
    its.close()
    body = json.dumps(request).encode()
    with ours, ours.makefile("rb") as answers:
        ours.sendall(struct.pack("<I", len(body)) + body)
        answer = json.loads(answers.read(struct.unpack("<I", answers.read(4))[0]))
        ours.shutdown(socket.SHUT_WR)
        os.waitpid(pid, 0)
    if not answer["ok"]:
        raise RuntimeError(answer["text"])
    return answer


def provider():
    options = CHIP["options"]
    folder = pathlib.Path(importlib.util.find_spec(options["package"]).submodule_search_locations[0])
    mark = "provider."
    return {"library": str(folder / options["library"]), "name": options["provider"], "device": "",
            "options": {key[len(mark):]: value for key, value in options.items() if key.startswith(mark)}}


def drawn(layer, folder):
    """Files with the layer's inputs."""
    random = np.random.default_rng(1234)
    found = []
    for place, value in enumerate(layer.graph.input):
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        path = folder / f"input_{place}.bin"
        random.uniform(-40, 40, dims).astype(np.float32).tofile(path)
        found.append({"file": str(path), "dtype": onnx.TensorProto.FLOAT, "dims": dims})
    return found


def sequence(folder):
    """Seconds, and processes that were started."""
    htp = {"threads": 1, "provider": provider(), "no_fallback": True}
    started = 0
    begun = time.monotonic()
    for place, layer in enumerate(layers(onnx.load(MODEL))):
        own = folder / str(place)
        own.mkdir()
        path = own / "layer.onnx"
        onnx.save(layer, path)
        run = {"op": "run", "threads": 1, "inputs": drawn(layer, own), "output_folder": str(own), "output_limit": 0}
        context = own / "context.onnx"
        fresh_helper({**run, "model": str(path)})
        compiled = fresh_helper({"op": "compile", **htp, "model": str(path), "output": str(context)})
        fresh_helper({**run, **htp, "model": str(context if compiled["files"] else path)})
        fresh_helper({**run, "model": str(path)})
        started += 4
    return time.monotonic() - begun, started


def main():
    cold = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(discover(pathlib.Path(folder), "SM8550"))
    with tempfile.TemporaryDirectory() as folder:
        plain, started = sequence(pathlib.Path(folder))
    value = statistics.median(cold)
    print(json.dumps({"name": "discover_sm8550_cold", "value": round(value, 2), "unit": "s",
                      "peer": f"layerfarm-ort started anew per layer and step, in sequence ({started} processes)", "peer_value": round(plain, 2),
                      "ratio": round(plain / value, 2)}))


if __name__ == "__main__":
    main()
