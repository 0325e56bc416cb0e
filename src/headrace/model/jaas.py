"""Parsing of JAAS texts, in which Kafka's configs name users: a login module, `required`, options, and a semicolon."""

import re
from collections.abc import Mapping
from typing import NamedTuple

JAAS_LENGTH_MAX = 32_767
"""Characters of a text."""

_USER_PREFIX = "user_"
_MODULE = re.compile(
    r"\s*(?P<module>[A-Za-z_][\w.$]*)\s+(?P<flag>required|requisite|sufficient|optional)\b", re.IGNORECASE
)
_OPTION = re.compile(r'\s*(?P<name>[\w.-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s";=]+))', re.DOTALL)
_END = re.compile(r"\s*;\s*")


class LoginModule(NamedTuple):
    name: str
    options: Mapping[str, str]

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user: the options that begin with `user_`."""
        return {
            name.removeprefix(_USER_PREFIX): text
            for name, text in self.options.items()
            if name.startswith(_USER_PREFIX)
        }

    def __repr__(self) -> str:
        return f"LoginModule(name={self.name!r}, users={sorted(self.users)})"


def parse_jaas(text: str) -> LoginModule:
    """Parse a text with one login module; raise ValueError with the reason, without the text, which has secrets."""
    if len(text) > JAAS_LENGTH_MAX:
        raise ValueError(f"is {len(text)} characters long, at most {JAAS_LENGTH_MAX} are allowed")
    found = _MODULE.match(text)
    if found is None:
        raise ValueError('must look like: MODULE required user_alice="PASSWORD";')
    options: dict[str, str] = {}
    at = found.end()
    while (option := _OPTION.match(text, at)) is not None:
        if option["name"] in options:
            raise ValueError(f"has the option {option['name']} twice")
        quoted = option["quoted"]
        options[option["name"]] = option["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = option.end()
    end = _END.match(text, at)
    if end is None or end.end() != len(text):
        raise ValueError(f"is wrong from character {at + 1} on: options are NAME=VALUE, and a semicolon ends them")
    return LoginModule(found["module"].rpartition(".")[2], options)


def jaas_error(text: str) -> str | None:
    """Return the reason why a text is invalid, or None."""
    try:
        parse_jaas(text)
    except ValueError as wrong:
        return str(wrong)
    return None
