"""Discover with --quantize --full-integer beside discover without, on host-cpu, both with --dedup-layers, two workers and an empty cache.

The quantized one may take 1.5 times as long as the plain one, and what quantizing itself takes (measured as in quantize_layers: reading on the chip null with it less
reading without). Prints one JSON line per model; models of one's own can be named.
"""
import json
import pathlib
import sys

from quantize_layers import MODELS, discover


def main():
    for model in sys.argv[1:] or [MODELS / "basic_pitch.onnx"]:
        how = ("--dedup-layers",)
        quantized = (*how, "--quantize", "--full-integer")
        reading = discover(model, "null", 1, *how)[0]
        quantizing = discover(model, "null", 1, *quantized)[0] - reading
        plain, _ = discover(model, "host-cpu", 2, *how)
        took, report = discover(model, "host-cpu", 2, *quantized)
        counts = {}
        for entry in report["ops"].values():
            for result in entry["executors"].values():
                counts[result["status"]] = counts.get(result["status"], 0) + 1
        print(json.dumps({"bench": "quantized_discover", "model": pathlib.Path(model).stem, "layers": len(report["ops"]), "statuses": counts, "plain_s": round(plain, 1),
                          "quantizing_s": round(quantizing, 1), "quantized_s": round(took, 1), "ratio": round((took - quantizing) / plain, 2), "goal": 1.5}))


if __name__ == "__main__":
    main()
