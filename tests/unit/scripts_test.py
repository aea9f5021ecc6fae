#!/usr/bin/env python3
"""The shell scripts pass shellcheck, and tracked files hold no path or host name of one machine or registry."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Put together so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me"]) + r")/[a-z]")
REGISTRY = re.compile(r"https?://[a-z0-9.-]*(" + "|".join(["py" + "pi", "pythonho" + "sted", "deb" + "ian"]) + ")", re.I)


def tracked():
    """Tracked and new files; all files where this is no git checkout."""
    listing = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listing.returncode == 0:
        return [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in ROOT.rglob("*") if "build" not in path.relative_to(ROOT).parts[:1]]


def main():
    problems, scripts = [], []
    for path in tracked():
        if not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if text.startswith("#!/usr/bin/env bash") or path.suffix == ".sh":
            scripts.append(path)
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: a path of one machine")
            if REGISTRY.search(line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: names a registry's host")
    if not scripts:
        problems.append("no script was found")
    check = subprocess.run(["shellcheck", "-x", *scripts], cwd=ROOT / "scripts", capture_output=True, text=True, check=False)
    if check.returncode:
        problems.append(check.stdout + check.stderr)
    print("\n".join(problems) or f"{len(scripts)} scripts are clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
