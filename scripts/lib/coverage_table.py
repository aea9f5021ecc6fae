"""Prints what gcovr counted as a table of missed lines, and fails when a folder that must be covered is not."""

import collections
import json
import sys

# The folders that decide things: what they get wrong, no other part notices.
REQUIRED = ("coordinator/core", "coordinator/plan", "coordinator/report", "shared/domain", "shared/protocol")
LEAST_PERCENT = 95.0


def ranges(numbers):
    """[1, 2, 3, 7] -> "1-3 7"."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def percent(run, lines):
    return 100.0 * run / lines if lines else 100.0


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    folders = collections.defaultdict(lambda: [0, 0])
    print(f"{'file':<52} {'lines':>6} {'run':>6} {'%':>6}  missed")
    for entry in sorted(report["files"], key=lambda entry: entry["file"]):
        # One line of source may be listed several times, once for each instance of a template.
        counts = collections.defaultdict(int)
        for line in entry["lines"]:
            if not line.get("gcovr/noncode"):
                counts[line["line_number"]] += line["count"]
        missed = sorted(number for number, count in counts.items() if count == 0)
        lines, run = len(counts), len(counts) - len(missed)
        folder = "/".join(entry["file"].split("/")[:2])
        folders[folder][0] += lines
        folders[folder][1] += run
        print(f"{entry['file']:<52} {lines:>6} {run:>6} {percent(run, lines):>6.1f}  {ranges(missed)}")

    print()
    failed = False
    for folder, (lines, run) in sorted(folders.items()):
        low = folder in REQUIRED and percent(run, lines) < LEAST_PERCENT
        failed |= low
        note = f"  under {LEAST_PERCENT:.0f} %" if low else ""
        print(f"{folder:<52} {lines:>6} {run:>6} {percent(run, lines):>6.1f}{note}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
