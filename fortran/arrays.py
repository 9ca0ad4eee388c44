"""The generic procedures for arrays: mix_tensor_from_array and mix_tensor_to_array of each type and rank."""
import pathlib

TYPES = {"real32": ("real(c_float)", "MIX_FLOAT32"), "real64": ("real(c_double)", "MIX_FLOAT64"),
         "int32": ("integer(c_int32_t)", "MIX_INT32"), "int64": ("integer(c_int64_t)", "MIX_INT64")}
RANKS = range(1, 5)
STATUS = ("    integer(c_int), intent(out), optional :: stat\n"
          "    character(:), allocatable, intent(inout), optional :: errmsg")


def names():
    return [(f"{kind}_{rank}", kind, rank) for kind in TYPES for rank in RANKS]


def interfaces():
    for generic, prefix in (("mix_tensor_from_array", "from_"), ("mix_tensor_to_array", "to_")):
        yield f"  interface {generic}"
        yield f"    module procedure {', '.join(prefix + name for name, _, _ in names())}"
        yield f"  end interface {generic}"
    for prefix in ("from_", "to_", "place_of_"):
        yield f"  private :: {', '.join(prefix + name for name, _, _ in names())}"


def procedures():
    template = pathlib.Path(__file__).with_name("array_calls.f90.in").read_text()
    for name, kind, rank in names():
        text = template
        for word, given in (("NAME", name), ("TYPE", TYPES[kind][0]), ("DTYPE", TYPES[kind][1]),
                            ("COLONS", ",".join([":"] * rank)), ("STATUS", STATUS)):
            text = text.replace(f"@{word}@", given)
        yield from text.splitlines()
