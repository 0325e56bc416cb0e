"""Names of the generated functions and struct formats."""

from collections.abc import Iterator, Sequence

from headrace.wire.generator.layouts import Layout, message_layout
from headrace.wire.schemas.notation import Message, Primitive

LETTERS = {
    "bool": "F",
    "int8": "B",
    "int16": "H",
    "uint16": "U",
    "int32": "I",
    "uint32": "W",
    "int64": "Q",
    "float64": "D",
    "uuid": "T",
}
EMPTY_TAGS = Primitive(name="no tags", python="", zero="", format="x", size=1)
"""When writing, the zero byte of an empty tagged section can be part of the struct format before it."""


def struct_constant(types: Sequence[Primitive]) -> str:
    """Return the name of the constant that holds the struct of these types."""
    if len(types) == 1:
        return types[0].name.upper()
    return "_" + "".join("X" if type_ is EMPTY_TAGS else LETTERS[type_.name] for type_ in types)


class FunctionNames:
    """Every layout of a message by the first version it appears in."""

    def __init__(self, message: Message) -> None:
        self._suffixes: dict[Layout, str] = {}
        for version in range(message.versions.first, message.versions.last + 1):
            for layout in _nested(message_layout(message, version)):
                self._suffixes.setdefault(layout, f"{_snake(layout.struct, message)}_v{version}")

    def layouts(self) -> list[Layout]:
        """Return the layouts, inner ones first."""
        return list(self._suffixes)

    def reader(self, layout: Layout) -> str:
        return f"_read_{self._suffixes[layout]}"

    def writer(self, layout: Layout) -> str:
        return f"_write_{self._suffixes[layout]}"


def _nested(layout: Layout) -> Iterator[Layout]:
    for member in (*layout.members, *layout.tagged):
        if isinstance(member.type, Layout):
            yield from _nested(member.type)
    yield layout


def _snake(struct: str, message: Message) -> str:
    rest = struct.removeprefix(message.name)
    return message.kind.lower() + "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in rest)
