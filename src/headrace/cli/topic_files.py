"""Files of wanted topics: JSON, TOML or YAML, read with bounds on what a hostile one may cost."""

import json
from pathlib import Path

from headrace.cli.topic_plan import FILE_LENGTH_MAX, PlanError

YAML_ENDINGS = (".yaml", ".yml")


def read_document(path: Path) -> object:
    """What the file holds, by the ending of its name."""
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
    return parse_document(text, path.suffix, str(path))


def parse_document(text: str, ending: str, place: str) -> object:
    try:
        if ending == ".json":
            return json.loads(text)
        return _parse_toml(text) if ending == ".toml" else _parse_yaml(text)
    except RecursionError:
        raise PlanError(f"{place} is nested too deeply") from None
    except ValueError as wrong:
        raise PlanError(f"{place}: {wrong}") from None


def _parse_toml(text: str) -> object:
    import tomllib

    return tomllib.loads(text)


def _parse_yaml(text: str) -> object:
    import yaml

    try:
        _refuse_nested_aliases(text)
        return yaml.safe_load(text)
    except yaml.YAMLError as wrong:
        raise ValueError(" ".join(str(wrong).split())) from None


def _refuse_nested_aliases(text: str) -> None:
    """An alias inside an anchored block can double at every level until memory is gone; outside one it cannot."""
    import yaml

    anchored = [False]
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if anchored[-1]:
                line = event.start_mark.line + 1 if event.start_mark is not None else 0
                raise ValueError(f"line {line}: an alias may not stand inside an anchored block")
        elif isinstance(event, yaml.CollectionStartEvent):
            anchored.append(anchored[-1] or event.anchor is not None)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchored.pop()
