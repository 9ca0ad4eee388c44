#!/usr/bin/env python3
"""docs/COVERAGE.md: which test holds each row of the specification, or why none does yet.

Rows are known from names of test functions: O17_name holds O17, S05_S08_name both, S11_to_S13_name all three; a comment that begins with
"L28:" says it of what follows. Rows of the graph rewrite are recorded graphs, G03-simple.json holds G03: tests/spec/test_rewrite.c makes a test of
each file; where MIXTAPE_REFERENCE_DIR is set, the files are checked to be there.
  tools/coverage.py          writes docs/COVERAGE.md
  tools/coverage.py --check  fails where it is not what would be written
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIXED, LAYERS = "spec/mixed-precision.md", "spec/layers.md"

# document, section, title, letter, first row, last row (inclusive); rows that a table leaves out are named in GAPS.
TABLES = [
    (MIXED, "9.1", "Policy", "P", 1, 50),
    (MIXED, "9.2", "Device check", "D", 1, 13),
    (MIXED, "9.3", "Input casting", "A", 1, 15),
    (MIXED, "9.4", "Autocast variables", "V", 1, 27),
    (MIXED, "9.5", "Dynamic schedule", "S", 1, 25),
    (MIXED, "9.6", "Loss-scale optimizer", "O", 1, 70),
    (MIXED, "9.7", "Model level", "M", 1, 11),
    (MIXED, "9.8", "Graph rewrite", "G", 1, 62),
    (MIXED, "9.9", "Number formats", "N", 1, 14),
    (MIXED, "11", "Acceptance scenario", "W", 1, 25),
    (LAYERS, "19.1", "Optimizer trajectories", "T", 1, 14),
    (LAYERS, "19.2", "Layers", "L", 1, 32),
    (LAYERS, "19.3", "Activations", "F", 1, 8),
    (LAYERS, "19.4", "Losses and metrics", "C", 1, 17),
    (LAYERS, "19.5", "Optimizer frame", "U", 1, 14),
    (LAYERS, "19.6", "Data and loop", "Y", 1, 13),
    (LAYERS, "19.7", "Files", "Z", 1, 12),
]
GAPS = {"S19", *(f"O{i}" for i in range(48, 60)), *(f"G{i}" for i in range(23, 30)), "G39", "G48", "G49"}


def rows(letter, first, last):
    return [f"{letter}{i:02d}" for i in range(first, last + 1)]


# Why a row has no test yet.
REASONS = {}


def because(reason, *names):
    for name in names:
        REASONS[name] = reason


because("with distribution strategies", "P49", "O13", "O32")
because("with sparse tensors and sparse gradients", "A09", "O04")
because("with builds that lack the bfloat16 mode: there are none", "G37")
because("with .keras archives and HDF5", *rows("Z", 1, 12), "M05")
because("with the application models", "M11")
because("with convolution and pooling", *rows("L", 1, 13), "L25")
because("with recurrent layers", *rows("L", 14, 18), "L27")
because("with MultiHeadAttention", "L26")
for gap in GAPS:
    REASONS.pop(gap, None)


# Rows that recorded graphs hold (status, dtypes, casts and renamed ops; the graphs are not executed).
RECORDED = [row for row in rows("G", 1, 60) if row not in GAPS and row != "G37"]
RECORDED_TEST = "tests/spec/test_rewrite.c"


def tests():
    """Row -> files of its tests."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.c")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        for match in re.finditer(r"\b((?:[A-Z]\d\d_)+)(?:to_([A-Z])(\d\d)_)?", text):
            named = match.group(1).rstrip("_").split("_")
            if match.group(2):
                named += rows(match.group(2), int(named[-1][1:]), int(match.group(3)))
            for row in named:
                found.setdefault(row, set()).add(name)
        for match in re.finditer(r"/\* ([A-Z]\d\d): ", text):
            found.setdefault(match.group(1), set()).add(name)
    if (ROOT / RECORDED_TEST).exists():
        for row in RECORDED:
            found.setdefault(row, set()).add(RECORDED_TEST)
    return found


def unrecorded():
    """Rows that should have a recorded graph and have none."""
    directory = pathlib.Path(os.environ.get("MIXTAPE_REFERENCE_DIR") or "/nonexistent") / "rewrite"
    return [row for row in RECORDED if not any(directory.glob(f"{row}-*.json"))] if directory.is_dir() else []


def document():
    found = tests()
    lines = [
        "# Which test holds which row of the specification",
        "",
        "Written by `tools/coverage.py` from the names of the test functions, and of the recorded graphs for the graph rewrite; CI checks that it is fresh. Rows without a test say what they wait for.",
        "",
    ]
    problems, notes, summary, sections = [], [], [], []
    known = set()
    for spec, section, title, letter, first, last in TABLES:
        table = [row for row in rows(letter, first, last) if row not in GAPS]
        known.update(table)
        held = [row for row in table if row in found]
        summary.append(f"| {spec} {section} | {title} | {len(held)} of {len(table)} |")
        sections += [f"## {title} ({spec}, {section})", "", "| row | test |", "|---|---|"]
        for row in table:
            if row in found:
                if row in REASONS:
                    notes.append(f"{row} has a test now: its reason can go")
                where = ", ".join(sorted(found[row]))
            elif row in REASONS:
                where = f"not yet: {REASONS[row]}"
            else:
                problems.append(f"{row} has neither a test nor a reason")
                where = "not yet"
            sections.append(f"| {row} | {where} |")
        sections.append("")
    problems += [f"{row} has no recorded graph" for row in unrecorded()]
    letters = {table[3] for table in TABLES}
    problems += [f"{row} ({', '.join(sorted(found[row]))}) is no row of the specification" for row in sorted(found) if row[0] in letters and row not in known]
    return "\n".join(lines + ["| table | | rows with a test |", "|---|---|---|"] + summary + [""] + sections), problems, notes


def main():
    text, problems, notes = document()
    target = ROOT / "docs" / "COVERAGE.md"
    for problem in problems + notes:
        print(f"coverage: {problem}", file=sys.stderr)
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            print("coverage: docs/COVERAGE.md is out of date; run tools/coverage.py", file=sys.stderr)
            return 1
    else:
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 1 if problems else 0


sys.exit(main())
