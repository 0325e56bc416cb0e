"""Parse a YAML file into mappings whose keys are read one by one, with the line of each.

PyYAML's safe loader only parses; its constructors are not used, so a scalar is exactly its text.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from headrace.model.nearest_names import guess
from headrace.spark.pipelines.problems import DefinitionError, Findings, Place, Problem

FILE_LENGTH_MAX = 256 * 1024
"""In characters."""
NODES_MAX = 5_000
DEPTH_MAX = 20

SHOWN_LENGTH_MAX = 40
"""Characters of an invalid value that a message repeats."""

_KINDS: Mapping[type[Node], str] = {SequenceNode: "list", MappingNode: "mapping"}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
NULL_TAG = "tag:yaml.org,2002:null"
WOULD_SHOW = "a secret is not possible here, where it would be shown: use it in the options of a source or sink"
NO_VALUE = "there is no value: write one, or leave this out"
_INTEGER = re.compile(r"-?[0-9][0-9_]{0,17}")

Choice = TypeVar("Choice", bound=StrEnum)
T = TypeVar("T")


def read_text(file: Path) -> str:
    """Read the whole file, if it is text of an acceptable length."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(FILE_LENGTH_MAX + 1)
    except FileNotFoundError:
        raise DefinitionError([Problem(file, 0, "the file does not exist")]) from None
    except OSError as error:
        raise DefinitionError([Problem(file, 0, f"the file cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        raise DefinitionError([Problem(file, 0, f"the file is not UTF-8 text at byte {error.start}")]) from None
    if len(text) > FILE_LENGTH_MAX:
        raise DefinitionError([Problem(file, 0, f"the file is longer than {FILE_LENGTH_MAX} characters")])
    return text


def parse(file: Path) -> MappingNode:
    """Return the file's mapping; DefinitionError if it is not one."""
    text = read_text(file)
    try:
        _refuse_excess(text, file)
        loader = yaml.SafeLoader(text)
        loader.name = str(file)  # which the nodes remember
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark is not None else 0
        has_reference = "${" in "".join(text.splitlines()[line - 1 : line])
        hint = ': within braces, a reference needs quotes: "${name}"' if has_reference else ""
        raise DefinitionError([Problem(file, line, f"this is not YAML: {wrong.problem}{hint}")]) from None
    except yaml.YAMLError as wrong:
        raise DefinitionError([Problem(file, 0, f"this is not YAML: {' '.join(str(wrong).split())}")]) from None
    if not isinstance(root, yaml.MappingNode):
        raise DefinitionError([Problem(file, 1, "a pipeline is a mapping: begin with `name: ...`")])
    return root


def _refuse_excess(text: str, file: Path) -> None:
    """Refuse aliases, which can double at every level until memory is exhausted, and which no pipeline needs."""
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        if isinstance(event, yaml.AliasEvent):
            raise DefinitionError([Problem(file, line, "aliases are not supported: write the value out")])
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MAX or nodes > NODES_MAX:
            raise DefinitionError(
                [Problem(file, line, f"deeper than {DEPTH_MAX} levels or more than {NODES_MAX} values")]
            )


def line_of(node: Node) -> int:
    return int(node.start_mark.line) + 1


def place_of(node: Node) -> Place:
    return Place(Path(node.start_mark.name), line_of(node))


def text_place_of(node: Node) -> Place:
    """Return the line in which the text of a scalar begins: after the `|` of a block."""
    return place_of(node).below(1 if getattr(node, "style", None) in ("|", ">") else 0)


class SecretNode(ScalarNode):
    """A text that contains a secret: only some keys accept it."""


class YamlSection:
    """One mapping of the file. Every key is read by its type; `finish` reports the keys that were not read."""

    def __init__(self, node: MappingNode, path: str, findings: Findings, places: dict[str, Place]) -> None:
        self.node, self.path, self.findings, self.places = node, path, findings, places
        self.place = place_of(node)
        self._values: dict[str, Node] = {}
        self._asked: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                findings.add_at(place_of(key), "a key is a single word")
            elif key.value in self._values:
                findings.add_at(place_of(key), f'"{key.value}" is given twice')
            else:
                self._values[key.value] = value
                is_text = isinstance(value, ScalarNode)
                places[self.path_of(key.value)] = text_place_of(value) if is_text else place_of(key)

    def path_of(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._values)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def place_of(self, key: str) -> Place:
        return self.places.get(self.path_of(key), self.place)

    def place_at(self, *paths: str) -> Place:
        """Return the place of the first of these paths of the whole file that is in it."""
        return next((self.places[path] for path in paths if path in self.places), Place(self.findings.file, 0))

    def wrong(self, key: str, text: str) -> None:
        self.findings.add_at(self.place_of(key), f"{self.path_of(key)}: {text}")

    def missing(self, key: str, example: str) -> None:
        place = self.path or "the file"
        self.findings.add_at(self.place, f"{place} lacks `{key}`: add for example `{example}`")

    def _take(self, key: str) -> Node | None:
        """Return the value; a key without a value is reported, because it may be all that a line lacks."""
        self._asked.add(key)
        node = self._values.get(key)
        if node is not None and node.tag == NULL_TAG:
            self.wrong(key, NO_VALUE)
            return None
        return node

    # Scalars

    def text(self, key: str) -> str | None:
        node = self._take(key)
        if node is None:
            return None
        if not isinstance(node, ScalarNode):
            self.wrong(key, f"a text is needed here, not a {_kind(node)}")
            return None
        if isinstance(node, SecretNode):
            self.wrong(key, WOULD_SHOW)
            return None
        text = str(node.value)
        if not text.strip():
            self.wrong(key, "the text is empty: write one or leave the key out")
            return None
        return text

    def parsed(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return a text as `parse` converts it; ValueError refuses it."""
        text = self.text(key)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.wrong(key, str(error))
            return None

    def integer(self, key: str, *, least: int, most: int) -> int | None:
        def number(text: str) -> int:
            if not _INTEGER.fullmatch(text.strip()):
                raise ValueError(f'a whole number is needed here, not "{text}"')
            found = int(text)
            if not least <= found <= most:
                raise ValueError(f"{found} is not between {least} and {most}")
            return found

        return self.parsed(key, number)

    def boolean(self, key: str) -> bool | None:
        def parse_boolean(text: str) -> bool:
            if text.lower() not in (*_TRUE, *_FALSE):
                raise ValueError(f'true or false is needed here, not "{text}"')
            return text.lower() in _TRUE

        return self.parsed(key, parse_boolean)

    def choice(self, key: str, choices: type[Choice], default: Choice) -> Choice:
        def chosen(text: str) -> Choice:
            try:
                return choices(text.lower())
            except ValueError:
                raise ValueError(f'"{text}" is not known: {guess(text, list(choices))}') from None

        return self.parsed(key, chosen) or default

    # Collections

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; a single text is a list of one."""
        node = self._take(key)
        if node is None:
            return ()
        if any(isinstance(each, SecretNode) for each in (node.value if isinstance(node, SequenceNode) else (node,))):
            self.wrong(key, WOULD_SHOW)
            return ()
        if isinstance(node, ScalarNode):
            return (str(node.value),)
        if not isinstance(node, SequenceNode) or any(not isinstance(item, ScalarNode) for item in node.value):
            self.wrong(key, f"a list of texts is needed here, not a {_kind(node)}")
            return ()
        if not node.value or any(item.tag == NULL_TAG or not str(item.value).strip() for item in node.value):
            self.wrong(key, f"in the list {NO_VALUE}")
            return ()
        return tuple(str(item.value) for item in node.value)

    def pairs(self, key: str, *, secrets: bool = False) -> Mapping[str, str]:
        """Return a mapping of names to single values, all as text; with `secrets`, they may contain secrets."""
        node = self._take(key)
        if node is None:
            return {}
        if not isinstance(node, MappingNode):
            self.wrong(key, f"a mapping of names to values is needed here, not a {_kind(node)}")
            return {}
        section = YamlSection(node, self.path_of(key), self.findings, self.places)
        found = {}
        for name, value in section._values.items():
            if not isinstance(value, ScalarNode):
                section.wrong(name, f"a single value is needed here, not a {_kind(value)}")
            elif value.tag == NULL_TAG:
                section.wrong(name, NO_VALUE)
            elif isinstance(value, SecretNode) and not secrets:
                section.wrong(name, WOULD_SHOW)
            else:
                found[name] = str(value.value)
        return found

    def kind(self, key: str) -> str | None:
        """Return text, list or mapping; None if the key does not exist."""
        node = self._values.get(key)
        return None if node is None else _kind_of(node)

    def section(self, key: str) -> "YamlSection | None":
        node = self._take(key)
        if node is None:
            return None
        if not isinstance(node, MappingNode):
            self.wrong(key, f"a mapping is needed here, not a {_kind(node)}")
            return None
        return YamlSection(node, self.path_of(key), self.findings, self.places)

    def sections(self, key: str, *, most: int) -> list["YamlSection"]:
        """Return a list of mappings."""
        node = self._take(key)
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.wrong(key, f"a list is needed here (lines that begin with `- `), not a {_kind(node)}")
            return []
        if len(node.value) > most:
            self.wrong(key, f"{len(node.value)} are too many: the limit is {most}")
        found = []
        for number, item in enumerate(node.value[:most]):
            path = f"{self.path_of(key)}[{number}]"
            if not isinstance(item, MappingNode):
                self.findings.add_at(place_of(item), f"{path}: a mapping is needed here, not a {_kind(item)}")
            else:
                found.append(YamlSection(item, path, self.findings, self.places))
        return found

    def named_sections(self, key: str, *, most: int) -> dict[str, "YamlSection"]:
        """Return a mapping of names to mappings."""
        outer = self.section(key)
        if outer is None:
            return {}
        if len(outer._values) > most:
            self.wrong(key, f"{len(outer._values)} are too many: the limit is {most}")
        found = {name: outer.section(name) for name in list(outer._values)[:most]}
        return {name: section for name, section in found.items() if section is not None}

    def skip(self, key: str) -> None:
        """Accept a key that is read elsewhere."""
        self._asked.add(key)

    def finish(self) -> None:
        for key in self._values:
            if key not in self._asked:
                place = f"in {self.path}" if self.path else "here"
                self.findings.add_at(self._key_place(key), f'"{key}" is not known {place}: {guess(key, self._asked)}')

    def _key_place(self, key: str) -> Place:
        return next(place_of(node) for node, _ in self.node.value if isinstance(node, ScalarNode) and node.value == key)


def _kind_of(node: Node) -> str:
    return "text" if isinstance(node, ScalarNode) else _KINDS[type(node)]


def _kind(node: Node) -> str:
    kind = _kind_of(node)
    if isinstance(node, SecretNode):
        return "secret"
    return f'text such as "{str(node.value)[:SHOWN_LENGTH_MAX]}"' if kind == "text" else kind
