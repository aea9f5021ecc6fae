#!/usr/bin/env python3
"""Verdicts of many reports as a table: one line per model, counts of success/difference/error per executor.

usage: verdict_table.py REPORT_FOLDER > table.tsv
Reports are found below the folder; the name of a line is the report's folder (or the model's name where it lies on top).
"""
import json
import pathlib
import sys


def main(folder):
    root = pathlib.Path(folder)
    rows = []
    executors = []
    for path in sorted(root.rglob("torq_gen_config_*.json")):
        if path.stem.endswith(("_compiler", "_mac_debug")):
            continue
        report = json.loads(path.read_text())
        executors = report["_executors"]
        counts = {name: {"success": 0, "difference": 0, "error": 0} for name in executors}
        for entry in report["ops"].values():
            for name, result in entry["executors"].items():
                counts[name][result["status"]] += 1
        name = path.parent.name if path.parent != root else report["model_name"]
        rows.append([name] + ["/".join(str(count) for count in counts[name].values()) for name in executors])
    print("\t".join(["model", *executors]))
    for row in rows:
        print("\t".join(row))


if __name__ == "__main__":
    main(sys.argv[1])
