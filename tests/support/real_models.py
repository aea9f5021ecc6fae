#!/usr/bin/env python3
"""Runs discover on many models and chips, and prints what came out as Markdown tables (docs/real-models.md).

usage: real_models.py [options] WORK_FOLDER MODEL.onnx...
  --chips A,B      chips (default SM8550,host-cpu)
  --workers N      worker processes (default 2)
  --table          no runs, only the tables of what WORK_FOLDER holds

WORK_FOLDER/out/<chip>/<model>/ gets the reports, WORK_FOLDER/cache is the cache, WORK_FOLDER/runs.json what each run took. A run whose report is finished is not
repeated. $LAYERFARM_BIN names the folder of the programs.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time


def distinct_layers(model, chip):
    """How many layers are unlike each other: the reference jobs of an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, LAYERFARM_CACHE_DIR=folder)
        command = [pathlib.Path(os.environ["LAYERFARM_BIN"]) / "layerfarm", "discover", "--dry-run", "--model", model, "--chip", chip, "--output-dir", folder]
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = re.search(r"prepare: (\d+) to run", done.stdout + done.stderr)
    return int(found.group(1)) if found else None


def discover(work, model, chip, workers):
    out = work / "out" / chip / model.stem
    out.mkdir(parents=True, exist_ok=True)
    env = dict(os.environ, LAYERFARM_CACHE_DIR=str(work / "cache"))
    command = [pathlib.Path(os.environ["LAYERFARM_BIN"]) / "layerfarm", "discover", "--model", model, "--chip", chip, "--workers", str(workers),
               "--output-dir", out, "--keep-failed", work / "failed"]
    begun = time.monotonic()
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = time.monotonic() - begun
    (out / "printed.txt").write_text(done.stdout + done.stderr)
    return {"model": model.stem, "chip": chip, "code": done.returncode, "seconds": round(took, 1), "distinct": distinct_layers(model, chip)}


def report_of(work, chip, model):
    path = work / "out" / chip / model / f"torq_gen_config_{model}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def first_lines(text, most=160):
    """The line that says what is wrong, without names, numbers and places that differ from layer to layer."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = next((line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)), lines[0] if lines else "")
    chosen = re.sub(r"^\S*:\d+:\d+: ", "", chosen)
    # IREE prints the whole operation; its name and its types say enough.
    operation = re.search(r'"(onnx\.\w+)"', chosen)
    types = re.search(r" : (\([\w, ]*\) -> \w+)", chosen)
    chosen = re.sub(r"(explicitly marked illegal): .*", r"\1", chosen)
    chosen += "".join(f" ({found.group(1)})" for found in (operation, types) if found)
    chosen = re.sub(r"%\w+(:\d+)?|0x[0-9a-f]+", "%", chosen)
    chosen = re.sub(r"`n\d+\w*`", "`n`", chosen)
    chosen = re.sub(r"(?<![A-Za-z0-9])\d+", "N", chosen)
    return chosen[:most].replace("|", "\\|")


def reason_of(result):
    if result["status"] == "difference":
        return re.sub(r"\d+/\d+ ", "", result.get("_reason", ""))
    failure = result["failure_report"]
    text = (failure.get("_text") or failure["summary"]).removeprefix("Fixture/setup failed: ")
    return f"{failure.get('_where', failure['type'])}: {first_lines(text)}"


def op_type(layer):
    return layer.split("_", 1)[0]


def runs_table(work, runs):
    lines = ["| model | chip | layers | distinct layers | per executor: success / difference / error | exit | time |", "|---|---|---|---|---|---|---|"]
    for run in runs:
        report = report_of(work, run["chip"], run["model"])
        if report is None:
            lines.append(f"| {run['model']} | {run['chip']} | - | - | no report | {run['code']} | {run['seconds']} s |")
            continue
        counts = {name: collections.Counter() for name in report["_executors"]}
        for entry in report["ops"].values():
            for name, result in entry["executors"].items():
                counts[name][result["status"]] += 1
        shown = ", ".join(f"{name} {count['success']} / {count['difference']} / {count['error']}" for name, count in counts.items())
        lines.append(f"| {run['model']} | {run['chip']} | {len(report['ops'])} | {run['distinct']} | {shown} | {run['code']} | {run['seconds']} s |")
    return lines


def failures_table(work, runs):
    kinds = collections.defaultdict(list)
    for run in runs:
        report = report_of(work, run["chip"], run["model"])
        for layer, entry in (report or {"ops": {}})["ops"].items():
            for name, result in entry["executors"].items():
                if result["status"] != "success":
                    kinds[run["chip"], name, op_type(layer), result["status"], reason_of(result)].append(f"{run['model']}: {layer}")
        for layer, executors in (report or {}).get("_unsettled", {}).items():
            for name, why in executors.items():
                kinds[run["chip"], name, op_type(layer), "unsettled", why].append(f"{run['model']}: {layer}")
    lines = ["| chip | executor | op type | status | reason | layers | for example |", "|---|---|---|---|---|---|---|"]
    for (chip, name, kind, status, reason), found in sorted(kinds.items()):
        lines.append(f"| {chip} | {name} | {kind} | {status} | {reason} | {len(found)} | {found[0]} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--chips", default="SM8550,host-cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    record = asked.work / "runs.json"
    runs = json.loads(record.read_text()) if record.is_file() else []
    for model in asked.models if not asked.table else []:
        for chip in asked.chips.split(","):
            if any(run["model"] == model.stem and run["chip"] == chip for run in runs):
                continue
            runs.append(discover(asked.work, model.resolve(), chip, asked.workers))
            record.write_text(json.dumps(runs, indent=1))
    print("\n".join([*runs_table(asked.work, runs), "", *failures_table(asked.work, runs)]))


if __name__ == "__main__":
    main()
