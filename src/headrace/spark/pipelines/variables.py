"""Replace the references in a pipeline file: `${name}` by a variable, `${env:NAME}` and `${file:PATH}` by a secret."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from headrace.model.nearest_names import guess
from headrace.spark.pipelines.nodes import NULL_TAG, WOULD_SHOW, SecretNode, YamlSection, place_of, text_place_of
from headrace.spark.pipelines.problems import DefinitionError, Findings, Place, Problem
from headrace.spark.pipelines.secret_texts import HIDDEN, SecretMissing, Secrets, secret_of_environment, secret_of_file

VARIABLES = "variables"
VARIABLES_MAX = 200

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^{}\n]*)(?P<end>\}?)")
_SENSITIVE = re.compile(r"\.(options|settings)\..*(password|passwd|secret|token|credential|jaas|key)", re.IGNORECASE)
"""The keys whose values are not noted or shown, even if they are not references."""
_FORMS = "write ${NAME} for a variable, ${env:NAME} or ${file:PATH} for a secret, and $${ for ${ itself"


class _Wrong(ValueError):
    """A reference cannot be replaced."""


class _Text(NamedTuple):
    """A text after its references were replaced."""

    text: str
    shown: str
    """The same with references in place of secrets."""
    is_secret: bool


class Substitution:
    """Replaces the references in the values of a file. The keys of mappings have none."""

    def __init__(self, root: MappingNode, given: Mapping[str, str], folder: Path, findings: Findings) -> None:
        self.secrets = Secrets()
        self.texts: dict[str, str] = {}
        """The text of every key, by its path; secrets are references."""
        self._folder = folder
        self._findings = findings
        self._given = given
        self._open: list[str] = []
        """The variables whose values are being replaced."""
        self._values: dict[str, ScalarNode] = {}
        for key, value in root.value:
            if isinstance(key, ScalarNode) and key.value == VARIABLES:
                self._declare(value)
        for name in given:
            if name not in self._values:
                known = guess(name, self._values) if self._values else f"the file has no {VARIABLES}"
                raise DefinitionError([Problem(findings.file, 0, f"--var {name}: there is no such variable: {known}")])

    def _declare(self, node: Node) -> None:
        if not isinstance(node, MappingNode):
            self._findings.add_at(place_of(node), f"{VARIABLES}: a mapping of names to values is needed here")
            return
        section = YamlSection(node, VARIABLES, self._findings, {})
        if len(node.value) > VARIABLES_MAX:
            text = f"{VARIABLES}: {len(node.value)} are too many: the limit is {VARIABLES_MAX}"
            self._findings.add_at(place_of(node), text)
        for key, value in node.value[:VARIABLES_MAX]:
            name = str(key.value)
            if not _NAME.fullmatch(name):
                section.wrong(name, 'a variable has a name of letters, digits and "_"')
            elif not isinstance(value, ScalarNode):
                section.wrong(name, "a single value is needed here")
            elif "\n" in value.value:
                section.wrong(name, "the value of a variable has one line")
            else:
                self._values[name] = value

    def mapping(self, root: MappingNode) -> MappingNode:
        """Return the file with its references replaced; each one that cannot be is reported."""
        found = self._node(root, "")
        assert isinstance(found, MappingNode)
        return found

    def _node(self, node: Node, path: str) -> Node:
        if isinstance(node, MappingNode):
            pairs = []
            for key, value in node.value:
                name = str(key.value) if isinstance(key, ScalarNode) else ""
                below = f"{path}.{name}" if path else name
                pairs.append((key, value if below == VARIABLES else self._node(value, below)))
            return MappingNode(node.tag, pairs, node.start_mark, node.end_mark, node.flow_style)
        if isinstance(node, SequenceNode):
            items = [self._node(item, f"{path}[{number}]") for number, item in enumerate(node.value)]
            return SequenceNode(node.tag, items, node.start_mark, node.end_mark, node.flow_style)
        assert isinstance(node, ScalarNode)
        found = self._text(str(node.value), text_place_of(node), path)
        self.texts[path] = HIDDEN if _SENSITIVE.search(path) and not found.is_secret else found.shown
        if found.text == node.value and not found.is_secret:
            return node
        kind = SecretNode if found.is_secret else ScalarNode
        return kind(node.tag, found.text, node.start_mark, node.end_mark, node.style)

    def text(self, text: str, first: Place, path: str = "") -> str:
        """Return the text of another file with its references replaced; a secret is refused."""
        found = self._text(text, first, path)
        if found.is_secret:
            self._findings.add_at(first, WOULD_SHOW)
        return found.shown

    def _text(self, text: str, first: Place, path: str) -> _Text:
        found, mistakes = self._replaced(text)
        for position, mistake in mistakes:
            line = text.count("\n", 0, position)
            self._findings.add_at(first.below(line), f"{path}: {mistake}" if path else mistake)
        return found

    def _replaced(self, text: str) -> tuple[_Text, list[tuple[int, str]]]:
        """Return the text, and the references that cannot be replaced with their positions."""
        parts, shown, end, is_secret, mistakes = [], [], 0, False, []
        for match in _REFERENCE.finditer(text):
            try:
                found = self._resolved(match)
            except _Wrong as wrong:
                mistakes.append((match.start(), str(wrong)))
                found = _Text(match[0], match[0], False)
            parts += [text[end : match.start()], found.text]
            shown += [text[end : match.start()], found.shown]
            is_secret = is_secret or found.is_secret
            end = match.end()
        return _Text("".join([*parts, text[end:]]), "".join([*shown, text[end:]]), is_secret), mistakes

    def _resolved(self, match: re.Match[str]) -> _Text:
        name = match["name"]
        if name is None:
            return _Text("${", "${", False)
        if not match["end"]:
            raise _Wrong(f'"{match[0].split()[0]}" has no closing brace: {_FORMS}')
        kind, colon, rest = name.partition(":")
        if colon:
            return self._secret(kind, rest, match[0])
        if not _NAME.fullmatch(name):
            raise _Wrong(f'"{match[0]}" is not a reference: {_FORMS}')
        return self._variable(name)

    def _secret(self, kind: str, rest: str, reference: str) -> _Text:
        try:
            if kind == "env":
                secret = secret_of_environment(rest)
            elif kind == "file":
                secret = secret_of_file(self._folder / rest)
            else:
                raise _Wrong(f'"{reference}" is not a reference: {_FORMS}')
        except SecretMissing as error:
            raise _Wrong(f"{reference}: {error}") from None
        self.secrets.add(secret)
        return _Text(secret, reference, True)

    def _variable(self, name: str) -> _Text:
        node = self._values.get(name)
        if node is None:
            hint = guess(name, self._values) if self._values else f"add it under {VARIABLES}, as in `{name}: value`"
            raise _Wrong(f'the variable "{name}" is not declared: {hint}')
        if name in self._given:
            return _Text(self._given[name], self._given[name], False)
        if node.tag == NULL_TAG:
            raise _Wrong(f'the variable "{name}" has no value: use --var {name}=VALUE, or the file of an environment')
        if name in self._open:
            raise _Wrong(f'the variable "{name}" refers to itself')
        self._open.append(name)
        found, mistakes = self._replaced(str(node.value))
        self._open.pop()
        if mistakes:
            raise _Wrong(f'the variable "{name}": {mistakes[0][1]}')
        return found
