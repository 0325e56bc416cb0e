"""Parse schemas in Spark's DDL (`id STRING NOT NULL, tags ARRAY<STRING>`) without Spark."""

import re
from typing import NamedTuple

from headrace.model.nearest_names import guess

FIELDS_MAX = 2_000
NESTING_MAX = 20

_PLAIN = (
    *("string", "binary", "boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
    *("float", "real", "double", "decimal", "dec", "numeric", "date", "timestamp", "timestamp_ntz", "timestamp_ltz"),
    *("char", "varchar", "variant"),
)
_NESTED = ("array", "map", "struct")
_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[<>(),:]|[0-9]+)|"
    r"(?P<string>'(?:[^'\\]|\\.)*'))"
)


class SchemaField(NamedTuple):
    name: str
    type: str
    """In Spark's DDL."""
    is_required: bool


def parse_schema(text: str) -> tuple[SchemaField, ...]:
    """Return the top-level fields; ValueError says what is wrong."""
    return _Parser(text).schema()


def ddl_of(fields: tuple[SchemaField, ...], separator: str = " ") -> str:
    """Return DDL for Spark. NOT NULL is left out, because Spark does not check it; the compiled query does."""
    return ", ".join(f"`{field.name.replace('`', '``')}`{separator}{field.type}" for field in fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def schema(self) -> tuple[SchemaField, ...]:
        fields = self._fields(end="", separator="")
        names = [field.name.lower() for field in fields]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'field "{name}" is defined twice')
        return fields

    def _fields(self, *, end: str, separator: str, depth: int = 0) -> tuple[SchemaField, ...]:
        fields = []
        while True:
            fields.append(self._field(separator, depth))
            if len(fields) > FIELDS_MAX:
                raise ValueError(f"more than {FIELDS_MAX} fields")
            sign = self._next()
            if sign == end:
                return tuple(fields)
            if sign != ",":
                raise ValueError(f'a comma is needed before "{sign}"' if sign else "the type is not complete")

    def _field(self, separator: str, depth: int) -> SchemaField:
        name = self._next()
        if not name or name in "<>(),:":
            raise ValueError(f'a field name is needed, not "{name}"' if name else "a field name is missing at the end")
        if separator and self._peek() == separator:
            self._next()
        kind = self._type(name, depth)
        is_required = False
        if self._peek().lower() == "not":
            self._next()
            if self._next().lower() != "null":
                raise ValueError(f'field "{name}": write NOT NULL')
            is_required = True
        if self._peek().lower() == "comment":
            self._next()
            self._next()
        return SchemaField(name.strip("`").replace("``", "`"), kind, is_required)

    def _type(self, name: str, depth: int) -> str:
        if depth > NESTING_MAX:
            raise ValueError(f"types are nested deeper than {NESTING_MAX}")
        kind = self._next().lower()
        if kind in _NESTED:
            return self._nested(kind, name, depth)
        if not kind or kind in ",<>(":
            raise ValueError(f'field "{name}" has no type: write `{name} STRING` for example')
        if kind not in _PLAIN:
            raise ValueError(f'field "{name}": unknown type "{kind}": {guess(kind, (*_PLAIN, *_NESTED))}')
        if self._peek() == "(":
            sizes = [self._next()]
            while sizes[-1] != ")":
                sizes.append(self._next())
                if not sizes[-1]:
                    raise ValueError(f'field "{name}": a ")" is missing')
            return kind + "".join(sizes)
        return kind

    def _nested(self, kind: str, name: str, depth: int) -> str:
        if self._next() != "<":
            raise ValueError(f'field "{name}": {kind.upper()} needs its type in <>, as in ARRAY<STRING>')
        if kind == "struct":
            inner = self._fields(end=">", separator=":", depth=depth + 1)
            return f"struct<{ddl_of(inner, separator=': ')}>"
        types = [self._type(name, depth + 1)]
        if kind == "map":
            if self._next() != ",":
                raise ValueError(f'field "{name}": MAP needs two types, as in MAP<STRING, INT>')
            types.append(self._type(name, depth + 1))
        if self._next() != ">":
            raise ValueError(f'field "{name}": a ">" is missing')
        return f"{kind}<{', '.join(types)}>"

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._position += 1
        return token


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(
                f'this is not a schema at "{text[position : position + 20].strip()}": write `id STRING, n INT`'
            )
        tokens.append(found[0].strip())
        position = found.end()
    return tokens
