#!/usr/bin/env python3
"""Checks that the folders of the product know only what design allows them to know (docs/architecture.md).

A wrong include between two of our libraries is usually a link error; but header-only code, third-party headers and a
path to tests/ would slip through, and the linker's message names no rule. This one does.
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

SHARED = {"shared/base", "shared/domain", "shared/protocol"}
COORDINATOR_CORE = SHARED | {"coordinator/core", "coordinator/plan"}

# folder -> other folders whose headers it may include
ALLOWED = {
    "shared/base": set(),
    "shared/domain": {"shared/base"},
    "shared/protocol": {"shared/base", "shared/domain"},
    "shared/transport": SHARED,
    "coordinator/core": SHARED,
    "coordinator/plan": SHARED,
    "coordinator/store": COORDINATOR_CORE,
    "coordinator/report": COORDINATOR_CORE,
    "coordinator/app": COORDINATOR_CORE | {"coordinator/store", "coordinator/report", "shared/transport"},
    "worker/core": SHARED,
    "worker/process": SHARED | {"worker/core"},
    "worker/cache": SHARED | {"worker/core"},
    "worker/toolchain": SHARED | {"worker/core", "worker/process", "worker/cache"},
    "worker/onnx": SHARED,
    "worker/ort": SHARED,
    "worker/app": SHARED | {"shared/transport", "worker/core", "worker/process", "worker/cache", "worker/toolchain"},
}

# headers of a library that only one folder may see
OWNED = [
    (re.compile(r"zmq(_addon)?\.(hpp|h)$"), "shared/transport"),
    (re.compile(r"(sqlite3\.h|SQLiteCpp/.*)$"), "coordinator/store"),
    (re.compile(r"onnx/.*$"), "worker/onnx"),
    (re.compile(r"onnxruntime.*\.h$"), "worker/ort"),
    (re.compile(r"msgpack.*$"), "shared/protocol"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
# A comment may name a test; what is run may not.
COMMENT = {
    ".cpp": re.compile(r"//.*"), ".h": re.compile(r"//.*"),
    ".py": re.compile(r"#.*"), ".txt": re.compile(r"#.*"), ".cmake": re.compile(r"#.*"),
}


def folder_of(path):
    """The folder of the table that a path relative to the root lies in, or None."""
    first_two = "/".join(path.parts[:2])
    return first_two if first_two in ALLOWED else None


def check(root):
    """All broken rules below root, one line each, and the number of files read."""
    found, read = [], 0
    for top in ("shared", "coordinator", "worker", "configs"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in COMMENT or not file.is_file():
                continue
            read += 1
            path = file.relative_to(root)
            home = folder_of(path)
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                place = f"{path}:{number}"
                if re.search(r"(?<![\w.-])tests/", COMMENT[file.suffix].sub("", line)):
                    found.append(f"{place}: the product mentions tests/")
                include = INCLUDE.match(line)
                if not include or home is None:
                    continue
                header = include.group(1)
                target = folder_of(pathlib.PurePosixPath(header))
                if target and target != home and target not in ALLOWED[home]:
                    found.append(f"{place}: {home} may not include {target} ({header})")
                for pattern, owner in OWNED:
                    if pattern.match(header) and home != owner:
                        found.append(f"{place}: only {owner} may include {header}")
    return found, read


def check_the_check():
    """A rule that finds nothing may be right or blind: this one is shown every kind of fault."""
    faults = {
        "coordinator/core/a.cpp": '#include "worker/core/b.h"',
        "worker/core/a.cpp": '#include "coordinator/core/b.h"',
        "shared/base/a.h": '#include "shared/domain/b.h"',
        "coordinator/plan/a.cpp": '#include "coordinator/core/b.h"',
        "worker/app/a.cpp": "#include <zmq.hpp>",
        "coordinator/report/a.cpp": "#include <SQLiteCpp/SQLiteCpp.h>",
        "worker/ort/a.cpp": "#include <onnx/onnx_pb.h>",
        "worker/onnx/a.cpp": "  #  include <onnxruntime_cxx_api.h>",
        "coordinator/app/a.cpp": 'run("tests/support/x");',
    }
    fine = {
        "coordinator/app/b.cpp": '#include "coordinator/core/b.h"',
        "worker/onnx/b.cpp": "#include <onnx/onnx_pb.h>",
        "shared/transport/b.cpp": "#include <zmq.hpp>",
        "worker/core/b.h": "// The simulator in tests/sim drives this.",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, line in {**faults, **fine}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(line + "\n", encoding="utf-8")
        found, _ = check(root)
    seen = {line.split(":")[0] for line in found}
    return [f"the check does not see the fault in {name}" for name in faults if name not in seen] + [
        f"the check wrongly complains about {name}" for name in fine if name in seen
    ]


def main():
    found, read = check(ROOT)
    found += check_the_check()
    if not read:
        found.append("no source file was found")
    print("\n".join(found) or f"{read} files keep to the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
