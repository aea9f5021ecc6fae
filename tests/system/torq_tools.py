"""Stand-ins for the torq tools (tests/support/torq_standin), as system tests use them. Not a test."""
import os
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
STANDINS = TESTS / "support" / "torq_standin"
GOLDEN = TESTS / "golden"
sys.path.insert(0, str(TESTS.parent / "scripts" / "lib"))


def python_packages():
    """Of the toolchain iree, where its native programs are."""
    import toolchains

    _, parts = toolchains.read_lock(toolchains.lock_file().read_text(encoding="utf-8"))
    return toolchains.cache_folder() / next(part.folder for part in parts if part.name == "iree") / "site-packages"


def use_standins(farm):
    """The farm's commands find the stand-ins; the file that gets each of their command lines."""
    packages = python_packages()
    log = farm.folder / "calls.jsonl"
    farm.env |= {
        "TORQ_COMPILE": str(STANDINS / "torq-compile"),
        "TORQ_RUN_MODULE": str(STANDINS / "torq-run-module"),
        "STANDIN_IREE_COMPILE": str(packages / "iree" / "compiler" / "_mlir_libs" / "iree-compile"),
        "STANDIN_IREE_RUN_MODULE": str(packages / "iree" / "_runtime_libs" / "iree-run-module"),
        "STANDIN_LOG": str(log),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return log
