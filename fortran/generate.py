#!/usr/bin/env python3
"""Writes the Fortran modules of Mixtape's C headers.

  cc -E -dD -I include include/mixtape/mixtape.h | fortran/generate.py FOLDER

FOLDER gets mixtape_c.f90 (types, constants and functions as C has them), mixtape_calls.f90 (the same
functions with Fortran's arguments), layouts.h and layouts.f90 (sizes and offsets, for the compiler and for
the test) and unmapped.txt: what Fortran has not, with the reason.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # nothing is written beside the sources

import arrays
import bindings
import calls
import headers as headers_module
import layouts
from fortran_types import fold

# Not functions or constants, and of no use outside C; the text that says so, for unmapped.txt.
MACROS = {"MIX_CHECK, MIX_EXIT_CODE": "print and end the program; use stat, errmsg and error stop",
          "MIX_SCOPE, MIX_SCOPE_HERE": "end with a block of C; call mix_scope_begin and mix_scope_end",
          "MIX_SHAPE, MIX_AXES": "functions of the module mixtape instead: mix_shape_of, mix_axes_of",
          "MIXTAPE_VERSION": "a text; call mix_version"}
# Written by hand in mixtape.f90.
WRITTEN = {"mix_list_of"}


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")


def function_of(body, headers):
    """What a program calls in place of a macro."""
    if match := re.match(r'MIX_LOSS_NAMED\("(\w+)"', body):
        return f'mix_loss_new("{match[1]}")'
    called = [word for word in re.findall(r"mix_\w+", body) if word in headers.functions]
    return called[0] if called else "a struct"


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    headers = headers_module.Headers(sys.stdin.read())
    if not headers.functions:
        sys.exit("generate.py: standard input declares no function of Mixtape")
    unmapped = [(name, "inline in C") for name in headers.inlines]
    unmapped += [(name, f"a macro of C, of {function_of(body, headers)}")
                 for name, body in headers.other_macros.items() if name not in WRITTEN]
    write(folder / "mixtape_c.f90", fold(bindings.module(headers, unmapped)))
    write(folder / "mixtape_calls.f90", fold(calls.module(headers, unmapped, arrays)))
    write(folder / "layouts.f90", fold(layouts.fortran(headers)))
    write(folder / "layouts.h", layouts.c_header(headers))
    rows = [f"{name}: {reason}" for name, reason in [*unmapped, *MACROS.items()]]
    write(folder / "unmapped.txt", rows)


if __name__ == "__main__":
    main()
