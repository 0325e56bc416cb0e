"""Topics files in JSON, TOML or YAML, read with limits on the memory that a hostile file can take."""

import json
import re
from pathlib import Path

from headrace.operations.topic_plan import FILE_LENGTH_MAX, Place, PlanError, WantedTopic, parse_topics

YAML_ENDINGS = (".yaml", ".yml")


def read_topics(path: Path) -> list[WantedTopic]:
    """Return the topics of a file; its suffix gives the format. PlanError names the file and the line of a mistake."""
    if path.suffix not in (".json", ".toml", *YAML_ENDINGS):
        raise PlanError(f"{path} must end in .json, .toml, .yaml or .yml, so that its format is known")
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(FILE_LENGTH_MAX + 1)
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{path} is not UTF-8 text") from None
    if len(text) > FILE_LENGTH_MAX:
        raise PlanError(f"{path} is longer than {FILE_LENGTH_MAX} characters")
    document = parse_document(text, path.suffix, str(path))
    try:
        return parse_topics(document)
    except PlanError as wrong:
        line = find_line(text, path.suffix, wrong.place)
        raise PlanError(f"{path}:{line}: {wrong}" if line else f"{path}: {wrong}") from None


def parse_document(text: str, ending: str, file: str) -> object:
    try:
        if ending == ".json":
            return json.loads(text)
        return _parse_toml(text) if ending == ".toml" else _parse_yaml(text)
    except RecursionError:
        raise PlanError(f"{file} is nested too deeply") from None
    except json.JSONDecodeError as wrong:
        raise PlanError(f"{file}:{wrong.lineno}: this is not JSON: {wrong.msg}") from None
    except SyntaxMistake as wrong:
        raise PlanError(f"{file}:{wrong.line}: {wrong}" if wrong.line else f"{file}: {wrong}") from None


class SyntaxMistake(ValueError):
    """Text that is not valid in its format."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


_TOML_PLACE = re.compile(r" \(at line (?P<line>\d+), column \d+\)$")


def _parse_toml(text: str) -> object:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        place = _TOML_PLACE.search(str(wrong))
        line = int(place["line"]) if place else text.count("\n") + 1  # otherwise "at end of document"
        raise SyntaxMistake(f"this is not TOML: {_TOML_PLACE.sub('', str(wrong))}", line) from None


def _parse_yaml(text: str) -> object:
    import yaml

    try:
        _refuse_nested_aliases(text)
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark is not None else 0
        raise SyntaxMistake(f"this is not YAML: {wrong.problem}", line) from None
    except yaml.YAMLError as wrong:
        raise SyntaxMistake(f"this is not YAML: {' '.join(str(wrong).split())}", 0) from None


def find_line(text: str, ending: str, place: Place) -> int:
    """Return the line of a value of the document, or of the nearest parent that is found; 0 if none is."""
    return _toml_line(text, place) if ending == ".toml" else _yaml_line(text, place)


def _yaml_line(text: str, place: Place) -> int:
    """Find the line in YAML or JSON. JSON is YAML, except where tabs stand between its values."""
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return 0
    line = 0
    for step in place:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next(((key, value) for key, value in pairs if key.value == step), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def _toml_line(text: str, place: Place) -> int:
    """Find the header of the topic, then the longest suffix of the key's name after it."""
    number = next((step for step in place if isinstance(step, int)), None)
    headers = list(re.finditer(r"(?m)^[ \t]*\[\[[ \t]*topics[ \t]*\]\]", text))
    begin = headers[number].start() if number is not None and number < len(headers) else 0
    names = [re.escape(str(step)) for step in place if isinstance(step, str) and step != "topics"]
    for first in range(len(names)):
        key = r"[\"']?" + r"[\"']?\s*\.\s*[\"']?".join(names[first:]) + r"[\"']?\s*="
        if found := re.compile(rf"(?:^|[{{,])\s*{key}", re.MULTILINE).search(text, begin):
            return text.count("\n", 0, found.end()) + 1
    return text.count("\n", 0, begin) + 1 if headers else 0


def _refuse_nested_aliases(text: str) -> None:
    """Refuse an alias inside an anchored block: it can double at every level until memory is exhausted."""
    import yaml

    anchored = [False]
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if anchored[-1]:
                line = event.start_mark.line + 1 if event.start_mark is not None else 0
                raise SyntaxMistake("an alias is not allowed inside an anchored block", line)
        elif isinstance(event, yaml.CollectionStartEvent):
            anchored.append(anchored[-1] or event.anchor is not None)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchored.pop()
