#!/usr/bin/env python3
"""docs/compatibility.md names tests for each row, or says that the part is open; the tests that it names exist."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
NAMED = re.compile(r"`(\w+_test\.(?:cpp|py)): ([^`]+)`")


def sentences():
    """File name -> text of the tests in it, strings that go over several lines joined."""
    out = {}
    for path in (ROOT / "tests").rglob("*_test.*"):
        if path.suffix in (".cpp", ".py"):
            out[path.name] = out.get(path.name, "") + re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
    return out


def main():
    tests = sentences()
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and not re.match(r"\| (option|command|there|check) \|", line)]
    problems = []
    for row in rows:
        last = row.rstrip("| ").rsplit("|", 1)[-1].strip()
        if last == "open":
            continue
        if not re.fullmatch(f"{NAMED.pattern}(, {NAMED.pattern})*", last):
            problems.append(f"no test, and not open: {row[:100]}")
        for file, name in NAMED.findall(last):
            if not re.search(re.escape(name) + r'["(]', tests.get(file, "")):
                problems.append(f"{file} has no test '{name}'")
    if len(rows) < 60:
        problems.append(f"only {len(rows)} rows are found: the page is not understood")
    print("\n".join(problems) or f"{len(rows)} rows")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
