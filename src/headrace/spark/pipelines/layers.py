"""Combine a pipeline file with the files that it includes and with the overlay of an environment.

Mappings are merged key by key, all other values replace each other: the file replaces what it includes, and the overlay
replaces both. Every node remembers its own file and line.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from yaml import MappingNode, Node, ScalarNode

from headrace.model.nearest_names import guess
from headrace.spark.pipelines.nodes import YamlSection, parse
from headrace.spark.pipelines.problems import DefinitionError, Findings, Problem

INCLUDE = "include"
INCLUDES_MAX = 20

_ENVIRONMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")


class Choices(NamedTuple):
    """The choices with which a file is read: one file serves several environments."""

    environment: str | None = None
    variables: Mapping[str, str] = {}
    """Values of variables, which override those in the files."""

    @property
    def arguments(self) -> list[str]:
        """The options with which the command line is given the same choices."""
        chosen = ["--env", self.environment] if self.environment is not None else []
        return chosen + [part for name, value in self.variables.items() for part in ("--var", f"{name}={value}")]


def overlay_file(file: Path, environment: str) -> Path:
    return file.with_name(f"{file.stem}.{environment}{file.suffix}")


def read_layers(file: Path, environment: str | None, findings: Findings) -> MappingNode:
    """Return the file combined with its includes and the overlay."""
    layers = [parse(file)]
    if environment is not None:
        layers.append(_overlay(file, environment))
    root = layers[0]
    paths = YamlSection(root, "", Findings(file), {}).texts(INCLUDE)[:INCLUDES_MAX]
    included = [_included(file.parent / path, root, findings) for path in paths]
    combined = root
    for number, layer in enumerate([*included, *layers]):
        combined = layer if number == 0 else _merged(combined, layer)
    return combined


def _included(file: Path, root: MappingNode, findings: Findings) -> MappingNode:
    try:
        found = parse(file)
    except DefinitionError as error:
        place = YamlSection(root, "", findings, {}).place_of(INCLUDE)
        raise DefinitionError([*error.problems, Problem(place.file, place.line, f"{INCLUDE}: from here")]) from None
    section = YamlSection(found, "", findings, {})
    for key in ("name", INCLUDE):
        if key in section:
            section.wrong(key, "an included file cannot have it: move it to the file of the pipeline")
    return found


def _overlay(file: Path, environment: str) -> MappingNode:
    if not _ENVIRONMENT.fullmatch(environment):
        text = f'"{environment}" is not the name of an environment: use letters, digits, "_" and "-"'
        raise DefinitionError([Problem(file, 0, text)])
    overlay = overlay_file(file, environment)
    if not overlay.exists():
        others = file.parent.glob(overlay_file(file, "*").name)
        known = [each.name[len(file.stem) + 1 : -len(file.suffix)] for each in others]
        hint = guess(environment, known) if known else f"write {overlay.name} with the keys that differ there"
        raise DefinitionError([Problem(overlay, 0, f'the environment "{environment}" has no file: {hint}')])
    found = parse(overlay)
    for key, _ in found.value:
        if isinstance(key, ScalarNode) and key.value == INCLUDE:
            section = YamlSection(found, "", Findings(overlay), {})
            section.wrong(INCLUDE, f"only {file.name} can include files")
            section.findings.raise_if_any()
    return found


def _merged(base: MappingNode, upper: MappingNode) -> MappingNode:
    """Return the keys of both; a key that is given twice in one of them stays so, for its reader to report."""
    replaced = {key.value: value for key, value in upper.value if isinstance(key, ScalarNode)}
    names = {key.value for key, _ in base.value if isinstance(key, ScalarNode)}
    pairs: list[tuple[Node, Node]] = []
    for key, value in base.value:
        name = key.value if isinstance(key, ScalarNode) else None
        found = replaced.get(name)
        if found is None:
            pairs.append((key, value))
        elif isinstance(found, MappingNode) and isinstance(value, MappingNode):
            pairs.append((key, _merged(value, found)))
        else:
            pairs.append((next(each for each, _ in upper.value if each.value == name), found))
    pairs += [(key, value) for key, value in upper.value if not isinstance(key, ScalarNode) or key.value not in names]
    return MappingNode(base.tag, pairs, base.start_mark, base.end_mark, base.flow_style)
