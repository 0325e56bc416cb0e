"""Generate the functions that write each layout."""

from headrace.wire.generator.classes import default_constant, literal
from headrace.wire.generator.layouts import Layout, Member, is_fixed
from headrace.wire.generator.names import EMPTY_TAGS, FunctionNames, struct_constant
from headrace.wire.generator.text import LINE_LENGTH_MAX, call, signature
from headrace.wire.schemas.notation import Primitive


def writer_lines(layout: Layout, names: FunctionNames) -> list[str]:
    lines = ["", "", *signature(names.writer(layout), f"write: Write, message: {layout.struct}", "None")]
    run: list[Member] = []
    for member in layout.members:
        if is_fixed(member):
            run.append(member)
            continue
        lines += _fixed_run(run, with_tags=False)
        run = []
        lines.append(f"    {_statement(member, layout.flexible, names, 'write')}")
    no_tags_follow = layout.flexible and not layout.tagged
    lines += _fixed_run(run, with_tags=no_tags_follow)
    if layout.tagged:
        lines += _tagged(layout, names)
    elif no_tags_follow and not run:
        lines.append("    write(NO_TAGS)")
    elif not layout.members:
        lines.append("    pass")
    return lines


def run_types(run: list[Member], with_tags: bool) -> list[Primitive]:
    types = [member.type for member in run if isinstance(member.type, Primitive)]
    return [*types, EMPTY_TAGS] if with_tags else types


def _fixed_run(run: list[Member], with_tags: bool) -> list[str]:
    if not run:
        return []
    pack = f"{struct_constant(run_types(run, with_tags))}.pack"
    values = [_fixed_value(member) for member in run]
    line = f"    write({pack}({', '.join(values)}))"
    return [line] if len(line) <= LINE_LENGTH_MAX else ["    write(", *call(pack, values, "", 2), "    )"]


def _fixed_value(member: Member) -> str:
    value = f"message.{member.name}"
    return f"uuid({value})" if isinstance(member.type, Primitive) and member.type.name == "uuid" else value


def _tagged(layout: Layout, names: FunctionNames) -> list[str]:
    lines = ["    tagged: list[tuple[int, bytes]] = []"]
    for member in layout.tagged:
        lines += [
            f"    if {_differs_from_default(member)}:",
            "        parts: list[Buffer] = []" if member is layout.tagged[0] else "        parts = []",
            f"        {_statement(member, layout.flexible, names, 'parts.append')}",
            f'        tagged.append(({member.tag}, b"".join(parts)))',
        ]
    return [*lines, "    write_tags(write, tagged)"]


def _differs_from_default(member: Member) -> str:
    value = f"message.{member.name}"
    if isinstance(member.type, Layout) and not member.repeated:
        return f"{value} != {default_constant(member.type.struct)}"
    default = literal(member.type, member.repeated, member.default)
    if default == "None":
        return f"{value} is not None"
    if default in ("()", "False", "0", '""'):
        return value
    return f"{value} != {default}"


def _statement(member: Member, flexible: bool, names: FunctionNames, write: str) -> str:
    value = f"message.{member.name}"
    if member.nullable_elsewhere:
        value = f"present({value})"
    form = ("compact_" if flexible else "") + ("nullable_" if member.nullable else "")
    if member.repeated:
        if isinstance(member.type, Primitive) and member.type.python == "int":
            return f"write_{form}numbers({write}, {value}, {member.type.name.upper()})"
        return f"write_{form}array({write}, {value}, {_element_writer(member, flexible, names)})"
    if isinstance(member.type, Layout):
        if member.nullable:
            return f"write_nullable_struct({write}, {value}, {names.writer(member.type)})"
        return f"{names.writer(member.type)}({write}, {value})"
    if member.type.size == 0:
        return f"write_{form}{_written_as(member.type)}({write}, {value})"
    return f"{write}({member.type.name.upper()}.pack({_fixed_value(member)}))"


def _element_writer(member: Member, flexible: bool, names: FunctionNames) -> str:
    if isinstance(member.type, Layout):
        return names.writer(member.type)
    if member.type.size:
        return f"write_{member.type.name}"
    return f"write_{'compact_' if flexible else ''}{_written_as(member.type)}"


def _written_as(type_: Primitive) -> str:
    """Return the written type: records are read as a view and written like any other bytes."""
    return "bytes" if type_.name == "records" else type_.name
