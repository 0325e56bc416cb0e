"""Filters of records: a small expression language that is parsed once and cannot run for long.

`value.amount > 100 and not headers.source = "test"`: fields of key, value and headers, comparisons, `and`, `or`, `not`,
and text search by `contains`. There are no loops, calls or regular expressions, so the time is bounded by the terms of
the filter and the bytes of the record.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.client.types import ConsumerRecord
from headrace.manager.limits import (
    FILTER_DEPTH_MAX,
    FILTER_LENGTH_MAX,
    FILTER_TERMS_MAX,
    FILTERED_VALUE_BYTES_MAX,
)
from headrace.model.nearest_names import guess


class FilterError(ValueError):
    """The filter is not valid; the message says where and what to write."""


class Missing:
    """The value of a field that a record does not have: no comparison with it is true."""


MISSING = Missing()
Term = Callable[["FilteredRecord"], Any]
Predicate = Callable[[ConsumerRecord], bool]


class FilteredRecord:
    """A record whose key and value are read as JSON at most once."""

    __slots__ = ("_key", "_value", "record")

    def __init__(self, record: ConsumerRecord) -> None:
        self.record = record
        self._key: Any = MISSING
        self._value: Any = MISSING

    def key(self) -> Any:
        if self._key is MISSING:
            self._key = content(self.record.key)
        return self._key

    def value(self) -> Any:
        if self._value is MISSING:
            self._value = content(self.record.value)
        return self._value

    def texts(self) -> list[str]:
        """Return everything that text search looks at."""
        parts = [self.record.key, self.record.value, *(each for _, each in self.record.headers)]
        names = [name for name, _ in self.record.headers]
        return [*names, *(part.decode(errors="replace") for part in parts if part is not None)]


def content(data: bytes | None) -> Any:
    """Return JSON as its value, other bytes as text, and None for null."""
    if data is None:
        return None
    if len(data) <= FILTERED_VALUE_BYTES_MAX:
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            pass
    return data.decode(errors="replace")


class FilterToken(NamedTuple):
    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"""\s+
    | (?P<number>-?\d{1,18}(?:\.\d{1,18})?(?![\w.]))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | (?P<sign>==|!=|<=|>=|=|<|>|\(|\)|\[|\]|\.|,)
    """,
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
ROOTS = ("key", "value", "headers", "offset", "partition", "timestamp", "topic", "text")
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WORDS = ("contains", "startswith", "endswith", "in")
_PARTS = {"name": "a name", "text": "a quoted name", "number": "an index"}
CONSTANTS = {"true": True, "false": False, "null": None}


def parse_filter(text: str) -> Predicate:
    """Return the function that tells whether a record matches; FilterError says what is wrong with the text."""
    if len(text) > FILTER_LENGTH_MAX:
        raise FilterError(f"a filter may have {FILTER_LENGTH_MAX} characters, this one has {len(text)}")
    term = FilterParser(tokens(text)).parse()
    return lambda record: term(FilteredRecord(record)) is True


def tokens(text: str) -> list[FilterToken]:
    found: list[FilterToken] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise FilterError(f'"{text[position : position + 10]}" at character {position + 1} cannot be read')
        if match.lastgroup is not None:
            found.append(FilterToken(match.lastgroup, match[0], position))
        position = match.end()
    if len(found) > FILTER_TERMS_MAX:
        raise FilterError(f"a filter may have {FILTER_TERMS_MAX} terms, this one has {len(found)}: make it shorter")
    return found


class FilterParser:
    """Parses `or`, `and`, `not`, comparisons and operands, from the loosest to the tightest."""

    def __init__(self, found: Sequence[FilterToken]) -> None:
        self._tokens = found
        self._next = 0
        self._depth = 0

    def parse(self) -> Term:
        if not self._tokens:
            raise FilterError('the filter is empty: write it as in value.amount > 100 or text contains "error"')
        term = self._either()
        if self._next < len(self._tokens):
            raise self._unexpected("and, or, or the end of the filter")
        return term

    def _either(self) -> Term:
        terms = [self._both()]
        while self._take("name", "or"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else lambda record: any(term(record) is True for term in terms)

    def _both(self) -> Term:
        terms = [self._condition()]
        while self._take("name", "and"):
            terms.append(self._condition())
        return terms[0] if len(terms) == 1 else lambda record: all(term(record) is True for term in terms)

    def _condition(self) -> Term:
        self._depth += 1
        if self._depth > FILTER_DEPTH_MAX:
            raise FilterError(f"parentheses and not may be nested {FILTER_DEPTH_MAX} times: write the filter flatter")
        try:
            if self._take("name", "not"):
                inner = self._condition()
                return lambda record: inner(record) is not True
            if self._take("sign", "("):
                inner = self._either()
                self._need(")")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Term:
        left = self._operand()
        token = self._peek()
        if token is not None and token.kind == "sign" and token.text in COMPARISONS:
            self._next += 1
            return compared(COMPARISONS[token.text], left, self._operand())
        if token is not None and token.kind == "name" and token.text in WORDS:
            self._next += 1
            if token.text == "in":
                return self._one_of(left)
            return searched(token.text, left, self._operand())
        return left

    def _one_of(self, left: Term) -> Term:
        self._need("[")
        choices = [self._operand()]
        while self._take("sign", ","):
            choices.append(self._operand())
        self._need("]")
        same = [compared(operator.eq, left, choice) for choice in choices]
        return lambda record: any(each(record) for each in same)

    def _operand(self) -> Term:
        token = self._peek()
        if token is None:
            raise self._unexpected("a field or a value")
        self._next += 1
        match token.kind:
            case "number":
                number = float(token.text) if "." in token.text else int(token.text)
                return lambda _record: number
            case "text":
                text = _unquoted(token.text)
                return lambda _record: text
            case "name" if token.text in CONSTANTS:
                constant = CONSTANTS[token.text]
                return lambda _record: constant
            case "name":
                return self._field(token)
        self._next -= 1
        raise self._unexpected("a field or a value")

    def _field(self, token: FilterToken) -> Term:
        if token.text not in ROOTS:
            raise FilterError(
                f'"{token.text}" at character {token.at + 1} is not a field: {guess(token.text, ROOTS)}; '
                'text is written in quotes'
            )  # fmt: skip
        path: list[str | int] = []
        while True:
            if self._take("sign", "."):
                path.append(self._part("name"))
            elif self._take("sign", "["):
                path.append(self._part("text", "number"))
                self._need("]")
            else:
                return field(token.text, path)

    def _part(self, *kinds: str) -> str | int:
        token = self._peek()
        if token is None or token.kind not in kinds:
            raise self._unexpected(" or ".join(_PARTS[kind] for kind in kinds))
        self._next += 1
        if token.kind != "number":
            return token.text if token.kind == "name" else _unquoted(token.text)
        if not token.text.isdecimal():
            raise FilterError(f'"{token.text}" at character {token.at + 1} is not an index: use 0 and up')
        return int(token.text)

    def _peek(self) -> FilterToken | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, kind: str, text: str) -> bool:
        token = self._peek()
        if token is None or (token.kind, token.text) != (kind, text):
            return False
        self._next += 1
        return True

    def _need(self, sign: str) -> None:
        if not self._take("sign", sign):
            raise self._unexpected(f'"{sign}"')

    def _unexpected(self, wanted: str) -> FilterError:
        token = self._peek()
        if token is None:
            return FilterError(f"the filter ends where {wanted} is expected")
        return FilterError(f'"{token.text}" at character {token.at + 1} stands where {wanted} is expected')


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1], flags=re.DOTALL)


def field(root: str, path: Sequence[str | int]) -> Term:
    """Return the function that reads a field of a record."""
    if root == "key":
        return lambda record: inside(record.key(), path)
    if root == "value":
        return lambda record: inside(record.value(), path)
    if root == "headers":
        return lambda record: inside(
            {name: None if each is None else each.decode(errors="replace") for name, each in record.record.headers},
            path,
        )
    if path:
        raise FilterError(f'"{root}" has no fields: only key, value and headers have')
    if root == "text":
        return lambda record: record.texts()
    read = operator.attrgetter(root)
    return lambda record: read(record.record)


def inside(value: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        match value, part:
            case dict(), str() if part in value:
                value = value[part]
            case list(), int() if part < len(value):
                value = value[part]
            case _:
                return MISSING
    return value


def compared(compare: Callable[[Any, Any], bool], left: Term, right: Term) -> Term:
    """Return the comparison; values of different kinds are unequal and not ordered."""

    def result(record: FilteredRecord) -> bool:
        one, other = left(record), right(record)
        if one is MISSING or other is MISSING:
            return False
        if isinstance(one, bool) is not isinstance(other, bool):  # in JSON, true is not 1
            return compare is operator.ne
        try:
            return compare(one, other) is True
        except TypeError:
            return False

    return result


def searched(word: str, left: Term, right: Term) -> Term:
    """Return the search of a text in a field, in the items of a list, or in the whole record."""

    def result(record: FilteredRecord) -> bool:
        where, wanted = left(record), right(record)
        if isinstance(where, str) and isinstance(wanted, str):
            return _SEARCHES[word](where, wanted)
        if isinstance(where, list):
            return any(
                _SEARCHES[word](each, wanted) if isinstance(each, str) and isinstance(wanted, str) else each == wanted
                for each in where
            )
        return False

    return result


_SEARCHES: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda where, wanted: wanted in where,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
