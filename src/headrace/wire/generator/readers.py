"""Generate the functions that read each layout."""

from headrace.wire.generator.classes import default_constant, literal
from headrace.wire.generator.layouts import Layout, Member, element_bytes_min, is_fixed
from headrace.wire.generator.names import FunctionNames, struct_constant
from headrace.wire.generator.text import call, signature, unpacking
from headrace.wire.schemas.notation import Primitive


def reader_lines(layout: Layout, names: FunctionNames) -> list[str]:
    lines = [
        "",
        "",
        *signature(names.reader(layout), "body: Buffer, position: int", f"tuple[{layout.struct}, int]"),
    ]
    run: list[Member] = []
    for member in layout.members:
        if is_fixed(member):
            run.append(member)
            continue
        lines += _fixed_run(run)
        run = []
        lines += _assignment(member, layout.flexible, names, 1)
    lines += _fixed_run(run)
    if layout.tagged:
        lines += _tagged(layout, names)
    elif layout.flexible:
        lines.append("    position = skip_tags(body, position) if body[position] else position + 1")
    fields = [f"{member.name}={member.name}" for member in (*layout.members, *layout.tagged)]
    lines += call(f"message = {layout.struct}", fields, "", 1)
    return [*lines, "    return message, position"]


def _fixed_run(run: list[Member]) -> list[str]:
    if not run:
        return []
    types = [member.type for member in run if isinstance(member.type, Primitive)]
    size = sum(type_.size for type_ in types)
    source = f"{struct_constant(types)}.unpack_from(body, position)"
    return [*unpacking([member.name for member in run], source, 1), f"    position += {size}"]


def _tagged(layout: Layout, names: FunctionNames) -> list[str]:
    lines = [f"    {_tag_default(member, names)}" for member in layout.tagged]
    lines += [
        "    tag_count, position = read_tag_count(body, position)",
        "    for _ in range(tag_count):",
        "        tag, position, stop = read_tag(body, position)",
    ]
    for index, member in enumerate(layout.tagged):
        lines.append(f"        {'elif' if index else 'if'} tag == {member.tag}:")
        lines += _assignment(member, layout.flexible, names, 3)
    return [*lines, "        else:", "            position = stop", "        end_tag(position, stop)"]


def _tag_default(member: Member, names: FunctionNames) -> str:
    if isinstance(member.type, Layout) and not member.repeated:
        return f"{member.name} = {default_constant(member.type.struct)}"
    python = member.type.python if isinstance(member.type, Primitive) else member.type.struct
    annotation = f"tuple[{python}, ...]" if member.repeated else python
    if member.nullable:
        annotation += " | None"
    return f"{member.name}: {annotation} = {literal(member.type, member.repeated, member.default)}"


def _assignment(member: Member, flexible: bool, names: FunctionNames, depth: int) -> list[str]:
    function, *further = _reading(member, flexible, names)
    return call(f"{member.name}, position = {function}", ["body", "position", *further], "", depth)


def _reading(member: Member, flexible: bool, names: FunctionNames) -> tuple[str, ...]:
    """Return the function that reads the member, and its arguments after the bytes and the position."""
    form = ("compact_" if flexible else "") + ("nullable_" if member.nullable else "")
    if member.repeated:
        if isinstance(member.type, Primitive) and member.type.python == "int":
            return f"read_{form}numbers", member.type.name.upper()
        least = element_bytes_min(member, flexible)
        return f"read_{form}array", str(least), _element_reader(member, flexible, names)
    if isinstance(member.type, Layout):
        if member.nullable:
            return "read_nullable_struct", names.reader(member.type)
        return (names.reader(member.type),)
    if member.type.size == 0:
        return (f"read_{form}{member.type.name}",)
    if member.type.name in ("bool", "uuid"):
        return (f"read_{member.type.name}",)
    return "read_number", member.type.name.upper()


def _element_reader(member: Member, flexible: bool, names: FunctionNames) -> str:
    if isinstance(member.type, Layout):
        return names.reader(member.type)
    if member.type.size:
        return f"read_{member.type.name}"
    return f"read_{'compact_' if flexible else ''}{member.type.name}"
