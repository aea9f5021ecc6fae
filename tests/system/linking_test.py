#!/usr/bin/env python3
"""The coordinator's program and the libraries that decide things have nothing of ONNX in them.

A model is read by a helper process alone, so a hostile file can hurt only that; and `view`, `edit` and `--help` start
within milliseconds because they load neither ONNX nor its protobuf.
"""

import os
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(os.environ["LAYERFARM_BIN"])
FREE_OF_ONNX = (
    "shared/base", "shared/domain", "shared/protocol", "shared/transport", "coordinator/core", "coordinator/plan",
    "coordinator/store", "coordinator/report", "coordinator/app")
# Mangled names that begin in namespace onnx or google::protobuf, defined or wanted; our own worker::onnx begins in layerfarm.
SYMBOL = re.compile(r"\b_ZT?[VIS]?NK?(4onnx|6google8protobuf)\S*")
LIBRARY = re.compile(r"lib(onnx|onnxruntime|protobuf)\S*")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout


def main():
    problems = []
    for folder in FREE_OF_ONNX:
        (archive,) = (BIN.parent / folder).glob("lib*.a")
        for symbol in sorted({match.group(0) for match in SYMBOL.finditer(output("nm", archive))})[:3]:
            problems.append(f"{archive.name} holds or wants {symbol}")
    program = BIN / "layerfarm"
    for library in sorted({match.group(0) for match in LIBRARY.finditer(output("ldd", program))}):
        problems.append(f"{program.name} loads {library}")
    # The checks can see what they look for: the helper has it all.
    if not SYMBOL.search(output("nm", BIN / "layerfarm-onnx")):
        problems.append("no ONNX symbol is found in layerfarm-onnx, so this test is blind")
    print("\n".join(problems) or "no ONNX outside the helpers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
