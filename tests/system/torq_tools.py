"""Stand-ins for the torq tools (tests/support/torq_standin), as system tests use them. Not a test."""
import os
import pathlib

TESTS = pathlib.Path(__file__).resolve().parent.parent
STANDINS = TESTS / "support" / "torq_standin"
GOLDEN = TESTS / "golden"


def python_packages():
    """Of the dependency cache (scripts/lib/deps.sh), where IREE's native programs are."""
    home = os.environ.get("LAYERFARM_DEPS_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache")
    folder = pathlib.Path(home or os.path.join(cache, "layerfarm-deps"))
    found = [path for path in folder.glob("python-*/site-packages") if (path / "iree" / "compiler").is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime)


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
