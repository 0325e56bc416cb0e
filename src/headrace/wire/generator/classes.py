"""Generate the classes of a message: frozen, slotted, keyword-only, with the fields of all versions and their
defaults.
"""

from headrace.wire.generator.layouts import is_nullable
from headrace.wire.schemas.notation import Default, Field, Message, Primitive, Struct


def structs_of(message: Message) -> dict[str, tuple[Field, ...]]:
    """Return class name -> fields, inner structs before those that contain them."""
    structs: dict[str, tuple[Field, ...]] = {}
    _collect(message, message.name, message.fields, structs)
    return structs


def _collect(message: Message, name: str, fields: tuple[Field, ...], structs: dict[str, tuple[Field, ...]]) -> None:
    for field in fields:
        if isinstance(field.type, Struct):
            _collect(message, message.name + field.type.name, field.type.fields, structs)
    if structs.setdefault(name, fields) != fields:
        raise ValueError(f"{name} stands for two different structs: name one of them (named=...)")


def class_lines(message: Message) -> list[str]:
    lines: list[str] = []
    shared = {
        message.name + field.type.name
        for fields in structs_of(message).values()
        for field in fields
        if isinstance(field.type, Struct) and not field.repeated and field.default is ...
    }
    for name, fields in structs_of(message).items():
        lines += ["", "", "@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}:"]
        lines += [f"    {field.name}: {_annotation(message, field)} = {_default(message, field)}" for field in fields]
        if not fields:
            lines.append("    pass")
        if name in shared:
            lines += ["", "", f"{default_constant(name)} = {name}()"]
    return lines


def default_constant(struct: str) -> str:
    """Return the name of the instance whose fields all have their defaults."""
    return f"_DEFAULT_{struct}"


def _annotation(message: Message, field: Field) -> str:
    base = field.type.python if isinstance(field.type, Primitive) else message.name + field.type.name
    if field.repeated:
        base = f"tuple[{base}, ...]"
    return f"{base} | None" if is_nullable(field) else base


def _default(message: Message, field: Field) -> str:
    if isinstance(field.type, Struct) and not field.repeated and field.default is ...:
        return default_constant(message.name + field.type.name)
    return literal(field.type, field.repeated, field.default)


def literal(type_: object, repeated: bool, default: Default) -> str:
    """Return a default as a Python literal."""
    if default is None:
        return "None"
    if repeated:
        return "()"
    if default is ...:
        assert isinstance(type_, Primitive)
        return type_.zero
    if isinstance(default, str):
        return f'"{default}"'
    return repr(default)
