"""C's types as Fortran's, and Fortran's source lines."""

NUMBERS = {"int": "integer(c_int)", "int32_t": "integer(c_int32_t)", "uint32_t": "integer(c_int32_t)",
           "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)",
           "float": "real(c_float)", "double": "real(c_double)", "_Bool": "logical(c_bool)",
           "char": "character(kind=c_char)"}
ZEROS = {"integer": "0", "real": "0", "logical": ".false._c_bool", "type(c_ptr)": "c_null_ptr",
         "type(c_funptr)": "c_null_funptr"}
POINTER, FUNCTION = "type(c_ptr)", "type(c_funptr)"
# Parameters of these types point to several.
LISTS = {"mix_data_step"}


class Unmapped(Exception):
    """Why Fortran has no such thing."""


def value_type(headers, variable):
    """The type of a value: of a member, a result, or a parameter that C passes by value."""
    if variable.pointers:
        return POINTER
    if variable.base == "function" or variable.base in headers.callbacks:
        return FUNCTION
    if variable.base in NUMBERS:
        return NUMBERS[variable.base]
    if variable.base in headers.enums:
        return "integer(c_int)"
    name = headers.aliases.get(variable.base, variable.base)
    if name in headers.structs:
        return f"type({name})"
    raise Unmapped(f"the type {variable.kind}")


def zero_of(kind):
    return ZEROS.get(kind) or ZEROS.get(kind.split("(")[0])


def is_text(variable):
    return variable.kind == "const char *"


def is_text_list(variable):
    return variable.kind == "const char *const *"


def dummy(headers, variable):
    """The declaration of a parameter of an interface, up to its name, and what follows the name."""
    pointers, base = variable.pointers, variable.base
    if not pointers:
        return f"{value_type(headers, variable)}, value ::", ""
    intent = "in" if variable.kind.startswith("const ") else "inout"
    if pointers == 2:
        if "*const *" in variable.kind:
            return f"{POINTER}, intent(in), optional ::", "(*)"
        return f"{POINTER}, intent(inout) ::", ""
    if is_text(variable) or base in ("void", "function") or base in headers.opaque:
        return f"{POINTER}, value ::", ""
    if base in headers.structs:
        return f"type({base}), intent({intent}), optional ::", "(*)" if base in LISTS else ""
    kind = "integer(c_int)" if base in headers.enums else NUMBERS[base]
    return f"{kind}, intent({intent}), optional ::", "(*)"


def constant_of(name, value):
    """An integer of the smallest kind that holds it; the least one of a kind has no literal."""
    if isinstance(value, float):
        if value != -2.0 ** -1022:
            raise Unmapped("a number that is not an integer")
        return f"real(c_double), parameter :: {name} = -tiny(1._c_double)"
    kind = "c_int" if -2 ** 31 <= value < 2 ** 31 else "c_int64_t"
    text = f"{value}_{kind}"
    if value in (-2 ** 31, -2 ** 63):
        text = f"-huge(0_{kind}) - 1_{kind}"
    return f"integer({kind}), parameter :: {name} = {text}"


def fold(lines):
    """Lines of no more than 110 columns, broken at commas and spaces."""
    for line in lines:
        while len(line) > 110:
            cut = max(line.rfind(",", 0, 106), line.rfind(" ", 0, 106)) + 1
            if not line[:cut].strip():
                raise ValueError(f"a line that cannot be broken: {line}")
            yield line[:cut].rstrip() + " &"
            line = " " * 8 + line[cut:].lstrip()
        yield line
