"""Sizes and offsets of the structs: as C's compiler and as Fortran's see them."""

from bindings import struct_has_size


def numbers(headers):
    """(struct, member or None, what the generator takes its place to be)"""
    for struct in headers.structs:
        size, _, offsets = headers.layout(struct)
        yield struct, None, size
        for field, offset in zip(headers.structs[struct], offsets):
            yield struct, field.name, offset


def c_header(headers):
    """Rows of a table: LAYOUT_SIZE(struct, expected) and LAYOUT_MEMBER(struct, member, expected)."""
    yield "/* Made by fortran/generate.py: the layouts that the Fortran modules were made for. */"
    for struct, member, expected in numbers(headers):
        yield (f"LAYOUT_MEMBER({struct}, {member}, {expected})" if member
               else f"LAYOUT_SIZE({struct}, {expected})")


def fortran(headers):
    """layout_numbers gives the same numbers in the same order, from Fortran's compiler."""
    count = sum(1 for _ in numbers(headers))
    yield "! Made by fortran/generate.py: what Fortran's compiler makes of C's structs."
    yield from ["module mixtape_layouts", "  use mixtape_c", "  implicit none", "contains"]
    for struct in headers.structs:
        yield from fill(headers, struct)
    yield from ["  subroutine layout_numbers(numbers) bind(C)",
                f"    integer(c_size_t), intent(out) :: numbers({count})", "    integer :: at", "    at = 1"]
    for struct in headers.structs:
        length = 1 + len(headers.structs[struct])
        yield f"    call of_{struct}(numbers(at:at + {length - 1}))"
        yield f"    at = at + {length}"
    yield "  end subroutine layout_numbers"
    yield from sizes(headers)
    yield "end module mixtape_layouts"


def fill(headers, struct):
    members = [field.name for field in headers.structs[struct]]
    yield f"  subroutine of_{struct}(numbers)"
    yield f"    integer(c_size_t), intent(out) :: numbers({1 + len(members)})"
    yield f"    type({struct}), target :: x"
    yield "    integer(c_intptr_t) :: start"
    yield "    start = transfer(c_loc(x), start)"
    yield "    numbers(1) = c_sizeof(x)"
    for at, member in enumerate(members, 2):
        yield f"    numbers({at}) = transfer(c_loc(x%{member}), start) - start"
    yield f"  end subroutine of_{struct}"


def sizes(headers):
    """Is the member `size` of every new struct of options its size?"""
    yield "  integer(c_int) function sizes_are_initialised() bind(C) result(all_are)"
    structs = [name for name in headers.structs if struct_has_size(headers, name)]
    for struct in structs:
        yield f"    type({struct}) :: the_{struct}"
    yield "    all_are = 1"
    for struct in structs:
        yield f"    if (the_{struct}%size /= c_sizeof(the_{struct})) all_are = 0"
    yield "  end function sizes_are_initialised"
