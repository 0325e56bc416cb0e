"""Find mistakes in SQL without Spark: quotes, brackets, commas, statements, and missing views.

Spark's own parser finds other mistakes when the query is compiled; their lines are reported in the same way.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headrace.model.nearest_names import guess

QUERY_WORDS = ("select", "with", "from", "(")
_OPENING = {"(": ")", "[": "]"}
_CLAUSES = {"from", "where", "group", "having", "order", "limit", "union", "join", "on", "window"}
_NO_VIEWS = {"lateral", "values", "stream", "unnest"}
_FROM_IN_CALLS = {"extract", "trim", "substring", "substr", "overlay", "position"}
_CREATED = {"table", "view", "flow"}
_CREATE_WORDS_MAX = 8
"""Greatest distance from CREATE to the word that says what is created."""
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)"
    r"|(?P<string>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<name>`(?:[^`]|``)+`|[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9][A-Za-z0-9_.]*)"
    r"|(?P<open>/\*|'|\"|`)"
    r"|(?P<sign>[^\s])",
    re.DOTALL,
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int
    """Counted from 0, within the text."""

    @property
    def word(self) -> str:
        return self.text.strip("`").lower()


class Mistake(NamedTuple):
    line: int
    text: str


def check_query(text: str, views: Iterable[str]) -> list[Mistake]:
    """Check one query that reads `views`; the lines are counted from 0."""
    tokens = list(_tokens(text))
    mistakes = _common(tokens)
    if mistakes:
        return mistakes
    if not tokens:
        return [Mistake(0, "there is no query: write `SELECT ... FROM input`")]
    if tokens[0].word not in QUERY_WORDS:
        return [Mistake(tokens[0].line, f'a query begins with SELECT or WITH, not with "{tokens[0].text}"')]
    return _unknown_views(tokens, {view.lower() for view in views})


def check_script(text: str) -> list[Mistake]:
    """Check a file with several statements; return the first mistake of each."""
    return [mistake for statement in _statements(text) for mistake in _common(statement)]


def created_things(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield what the statements of a file create: kind (table, view, flow), name, and line counted from 0."""
    for statement in _statements(text):
        kind = next((n for n, token in enumerate(statement[:_CREATE_WORDS_MAX]) if token.word in _CREATED), None)
        if kind is None or statement[0].word != "create":
            continue
        named = statement[kind + 1 :]
        if [token.word for token in named[:3]] == ["if", "not", "exists"]:
            named = named[3:]
        parts = [token.text.strip("`") for token in named[:1]]
        for dot, part in zip(named[1::2], named[2::2], strict=False):
            if dot.text != ".":
                break
            parts.append(part.text.strip("`"))
        if parts:
            yield statement[kind].word, ".".join(parts), statement[0].line


def statement_lines(text: str) -> list[int]:
    """Return the lines, counted from 0, in which statements begin: where the one before ended, blank lines included."""
    return [0, *(token.line for token in _tokens(text) if token.text == ";")]


def _statements(text: str) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in _tokens(text):
        if token.text == ";":
            yield statement
            statement = []
        else:
            statement.append(token)
    yield statement


def check_expression(text: str) -> list[Mistake]:
    """Check a single expression, such as the check of an expectation."""
    tokens = list(_tokens(text))
    if not tokens:
        return [Mistake(0, "there is no expression")]
    if tokens[0].word in ("select", "where"):
        return [Mistake(tokens[0].line, f'an expression is needed, such as `amount > 0`, without "{tokens[0].text}"')]
    return _common(tokens)


def _tokens(text: str) -> Iterator[Token]:
    line, position = 0, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", position, found.start())
        position = found.start()
        kind = str(found.lastgroup)
        if kind != "comment":
            yield Token(kind, found[0], line)


def _common(tokens: list[Token]) -> list[Mistake]:
    """Check quotes, brackets, commas and semicolons; only the first mistake, because it makes the rest uncertain."""
    awaited: list[tuple[str, Token]] = []
    for number, token in enumerate(tokens):
        following = tokens[number + 1] if number + 1 < len(tokens) else None
        if token.kind == "open":
            what = "comment" if token.text == "/*" else "quote"
            return [Mistake(token.line, f"a {what} is opened by {token.text} and never closed")]
        if token.text in _OPENING:
            awaited.append((_OPENING[token.text], token))
        elif token.text in _OPENING.values():
            if not awaited or awaited.pop()[0] != token.text:
                return [Mistake(token.line, f'there is a "{token.text}" too many')]
        elif token.text == ";" and following is not None:
            return [Mistake(following.line, "only one query is allowed: nothing may follow the semicolon")]
        elif token.text == "," and _ends_list(following):
            shown = following.text if following else "the end"
            return [Mistake(token.line, f"there is a comma too many before {shown}")]
    if awaited:
        closing, opened = awaited[-1]
        return [Mistake(opened.line, f'this "{opened.text}" is never closed: a "{closing}" is missing')]
    return []


def _ends_list(token: Token | None) -> bool:
    return token is None or token.text in (")", ",", ";") or (token.kind == "name" and token.text.lower() in _CLAUSES)


def _unknown_views(tokens: list[Token], views: set[str]) -> list[Mistake]:
    """Return names after FROM and JOIN that are neither a view nor defined by WITH; dotted names belong to the
    catalog.
    """
    known = views | {
        tokens[n].word
        for n in range(len(tokens) - 2)
        if tokens[n].kind == "name" and tokens[n + 1].word == "as" and tokens[n + 2].text == "("
    }
    mistakes, reads = [], False
    for number, token in enumerate(tokens[:-1]):
        if token.word not in ("from", "join") or _is_from_in_call(tokens, number):
            continue
        named, behind = tokens[number + 1], tokens[number + 2].text if number + 2 < len(tokens) else ""
        if named.kind != "name" or named.word in _NO_VIEWS or behind in ("(", "."):
            continue
        reads = reads or named.word in known
        if named.word not in known:
            mistakes.append(Mistake(named.line, f'the view "{named.text}" does not exist: {guess(named.word, views)}'))
    if not mistakes and not reads and not any(token.kind == "name" and token.word in views for token in tokens):
        mistakes.append(Mistake(tokens[0].line, f"the query reads none of its sources: {', '.join(sorted(views))}"))
    return mistakes


def _is_from_in_call(tokens: list[Token], number: int) -> bool:
    """Return whether FROM reads no view, as in `extract(hour FROM at)` and `a IS DISTINCT FROM b`."""
    if number and tokens[number - 1].word == "distinct" and number > 1 and tokens[number - 2].word in ("is", "not"):
        return True
    depth = 0
    for place in range(number - 1, 0, -1):
        if tokens[place].text == ")":
            depth += 1
        elif tokens[place].text == "(":
            if depth == 0:
                return tokens[place - 1].word in _FROM_IN_CALLS
            depth -= 1
    return False
