"""Sources of broker configs (.properties, TOML, environment, command line) and their precedence.

This module handles texts only; the command line reads the files. Every setting keeps its location for error messages.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from headrace.model.configs.broker import BROKER_CONFIGS
from headrace.model.configs.definition import ConfigError

ENVIRONMENT_PREFIX = "HEADRACE_"
ENVIRONMENT_RESERVED = frozenset(
    {
        "HEADRACE_BOOTSTRAP",
        "HEADRACE_CATALOG",
        "HEADRACE_CONFIG",
        "HEADRACE_NATIVE",
        "HEADRACE_PROFILE",
        "HEADRACE_PROFILE_FILE",
    }
)
"""Variables with this prefix that are not broker configs."""
SOURCE_TEXT_LENGTH_MAX = 1 << 20
"""Characters of a config file."""
TABLE_DEPTH_MAX = 16
"""Levels of nested TOML tables."""

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


class Setting(NamedTuple):
    """A config as written, with its location: `server.properties:12`, `--set` or `HEADRACE_NODE_ID`."""

    name: str
    text: str
    place: str
    written: str | None = None
    """The text before config providers replaced references; None if it has none."""

    def __repr__(self) -> str:
        return f"Setting(name={self.name!r}, place={self.place!r})"  # the text may be a secret


def parse_properties(text: str, place: str) -> list[Setting]:
    """Parse a Java .properties file: escapes, comments, continued lines, and `=`, `:` or a blank as separator."""
    _check_length(text, place)
    settings: list[Setting] = []
    for number, line in _logical_lines(text):
        at = f"{place}:{number}"
        name, rest = _split_key(line)
        settings.append(Setting(_unescaped(name, at), _unescaped(rest, at), at))
    return settings


def _check_length(text: str, place: str) -> None:
    if len(text) > SOURCE_TEXT_LENGTH_MAX:
        raise ConfigError(f"{place} has {len(text)} characters, but at most {SOURCE_TEXT_LENGTH_MAX} are read")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with the number of their first line; blank lines and comments are skipped."""
    joined: str | None = None
    begun_at = 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(" \t\f")
        if joined is None:
            if not line or line[0] in "#!":
                continue
            joined, begun_at = "", number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        yield begun_at, joined + line
        joined = None
    if joined:
        yield begun_at, joined


def _split_key(line: str) -> tuple[str, str]:
    """Split a line into key and value, still escaped: the key ends at the first unescaped `=`, `:` or blank."""
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    separator = _SEPARATOR.match(line, min(position, len(line)))
    assert separator is not None
    return line[:position], line[separator.end() :]


def _unescaped(text: str, place: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "\\" or position + 1 == len(text):
            parts.append(char)
            position += 1
            continue
        escaped = text[position + 1]
        if escaped == "u":
            digits = text[position + 2 : position + 6]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise ConfigError(f"{place}: \\u must be followed by four hexadecimal digits")
            parts.append(chr(int(digits, 16)))
            position += 6
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
            position += 2
    # Java writes characters outside the basic plane as two \\u escapes, a surrogate pair.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_toml(text: str, place: str) -> list[Setting]:
    """Parse a TOML file; the names of nested tables are joined with dots."""
    import tomllib  # most brokers start without a TOML file

    _check_length(text, place)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        found = re.search(r"at line (\d+)", str(wrong))
        line = int(found[1]) if found else text.count("\n") + 1  # otherwise "at end of document"
        raise ConfigError(f"{place}:{line}: this is not TOML: {wrong}") from None
    return [
        Setting(name, value, f"{place}:{line}" if line else place)
        for name, value in _flattened(document, "", place, TABLE_DEPTH_MAX)
        for line in (_line_of(text, name),)
    ]


def _flattened(table: Mapping[str, object], prefix: str, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth == 0:
        raise ConfigError(f"{place} has more than {TABLE_DEPTH_MAX} nested tables")
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _flattened(value, f"{name}.", place, depth - 1)
        else:
            yield name, _toml_text(name, value, place)


def _toml_text(name: str, value: object, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ",".join(str(item) for item in value)
    raise ConfigError(f'{place}: config "{name}" must be a string, a number, true, false or a list of strings')


def _line_of(text: str, name: str) -> int | None:
    """Guess the line of a setting: the first line that starts with the longest suffix of its name."""
    parts = name.split(".")
    for start in range(len(parts)):
        ending = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in parts[start:])
        found = re.search(rf"(?m)^\s*[\"']?{ending}[\"']?\s*=", text)
        if found:
            return text.count("\n", 0, found.end()) + 1
    return None


def parse_file(text: str, place: str) -> list[Setting]:
    """Parse a config file by its suffix: .toml is TOML, everything else .properties."""
    return parse_toml(text, place) if place.endswith(".toml") else parse_properties(text, place)


def parse_environment(environment: Mapping[str, str]) -> list[Setting]:
    """Read the environment.

    HEADRACE_LOG_RETENTION_MS sets log.retention.ms, and HEADRACE_METRICS_LISTEN sets headrace.metrics.listen.
    """
    names = {_variable(key.name): key.name for key in BROKER_CONFIGS}
    settings: list[Setting] = []
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in ENVIRONMENT_RESERVED:
            continue
        guess = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
        settings.append(Setting(names.get(variable, guess), environment[variable], f"environment {variable}"))
    return settings


def _variable(name: str) -> str:
    bare = name.removeprefix("headrace.")
    return ENVIRONMENT_PREFIX + bare.replace(".", "_").upper()


def parse_assignments(assignments: Iterable[str]) -> list[Setting]:
    """Parse the `key=value` texts of --set."""
    settings: list[Setting] = []
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f'--set "{assignment}": write it as --set name=value')
        settings.append(Setting(name.strip(), text, "--set"))
    return settings


def merged(*sources: Iterable[Setting]) -> dict[str, str]:
    """Merge the sources, later ones overriding earlier ones; ConfigError names the location of an invalid config."""
    texts: dict[str, str] = {}
    for setting in (setting for source in sources for setting in source):
        try:
            BROKER_CONFIGS.parse(setting.name, setting.text)
            BROKER_CONFIGS.check_served(setting.name, setting.text)
        except ConfigError as wrong:
            raise ConfigError(f"{setting.place}: {_without_provided(setting, wrong)}") from None
        texts[setting.name] = setting.text
    return texts


def _without_provided(setting: Setting, wrong: ConfigError) -> str:
    """Return the message of an error without what a config provider provided, which may be a secret."""
    if setting.written is None or setting.name not in BROKER_CONFIGS:
        return str(wrong)
    kind = BROKER_CONFIGS.lookup(setting.name).type.name.lower()
    return (
        f'config "{setting.name}" cannot be what {setting.written} stands for: it must be a valid {kind} '
        f"(headrace configs list --broker describes it)"
    )
