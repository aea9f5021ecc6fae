#!/usr/bin/env python3
"""The schemas of the three report files describe every key, and docs/report.md names each key of the report."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ("report", "compiler", "mac_debug")


def properties(part, path):
    """(path, key, schema) of every property below `part`."""
    if isinstance(part, dict):
        for key, schema in part.get("properties", {}).items():
            yield f"{path}.{key}", key, schema
        for name, child in part.items():
            yield from properties(child, path if name in ("properties", "items", "additionalProperties") else f"{path}.{name}")
    elif isinstance(part, list):
        for child in part:
            yield from properties(child, path)


def described(schema, document):
    """In words, here or at what it refers to."""
    if schema.get("description"):
        return True
    reference = schema.get("$ref", "")
    return reference.startswith("#/definitions/") and bool(document["definitions"][reference.rsplit("/", 1)[1]].get("description"))


def main():
    problems = []
    seen = 0
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    for name in SCHEMAS:
        document = json.loads((ROOT / "configs" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
        if not document.get("description"):
            problems.append(f"{name}: the file itself is not described")
        for path, key, schema in properties(document, name):
            seen += 1
            if not described(schema, document):
                problems.append(f"{path} is not described")
            if name == "report" and key.startswith("_") and f"`{key}`" not in page:
                problems.append(f"docs/report.md does not name {key}")
    if seen < 120:
        problems.append(f"only {seen} properties are found: the schemas are not understood")
    print("\n".join(problems) or f"{seen} properties")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
