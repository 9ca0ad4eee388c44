#!/usr/bin/env python3
"""docs/COVERAGE.md: which test holds each row of the specification, which rows are tested in part, and why;
and which tests hold each section of docs/NUMERICS.md.

Rows are known from names of test functions: O17_name holds O17, S05_S08_name both, S11_to_S13_name all three.
A comment that begins with "L28:" says it of what follows. Rows of the graph rewrite are recorded graphs:
G03-simple.json holds G03, and the test that reads the records makes a test of each file. Where
MIXTAPE_REFERENCE_DIR is set, the files must be there. The rows themselves are in docs/spec: each must be
there once, and so must each row and section that the code cites. Sections of docs/NUMERICS.md are known from
comments: "Holds docs/NUMERICS.md: Sums; Products." above a test says it of that test, else of the file.
  tools/coverage.py          writes docs/COVERAGE.md
  tools/coverage.py --check  fails where it is not what would be written, or where docs/spec lacks something
"""
import os
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEC = ROOT / "docs" / "spec"
NUMERICS = ROOT / "docs" / "NUMERICS.md"
WIDTH = 110

# File in docs/spec, title, letter, first row, last row (inclusive). GAPS has the numbers that are left out.
TABLES = [
    ("policy.md", "Policies", "P", 1, 50),
    ("device_check.md", "Device check", "D", 1, 13),
    ("input_casting.md", "Input casting", "A", 1, 15),
    ("autocast_variables.md", "Autocast variables", "V", 1, 27),
    ("loss_scale_schedule.md", "Dynamic loss scale", "S", 1, 25),
    ("loss_scale_optimizer.md", "Loss-scale optimizer", "O", 1, 70),
    ("model.md", "Mixed precision in models", "M", 1, 11),
    ("graph_rewrite.md", "Graph rewrite", "G", 1, 62),
    ("number_formats.md", "Number formats", "N", 1, 14),
    ("acceptance.md", "Acceptance scenario", "W", 1, 25),
    ("optimizers.md", "Optimizer trajectories", "T", 1, 14),
    ("layers.md", "Layers", "L", 1, 32),
    ("activations.md", "Activations", "F", 1, 8),
    ("losses_and_metrics.md", "Losses and metrics", "C", 1, 17),
    ("optimizer_frame.md", "Frame of optimizers", "U", 1, 14),
    ("data_and_loop.md", "Data and training loop", "Y", 1, 13),
    ("policy_map.md", "Policies by layer", "K", 1, 24),
    ("files.md", "Files", "Z", 1, 12),
    ("float8.md", "Float8 training", "E", 1, 21),
    ("quantization.md", "Weights of 8 and 4 bits", "Q", 1, 30),
    ("lora.md", "LoRA", "R", 1, 18),
]
LETTERS = "".join(table[2] for table in TABLES)

# The document that a comment cites, and the file that has its sections.
SECTIONS = {"mixed_precision": "mixed_precision.md", "keras": "keras.md"}

# Words of comments that look like rows: types, and editions of the C standard.
NOT_ROWS = {"F16", "F32", "F64", "S32", "S64", "U16", "U32", "U64", "C99", "C23"}


def rows(letter, first, last):
    return [f"{letter}{i:02d}" for i in range(first, last + 1)]


GAPS = {"S19", *rows("O", 48, 59), *rows("G", 23, 29), "G39", "G48", "G49"}
KNOWN = {row for table in TABLES for row in rows(*table[2:])} - GAPS


def because(reasons, reason, *names):
    for name in names:
        if name not in GAPS:
            reasons[name] = reason


# Why a row has no test yet.
REASONS = {}
because(REASONS, "comes with central storage or parameter servers: there are none", "P49")
because(REASONS, "comes with a cross-replica context: there is none, for each rank is one replica", "O32")
because(REASONS, "comes with builds that lack the bfloat16 mode: there are none", "G37")
because(REASONS, "comes with the application models", "M11")

# What the test of a row leaves out.
PARTIAL = {}
because(PARTIAL, "a variable without an initial value stands for a tensor", "V15")
because(PARTIAL, "with 4096 units one epoch in `.ci/run`, all five in `.ci/nightly guide`; needs MNIST",
        "M10")
because(
    PARTIAL,
    "512 units in `.ci/run`; `.ci/nightly guide` has 4096, which end at 0.897 and 0.899 with seeds 1 and 2; "
    "needs MNIST",
    "W11",
)
because(PARTIAL, "that multiples of 8 are faster; RNN units and filters", "W20")
because(PARTIAL, "the graph is compared, not executed: no numbers before and after", "G58")

# Rows whose recorded graphs are executed before and after the rewrite.
EXECUTED = ["G18", *rows("G", 40, 47), *(row for row in rows("G", 50, 60) if row != "G58")]

# Rows that recorded graphs hold (status, dtypes, casts and renamed ops).
RECORDED = [row for row in rows("G", 1, 60) if row not in GAPS and row != "G37"]


def sources(*folders, suffixes=(".c", ".h", ".cpp")):
    """Names and texts of the C files in these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def tests():
    """Row -> files of its tests."""
    found = {}
    for name, text in sources("tests", suffixes=(".c",)):
        for match in re.finditer(r"\b((?:[A-Z]\d\d_)+)(?:to_([A-Z])(\d\d)_)?", text):
            named = match.group(1).rstrip("_").split("_")
            if match.group(2):
                named += rows(match.group(2), int(named[-1][1:]), int(match.group(3)))
            for row in named:
                found.setdefault(row, set()).add(name)
        for match in re.finditer(r"/\* ([A-Z]\d\d): ", text):
            found.setdefault(match.group(1), set()).add(name)
        if "MIXTAPE_REFERENCE_DIR" in text and '/rewrite"' in text:  # the test that reads the recorded graphs
            for row in EXECUTED if name.endswith("_numbers.c") else RECORDED:
                found.setdefault(row, set()).add(name)
    return {row: files for row, files in found.items() if row[0] in LETTERS}


def promise_key(heading):
    """How tests name a section: without code marks, up to a colon."""
    return heading.replace("`", "").partition(":")[0]


def promises():
    """Section of NUMERICS.md, as tests name it -> its heading."""
    headings = re.findall(r"^##+ (.*)", NUMERICS.read_text(encoding="utf-8"), re.M)
    return {promise_key(heading): heading for heading in headings}


def holders():
    """Section of NUMERICS.md -> file -> the tests of it that hold the section; none: the whole file does."""
    found = {}
    mark = re.compile(r"/\* Holds docs/NUMERICS\.md: ([^.]*)\.[\s*]*\*/\s*"
                      r"(?:/\*(?:[^*]|\*(?!/))*\*/\s*)?(?:static void (\w+)\()?")
    for name, text in sources("tests", suffixes=(".c",)):
        for sections, test in mark.findall(text):
            for section in re.sub(r"\s*\n \* ", " ", sections).split("; "):
                tests_of = found.setdefault(section, {}).setdefault(name, [])
                if test:
                    tests_of.append(test)
    return found


def unheld():
    """Problems of promises: sections without a test, and tests of sections that there are not."""
    known, found = promises(), holders()
    problems = [f"docs/NUMERICS.md: no test holds \"{key}\"" for key in known if key not in found]
    for key in sorted(set(found) - set(known)):
        problems.append(f"{', '.join(found[key])}: docs/NUMERICS.md has no section \"{key}\"")
    return problems


def promise_lines():
    """The list of the sections of NUMERICS.md with their tests."""
    lines, found = [], holders()
    for key, heading in promises().items():
        anchor = re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")
        files = [name + (f" ({', '.join(tests_of)})" if tests_of else "")
                 for name, tests_of in found.get(key, {}).items()]
        text = f"- [{key}](NUMERICS.md#{anchor}): {', '.join(files)}"
        lines.append(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return lines


def unrecorded():
    """Rows that should have a recorded graph and have none."""
    directory = pathlib.Path(os.environ.get("MIXTAPE_REFERENCE_DIR") or "/nonexistent") / "rewrite"
    if not directory.is_dir():
        return []
    return [f"{row} has no recorded graph" for row in RECORDED if not any(directory.glob(f"{row}-*.json"))]


def comments(text):
    """The comments of a C file, their line breaks and leading asterisks gone."""
    tokens = re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', text, re.S)
    found = [token.group(0) for token in tokens]
    return [re.sub(r"\s*\n\s*\*?\s*", " ", token) for token in found if token[0] == "/"]


def numbers(text):
    """Section numbers in a text: "1.1 to 1.3" is three."""
    found = []
    for first, last in re.findall(r"(\d+(?:\.\d+)?)(?: to (\d+(?:\.\d+)?))?", text):
        found.append(first)
        if last:
            chapter, _, start = first.rpartition(".")
            prefix = chapter + "." if chapter else ""
            found += [f"{prefix}{i}" for i in range(int(start) + 1, int(last.rpartition(".")[2]) + 1)]
    return found


def described():
    """Problems of docs/spec: rows that are missing, out of place or there twice."""
    problems = []
    for file, _, letter, first, last in TABLES:
        text = (SPEC / file).read_text(encoding="utf-8") if (SPEC / file).exists() else ""
        there = re.findall(r"^- \*\*([A-Z]\d\d)\*\* ", text, re.M)
        table = [row for row in rows(letter, first, last) if row not in GAPS]
        place = f"docs/spec/{file}"
        problems += [f"{place} lacks {row}" for row in table if row not in there]
        problems += [f"{place} has {row}, which is no row of it" for row in sorted(set(there) - set(table))]
        problems += [f"{place} has {row} twice" for row in sorted(set(there)) if there.count(row) > 1]
    return problems


def section_headings():
    """Document -> the sections that its file in docs/spec has."""
    found = {}
    for document, file in SECTIONS.items():
        text = (SPEC / file).read_text(encoding="utf-8") if (SPEC / file).exists() else ""
        found[document] = {n for heading in re.findall(r"^#+ (\d.*)", text, re.M) for n in numbers(heading)}
    return found


def cited():
    """Problems of citations: rows and sections that docs/spec does not have."""
    problems, headings = [], section_headings()
    row_name = re.compile(rf"\b[{LETTERS}]\d\d\b")
    number = r"\d+(?:\.\d+)?"
    several = rf"{number}(?:(?:,| and| to) {number})*"
    section = re.compile(rf"docs/spec/(mixed_precision|keras)\.md,? ?(?:sections? )?({several})")
    for name, text in sources("src", "include", "tests", "bench", "examples"):
        for comment in comments(text):
            unknown = [row for row in row_name.findall(comment) if row not in KNOWN | NOT_ROWS]
            problems += [f"{name} cites {row}, which docs/spec does not have" for row in unknown]
            for document, wanted in section.findall(comment):
                unknown = [n for n in numbers(wanted) if n not in headings[document]]
                problems += [f"{name} cites {n}, which {SECTIONS[document]} does not have" for n in unknown]
    return problems


def bullet(first, last, text):
    between = " and " if int(last[1:]) == int(first[1:]) + 1 else " to "
    names = first if first == last else first + between + last
    return textwrap.fill(f"- {names}{text}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def listing(table, found):
    """Lines of one table: neighbours of the same text share a line."""
    groups = []
    for row in table:
        if row not in found:
            text = f": no test yet, {REASONS.get(row, 'and no reason')}."
        elif row in PARTIAL:
            text = f" in part: {', '.join(sorted(found[row]))}. Gap: {PARTIAL[row]}."
        else:
            text = f": {', '.join(sorted(found[row]))}"
        if groups and groups[-1][2] == text and int(row[1:]) == int(groups[-1][1][1:]) + 1:
            groups[-1][1] = row
        else:
            groups.append([row, row, text])
    return [bullet(*group) for group in groups]


def document():
    """The text of COVERAGE.md."""
    found = tests()
    summary, details, totals = [], [], [0, 0, 0]
    for file, title, letter, first, last in TABLES:
        table = [row for row in rows(letter, first, last) if row not in GAPS]
        held = [row for row in table if row in found]
        counts = [len(held), len(table), len([row for row in held if row in PARTIAL])]
        totals = [a + b for a, b in zip(totals, counts)]
        summary.append(f"| {title} | [{file}](spec/{file}) | {count_text(*counts)} |")
        details += ["", f"## {title}", "", f"Rows: [docs/spec/{file}](spec/{file}).", ""]
        details += listing(table, found)
    intro = (
        "Written by `tools/coverage.py` from the names of the test functions, from comments of tests and, "
        "for the graph rewrite, from the names of the recorded graphs. `make check` tests that it is fresh. "
        "A row is tested in part where its test leaves something out: its gap says what. Rows without a test "
        "say what they wait for. What a row says is in [docs/spec](spec/README.md)."
    )
    head = ["# Which tests hold what the numbers promise, and the rows of the specification", ""]
    head += [textwrap.fill(intro, WIDTH), "", "## What the numbers promise", ""]
    head += ["Sections of [NUMERICS.md](NUMERICS.md), where tests are named those alone.", ""]
    head += [*promise_lines(), "", "## Rows", ""]
    head += ["| table | rows, in docs/spec | rows with a test |", "|---|---|---|", *summary]
    head += [f"| all | | {count_text(*totals)} |"]
    return "\n".join(head + details) + "\n"


def count_text(held, count, partial):
    return f"{held} of {count}" + (f" ({partial} in part)" if partial else "")


def complaints():
    """Problems of the rows, and notes on reasons that have gone."""
    found = tests()
    lost = KNOWN - set(found) - set(REASONS)
    problems = [f"{row} has neither a test nor a reason" for row in sorted(lost)]
    for row in sorted(set(found) - KNOWN):
        problems.append(f"{row} ({', '.join(sorted(found[row]))}) is no row of the specification")
    untested = sorted(set(PARTIAL) - set(found))
    problems += [f"{row} is said to be tested in part and has no test" for row in untested]
    notes = [f"{row} has a test now: its reason can go" for row in sorted(set(REASONS) & set(found))]
    return problems + unheld() + described() + cited() + unrecorded(), notes


def main():
    text = document()
    problems, notes = complaints()
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
