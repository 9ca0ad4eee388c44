#!/usr/bin/env python3
"""Holds the list of functions of options in include/mixtape.hpp: mix::dense for mix_dense_with, and so on.

  makers.py HEADER.hpp [--write]

Reads the preprocessed C headers (cc -E -P) from standard input. A function that the list lacks, or that is
gone, is an error; --write writes the list.
"""
import re
import sys

# mix::call is a function of its own.
OTHER = {"call"}
BEGIN, END = "// makers: begin\n", "// makers: end\n"


def main():
    path = sys.argv[1]
    text = " ".join(sys.stdin.read().split())
    wanted = sorted(set(re.findall(r"\bmix_(\w+)_with ?\(", text)) - OTHER)
    if not wanted:
        sys.exit("makers.py: no functions of options on standard input; expected the preprocessed headers:\n"
                 "cat include/mixtape/*.h | cc -E -P -I include -x c - | makers.py HEADER.hpp [--write]")
    header = open(path, encoding="utf-8").read()
    before, rest = header.split(BEGIN)
    listed, after = rest.split(END)
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as out:
            out.write(before + BEGIN + "".join(f"MIX_MAKER({name})\n" for name in wanted) + END + after)
        return 0
    names = re.findall(r"^MIX_MAKER\((\w+)\)$", listed, re.M)
    problems = [f"mix_{name}_with has no mix::{name}" for name in wanted if name not in names]
    problems += [f"mix::{name} has no mix_{name}_with" for name in names if name not in wanted]
    if names != sorted(set(names)):
        problems.append("the names are not in order, or twice there")
    print("\n".join(f"{path}: {problem}; makers.py --write mends the list" for problem in problems)
          or f"{len(names)} functions of options")
    return 1 if problems or len(names) < 100 else 0


sys.exit(main())
