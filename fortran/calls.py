"""The module mixtape_calls: C's functions with Fortran's texts and logicals, an optional status and message,
and keyword arguments in place of C's macros."""
from bindings import binding_name, is_wrapped, reports_status, struct_has_size
from fortran_types import dummy, is_text, is_text_list, value_type

STATUS = ["    integer(c_int), intent(out), optional :: stat",
          "    character(:), allocatable, intent(inout), optional :: errmsg"]


class Call:
    """A procedure that calls one function of C."""

    def __init__(self, name, function):
        self.name, self.function = name, function
        self.names, self.dummies, self.locals, self.before, self.actuals = [], [], [], [], []

    def add(self, name, declaration, shape=""):
        self.names.append(name)
        self.dummies.append(f"    {declaration} {name}{shape}")

    def argument(self, headers, p):
        """A parameter of C's function."""
        if is_text(p):
            self.add(p.name, "character(*), intent(in), optional ::")
            self.text(p.name, f"{p.name}_c")
            self.locals.append(f"    type(c_ptr) :: {p.name}_c")
            self.actuals.append(f"{p.name}_c")
        elif is_text_list(p):
            self.add(p.name, "character(*), intent(in), optional ::", "(:)")
            self.locals += [f"    type(text_memory), allocatable, target :: {p.name}_m(:)",
                            f"    type(c_ptr), allocatable :: {p.name}_c(:)"]
            self.before.append(f"    call make_texts({p.name}_c, {p.name}_m, {p.name})")
            self.actuals.append(f"{p.name}_c")
        elif p.kind == "_Bool":
            self.add(p.name, "logical, intent(in) ::")
            self.actuals.append(f"logical({p.name}, c_bool)")
        else:
            declaration, shape = dummy(headers, p)
            self.add(p.name, declaration.replace(", value ::", ", intent(in) ::"), shape)
            self.actuals.append(p.name)

    def text(self, name, pointer):
        self.locals.append(f"    type(text_memory), target :: {name}_m")
        self.before.append(f"    call set_text({pointer}, {name}_m, {name})")

    def member(self, headers, field):
        """A member of the options that the call fills."""
        name, at = field.name, f"options_%{field.name}"
        shape = "(:)" if field.count else ""
        if is_text(field):
            self.add(name, "character(*), intent(in), optional ::", shape)
            if field.count:
                self.locals.append(f"    type(text_memory), allocatable, target :: {name}_m(:)")
                self.before.append(f"    call set_texts({at}, {name}_m, '{self.name}: {name}', {name})")
            else:
                self.text(name, at)
            return
        kind = {"logical(c_bool)": "logical", "integer(c_int64_t)": "integer(c_int)"}.get(
            value_type(headers, field), value_type(headers, field))
        self.add(name, f"{kind}, intent(in), optional ::", shape)
        if field.count:
            self.before += [f"    if (present({name})) then",
                            f"      if (has_room('{self.name}: {name}', size({name}), {field.count})) "
                            f"{at}(:size({name})) = {name}", "    end if"]
        else:
            self.before.append(f"    if (present({name})) {at} = {name}")

    def lines(self, headers):
        function, result = self.function, self.function.result
        is_subroutine = result.kind == "void" or reports_status(function)
        has_status = not function.name.startswith("mix_error")
        names = self.names + (["stat", "errmsg"] if has_status else [])
        word = "subroutine" if is_subroutine else "function"
        yield f"  {word} {self.name}({', '.join(names)})" + ("" if is_subroutine else " result(res_)")
        yield from self.dummies + (STATUS if has_status else [])
        if not is_subroutine:
            kind = "character(:), allocatable" if is_text(result) else value_type(headers, result)
            yield f"    {kind} :: res_"
        elif result.kind != "void":
            yield "    integer(c_int) :: status_"
        yield from self.locals + self.before
        yield self.call()
        if has_status:
            status = ", status_" if reports_status(function) else ""
            yield "    if (present(errmsg)) call take_message(errmsg)"
            yield f"    call take_error(stat, present(errmsg){status})"
        yield f"  end {word} {self.name}"

    def call(self):
        call = f"{self.binding}({', '.join(self.actuals)})"
        if self.function.result.kind == "void":
            return f"    call {call}"
        if reports_status(self.function):
            return f"    status_ = {call}"
        return f"    res_ = text_of({call})" if is_text(self.function.result) else f"    res_ = {call}"


def plain_call(headers, function):
    call = Call(function.name, function)
    call.binding = binding_name(headers, function)
    for p in function.parameters:
        call.argument(headers, p)
    return call


def keyword_call(headers, macro):
    """C's macro: the function's own arguments, then the members that have a place, then the others."""
    function = headers.functions[macro.function]
    call = Call(macro.name, function)
    call.binding = binding_name(headers, function)
    for p in function.parameters[:-1]:
        call.argument(headers, p)
    call.locals.append(f"    type({macro.options}) :: options_")
    fields = {f.name: f for f in headers.structs[macro.options]}
    if struct_has_size(headers, macro.options):
        del fields["size"]
    for name in [*macro.order, *[name for name in fields if name not in macro.order]]:
        if name != "reserved":
            call.member(headers, fields[name])
    call.actuals.append("options_")
    return call


def module(headers, unmapped, arrays):
    calls = [plain_call(headers, f) for f in headers.functions.values() if is_wrapped(headers, f)]
    for macro in headers.macros.values():
        if macro.name in headers.functions:
            unmapped.append((macro.name + "(...)", f"a function has this name: call {macro.function}"))
        else:
            calls.append(keyword_call(headers, macro))
    yield "! Mixtape's functions with Fortran's arguments. Made by fortran/generate.py."
    yield from ["module mixtape_calls", "  use mixtape_c", "  use mixtape_support", "  use mixtape_shapes",
                "  implicit none", "  public"]
    yield ("  private :: text_memory, set_text, set_texts, make_texts, has_room, take_message, take_error, "
           "text_of, record_error, tensor_of, read_tensor")
    for function in headers.functions.values():
        if is_wrapped(headers, function):
            yield f"  private :: {binding_name(headers, function)}"
    yield from arrays.interfaces()
    yield "contains"
    for call in calls:
        yield from call.lines(headers)
    yield from arrays.procedures()
    yield "end module mixtape_calls"
