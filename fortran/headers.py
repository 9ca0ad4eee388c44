"""What Mixtape's public headers declare, read from the preprocessor's output (cc -E -dD mixtape/mixtape.h).

The headers are regular: one declaration ends at one semicolon, no unions, bit fields or nested structs. What
does not have that form is an error here, so that a new form cannot be left out in silence.
"""
import dataclasses
import re

# size and alignment, which are equal, of the 64-bit systems that the library runs on
NUMBERS = {"int": 4, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "size_t": 8, "float": 4,
           "double": 8, "_Bool": 1, "char": 1}


@dataclasses.dataclass
class Variable:
    """A parameter or a member; kind is without `const` of its own, count is 0 unless it is an array."""
    kind: str
    name: str
    count: int = 0

    @property
    def base(self):
        return re.sub(r"\bconst\b|\*", "", self.kind).strip()

    @property
    def pointers(self):
        return self.kind.count("*")

    @property
    def is_const(self):
        return self.kind.startswith("const ")


@dataclasses.dataclass
class Function:
    name: str
    result: Variable
    parameters: list


@dataclasses.dataclass
class Macro:
    """A macro that calls a function with options: mix_dense of mix_dense_with."""
    name: str
    function: str
    options: str
    order: list  # the members that have a place, in order


class Headers:
    def __init__(self, preprocessed):
        self.structs, self.enums, self.functions, self.constants = {}, {}, {}, {}
        self.callbacks, self.aliases, self.opaque, self.macros, self.other_macros = set(), {}, set(), {}, {}
        text, defines = own_text(preprocessed)
        text, self.inlines = without_inlines(text)
        for declaration in declarations(text):
            self.declare(declaration)
        for define in defines:
            self.define(*define)

    def declare(self, text):
        if match := re.fullmatch(r"typedef struct (\w+) \{(.*)\} \1", text):
            self.structs[match[1]] = [field for part in match[2].split(";") if part.strip()
                                      for field in variables(part.strip(), self.enums)]
        elif match := re.fullmatch(r"typedef enum (\w+) \{(.*)\} \1", text):
            self.enums[match[1]] = enumerators(match[2])
        elif match := re.fullmatch(r"typedef struct (\w+) \1", text):
            self.opaque.add(match[1])
        elif match := re.match(r"typedef [\w *]+\(\*(\w+)\)\(", text):
            self.callbacks.add(match[1])
        elif match := re.fullmatch(r"typedef (\w+) (\w+)", text):
            self.aliases[match[2]] = match[1]
        elif match := re.fullmatch(r"((?:const )?\w+[ *]+(?:const \*)?)(mix_\w+) ?\((.*)\)", text):
            inside = [] if match[3] in ("void", "") else split_commas(match[3])
            self.functions[match[2]] = Function(match[2], Variable(match[1].strip(), ""),
                                                [parameter(one) for one in inside])
        else:
            raise ValueError(f"a declaration of another form: {text}")

    def define(self, name, parameters, body):
        if parameters is None:
            value = constant(body, self.constants)
            if value is not None:
                self.constants[name] = value
            return
        if match := re.match(r"MIX_LAYER_OF\((\w+), \"(.*?)\", #__VA_ARGS__, (\w+),", body):
            self.macros[name] = Macro(name, match[1] + "_with", match[3], places(match[2]))
        elif match := re.match(r"(\w+_with)\(.*?MIX_ARGUMENTS\( ?\"(\w+)\", \"(.*?)\", #__VA_ARGS__, "
                               r"(\w+),(.*)\)\)$", body):
            given = re.findall(r"\.(\w+) = (\w+)", match[5])
            self.macros[name] = Macro(name, match[1], match[4], in_order(given, parameters, match[3]))
        elif match := re.match(r"(\w+_with)\(.*&\(const (\w+)\)\{\.size = sizeof\(\2\), "
                               r"__VA_ARGS__\}\)$", body):
            self.macros[name] = Macro(name, match[1], match[2], [])
        elif name.startswith("mix_") and name not in self.functions:
            self.other_macros[name] = body

    def layout(self, struct):
        """(size, alignment, offsets of the members)"""
        at, align, offsets = 0, 1, []
        for field in self.structs[self.aliases.get(struct, struct)]:
            size, own = self.size(field)
            at = -(-at // own) * own
            offsets.append(at)
            at, align = at + size * max(field.count, 1), max(align, own)
        return -(-at // align) * align, align, offsets

    def size(self, field):
        if field.pointers or field.base in self.callbacks or field.base == "function":
            return 8, 8
        if field.base in NUMBERS:
            return NUMBERS[field.base], NUMBERS[field.base]
        if field.base in self.enums:
            return 4, 4
        return self.layout(field.base)[:2]


def own_text(preprocessed):
    """The lines of Mixtape's own headers, and their macros as (name, parameters, body)."""
    own, lines, defines = False, [], []
    for line in preprocessed.splitlines():
        if match := re.match(r'# \d+ "(.*)"', line):
            own = bool(re.search(r"(^|/)mixtape/\w+\.h$", match[1]))
        elif own and (match := re.match(r"#define (\w+)(?:\(([^)]*)\))? ?(.*)", line)):
            defines.append((match[1], match[2], re.sub(r"\s+", " ", match[3])))
        elif own and not line.startswith("#"):
            lines.append(line)
    text = re.sub(r"__attribute__ ?\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", " ".join(lines))
    return re.sub(r"\s+", " ", text), defines


def without_inlines(text):
    """The text without functions that have a body, and their names."""
    names = []
    while match := re.search(r"static inline [^;{]*?(\w+)\([^;{]*\) \{", text):
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        names.append(match[1])
        text = text[:match.start()] + text[end:]
    return text, names


def declarations(text):
    """The parts that end with a semicolon outside braces."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == ";" and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        raise ValueError(f"no semicolon ends: {text[start:].strip()}")


def split_commas(text):
    """Splits at the commas outside parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def parameter(text):
    if match := re.search(r"\(\*(\w+)\)", text):
        return Variable("function", match[1])
    match = re.fullmatch(r"(.*?[ *])(\w+)((?:\[\w*\])?)", text)
    if not match:
        raise ValueError(f"a parameter of another form: {text}")
    return Variable(match[1].strip() + (" *" if match[3] else ""), match[2])


def variables(text, enums):
    """The members of one declaration: const char *name, *other, list[16]."""
    if "(*" in text:
        return [Variable("function", re.search(r"\(\*(\w+)\)", text)[1])]
    match = re.match(r"((?:const )?\w+) ?(.*)", text)
    found = []
    for one in split_commas(match[2]):
        parts = re.fullmatch(r"((?:\*|const\b| )*)(\w+)(?:\[(.+)\])?", one)
        if not parts:
            raise ValueError(f"a member of another form: {text}")
        count = 0 if parts[3] is None else constant(parts[3], {k: v for e in enums.values() for k, v in e})
        found.append(Variable(f"{match[1]} {parts[1].strip()}".strip(), parts[2], count))
    return found


def enumerators(text):
    found, value = [], -1
    for one in split_commas(text):
        if one:
            name, _, given = one.partition("=")
            value = constant(given, dict(found)) if given else value + 1
            if value is None:
                raise ValueError(f"an enumerator whose value is not a number: {one}")
            found.append((name.strip(), value))
    return found


def constant(text, known):
    """The value of an expression of numbers and names of numbers; None for anything else."""
    text = text.strip()
    if not text or re.search(r'["{#;]', text):
        return None
    if match := re.fullmatch(r"\(?(-)?(0x[\da-f.]+p[+-]?\d+)\)?", text, re.I):
        return float.fromhex((match[1] or "") + match[2])
    if match := re.fullmatch(r"\(?INT(32|64)_(MIN|MAX)\)?", text):
        return -2 ** (int(match[1]) - 1) if match[2] == "MIN" else 2 ** (int(match[1]) - 1) - 1
    text = re.sub(r"[A-Z]\w+", lambda name: str(known.get(name[0], name[0])), text)
    return eval(text, {"__builtins__": {}}) if re.fullmatch(r"[\d\s()+*<|-]+", text) else None


def places(names):
    """The members that may stand without their names: "units, !activation; MIX_AXES(axis)"."""
    return [name.strip(" !") for name in names.split(";")[0].split(",") if name.strip()]


def in_order(given, parameters, names):
    """The places of a macro: what its own parameters fill, the first of the others, those of names."""
    own = [member for member, value in given if value in parameters.split(",")]
    first = [member for member, value in given if value == "__VA_ARGS__"]
    return own + [member for member in first if member not in places(names)] + places(names)
