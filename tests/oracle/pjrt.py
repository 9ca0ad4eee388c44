"""Compiles StableHLO by a PJRT plug-in with no device of its kind at hand."""
import ctypes
import os

# Places in the table of functions of pjrt_c_api.h, API 0.
ERROR_DESTROY, ERROR_MESSAGE, INITIALIZE, EXECUTABLE_DESTROY = 0, 1, 3, 40
TOPOLOGY_CREATE, COMPILE = 82, 89
ENTRY = "GetPjrtApi"


def arguments(**members):
    """A struct of arguments: its size, no extensions, the members as given."""
    fields = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p)]
    fields += [(name, type(value)) for name, value in members.items()]
    # Members that newer versions have added follow as zeros.
    kind = type("Arguments", (ctypes.Structure,), {"_fields_": fields + [("later", ctypes.c_char * 64)]})
    return kind(struct_size=ctypes.sizeof(kind), **members)


class NamedText(ctypes.Structure):
    """PJRT_NamedValue with a string."""
    _fields_ = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("name_size", ctypes.c_size_t), ("type", ctypes.c_int), ("value", ctypes.c_char_p),
                ("value_size", ctypes.c_size_t)]

    def __init__(self, name, value):
        super().__init__(ctypes.sizeof(NamedText), None, name.encode(), len(name), 0, value.encode(),
                         len(value.encode()))


def text(of):
    return ctypes.c_char_p(of), ctypes.c_size_t(len(of))


class Plugin:
    def __init__(self, path):
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # no question to a metadata server
        entry = getattr(ctypes.CDLL(str(path)), ENTRY)
        entry.restype = ctypes.c_void_p
        table = entry()
        size = ctypes.c_size_t.from_address(table).value
        self.version = tuple(ctypes.c_int.from_address(table + at).value for at in (32, 36))
        if self.version[0] != 0 or size < 40 + 8 * (COMPILE + 1):
            raise RuntimeError(f"{path}: version {self.version} of the PJRT API, a table of {size} bytes")
        self.table = table
        self.call(INITIALIZE, arguments())

    def function(self, place):
        address = ctypes.c_void_p.from_address(self.table + 40 + 8 * place).value
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)

    def call(self, place, args):
        error = self.function(place)(ctypes.addressof(args))
        if not error:
            return args
        said = arguments(error=ctypes.c_void_p(error), text=ctypes.c_void_p(), size=ctypes.c_size_t())
        self.function(ERROR_MESSAGE)(ctypes.addressof(said))
        message = ctypes.string_at(said.text, said.size).decode(errors="replace")
        gone = arguments(error=ctypes.c_void_p(error))
        self.function(ERROR_DESTROY)(ctypes.addressof(gone))
        raise RuntimeError(message)

    def topology(self, name, **options):
        """The devices of that name, as the plug-in's own options describe them."""
        code, size = text(name.encode())
        rows = (NamedText * len(options))(*(NamedText(*option) for option in options.items()))
        made = self.call(TOPOLOGY_CREATE, arguments(name=code, size=size,
                                                    options=ctypes.cast(rows, ctypes.c_void_p),
                                                    option_count=ctypes.c_size_t(len(options)),
                                                    topology=ctypes.c_void_p()))
        return ctypes.c_void_p(made.topology)

    def compile(self, program, topology, **options):
        code, code_size = text(program)
        form, form_size = text(b"mlir")
        options, options_size = text(compile_options(options))
        source = arguments(code=code, code_size=code_size, form=form, form_size=form_size)
        made = self.call(COMPILE, arguments(topology=topology,
                                            program=ctypes.c_void_p(ctypes.addressof(source)),
                                            options=options, options_size=options_size,
                                            client=ctypes.c_void_p(), executable=ctypes.c_void_p()))
        self.call(EXECUTABLE_DESTROY, arguments(executable=ctypes.c_void_p(made.executable)))


def field(key, content):
    """Of a message of protobuf: bytes."""
    size = len(content)
    return bytes([key]) + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + content


def compile_options(options):
    """As src/backend/xla/pjrt_run.c: one device, no excess precision; and options of XLA by name."""
    encoded = field(0x1a, b"\x08" + b"\xff" * 9 + b"\x01" + b"\x20\x01\x28\x01")
    for name, value in {"xla_allow_excess_precision": False, **options}.items():
        value = bytes([0x10, value]) if isinstance(value, bool) else field(0x0a, str(value).encode())
        encoded += field(0x3a, field(0x0a, name.encode()) + field(0x12, value))
    return encoded
