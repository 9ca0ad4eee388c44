"""The module mixtape_c: types, constants and functions as C has them."""
from fortran_types import Unmapped, constant_of, dummy, is_text, is_text_list, value_type, zero_of

OBJECTS_OF_ERRORS = ("mix_error",)  # functions about the pending error do not take it


def result_is_object(headers, function):
    kind = function.result
    return kind.pointers and not is_text(kind) and kind.kind != "const char *const *"


def reports_status(function):
    return function.result.kind == "mix_status" and not function.name.startswith(OBJECTS_OF_ERRORS)


def is_wrapped(headers, function):
    """True if Fortran calls it through a procedure of mixtape_calls, with texts, logicals and a status."""
    return (result_is_object(headers, function) or reports_status(function) or is_text(function.result)
            or any(is_text(p) or is_text_list(p) or p.kind == "_Bool" for p in function.parameters))


def binding_name(headers, function):
    return "c_" + function.name if is_wrapped(headers, function) else function.name


def in_order(headers):
    """Structs after those that they contain."""
    done = []

    def add(name):
        for field in headers.structs[name]:
            if not field.pointers and field.base in headers.structs:
                add(headers.aliases.get(field.base, field.base))
        if name not in done:
            done.append(name)

    for name in headers.structs:
        add(name)
    return done


def default_of(headers, struct, field):
    if field.name == "size" and field.kind == "size_t" and struct_has_size(headers, struct):
        return f" = {headers.layout(struct)[0]}_c_size_t"
    zero = zero_of(value_type(headers, field))
    return f" = {zero}" if zero else ""


def struct_has_size(headers, struct):
    """Do its first bytes tell the library its version?"""
    first = headers.structs[struct][0]
    return first.kind == "size_t" and first.name == "size"


def types(headers):
    for struct in in_order(headers):
        yield f"  type, bind(C) :: {struct}"
        for field in headers.structs[struct]:
            shape = f"({field.count})" if field.count else ""
            yield (f"    {value_type(headers, field)} :: {field.name}{shape}"
                   f"{default_of(headers, struct, field)}")
        yield f"  end type {struct}"
    for alias, name in headers.aliases.items():
        yield f"  ! {alias} is type({name})"


def constants(headers, unmapped):
    taken = {name.lower() for name in [*headers.structs, *headers.functions, *headers.macros]}
    pairs = [pair for enum in headers.enums.values() for pair in enum] + list(headers.constants.items())
    for name, value in pairs:
        try:
            if name.lower() in taken:
                raise Unmapped("Fortran has the lower case name for something else")
            yield "  " + constant_of(name, value)
        except Unmapped as reason:
            unmapped.append((name, str(reason)))


def interface_of(headers, function):
    names = [p.name for p in function.parameters]
    is_function = function.result.kind != "void"
    word = "function" if is_function else "subroutine"
    name = binding_name(headers, function)
    lines = [f"    {word} {name}({', '.join(names)}) bind(C, name=\"{function.name}\")"
             + (" result(res_)" if is_function else ""), "      import"]
    for p in function.parameters:
        declaration, shape = dummy(headers, p)
        lines.append(f"      {declaration} {p.name}{shape}")
    if is_function:
        lines.append(f"      {value_type(headers, function.result)} :: res_")
    return lines + [f"    end {word} {name}"]


def module(headers, unmapped):
    yield "! Types, constants and functions as Mixtape's C headers declare them. Made by fortran/generate.py."
    yield from ["module mixtape_c", "  use, intrinsic :: iso_c_binding", "  implicit none", "  public"]
    yield from types(headers)
    yield from constants(headers, unmapped)
    yield "  interface"
    for function in headers.functions.values():
        try:
            yield from interface_of(headers, function)
        except Unmapped as reason:
            unmapped.append((function.name, str(reason)))
    yield "  end interface"
    yield "end module mixtape_c"
