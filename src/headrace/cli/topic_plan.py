"""What `topics apply` would change: the topics of a file against those of the cluster. Decides, touches nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.cli.console import count_text
from headrace.model.configs import TOPIC_CONFIGS
from headrace.model.configs.definition import parse_value

FILE_LENGTH_MAX = 10 << 20
"""Characters of a file of topics."""
TOPICS_MAX = 100_000


class PlanError(ValueError):
    """The file cannot be read as topics; the message says what is wrong in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """A topic of the file. None leaves what is there, or takes the broker's default for a new topic."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTopic:
    """A topic of the cluster, with the configs it sets itself."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    internal: bool = False


class Action(StrEnum):
    CREATE = "create"
    ADD_PARTITIONS = "add partitions"
    SET_CONFIG = "set config"
    RESET_CONFIG = "reset config"
    DELETE = "delete"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    action: Action
    topic: str
    what: str = ""
    before: str = ""
    after: str = ""
    wanted: WantedTopic | None = None
    """The whole topic, for a step that creates it."""


def parse_topics(document: object) -> list[WantedTopic]:
    """The topics of a file already read: `{"topics": [...]}` or the bare list."""
    if isinstance(document, dict):
        unknown = sorted(str(key) for key in document if key != "topics")
        if "topics" not in document or unknown:
            raise PlanError(f'the file must hold one list named "topics"{_also(unknown)}')
        document = document["topics"]
    if not isinstance(document, list):
        raise PlanError('"topics" must be a list of topics')
    if len(document) > TOPICS_MAX:
        raise PlanError(f"the file has {len(document)} topics, at most {TOPICS_MAX} are allowed")
    wanted: dict[str, WantedTopic] = {}
    for number, item in enumerate(document, 1):
        topic = _parse_topic(item, number)
        if topic.name in wanted:
            raise PlanError(f'topic "{topic.name}" is in the file twice')
        wanted[topic.name] = topic
    return list(wanted.values())


_FIELDS = ("name", "partitions", "replication_factor", "configs")


def _parse_topic(item: object, number: int) -> WantedTopic:
    if not isinstance(item, dict):
        raise PlanError(f'topic {number} must be a table like {{"name": "orders", "partitions": 4}}')
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise PlanError(f"topic {number} has no name: it may have {', '.join(_FIELDS)}")
    unknown = sorted(str(key) for key in item if key not in _FIELDS)
    if unknown:
        raise PlanError(f'topic "{name}" has "{unknown[0]}": it may have {", ".join(_FIELDS)}')
    return WantedTopic(
        name=name,
        partitions=_whole(item, "partitions", name),
        replication_factor=_whole(item, "replication_factor", name),
        configs=_configs(item.get("configs", {}), name),
    )


def _whole(item: Mapping[str, object], key: str, name: str) -> int | None:
    value = item.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 2**31 - 1:
        raise PlanError(f'topic "{name}": {key} must be a whole number above 0')
    return value


def _configs(value: object, name: str) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise PlanError(f'topic "{name}": configs must be a table of names and values')
    return dict(_config_pairs(value, "", name))


def _config_pairs(table: Mapping[object, object], prefix: str, name: str) -> Sequence[tuple[str, str]]:
    """Names and texts; tables inside tables join with dots, since TOML makes such of a bare `retention.ms = 1`."""
    pairs: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs.extend(_config_pairs(value, f"{prefix}{key}.", name))
        elif isinstance(value, bool):
            pairs.append((f"{prefix}{key}", "true" if value else "false"))
        elif isinstance(value, str | int | float):
            pairs.append((f"{prefix}{key}", str(value)))
        elif isinstance(value, list) and all(isinstance(item, str | int) for item in value):
            pairs.append((f"{prefix}{key}", ",".join(str(item) for item in value)))
        else:
            raise PlanError(f'topic "{name}": config "{prefix}{key}" must be a string, a number, true or false')
    return pairs


def _also(unknown: Sequence[str]) -> str:
    return f', not "{unknown[0]}"' if unknown else ""


def plan(wanted: Sequence[WantedTopic], existing: Sequence[ExistingTopic], *, prune: bool) -> list[Step]:
    """The steps that turn `existing` into `wanted`. What the file does not name is left alone, unless `prune` is set:
    then topics that are not in it are deleted, and configs that its topics do not set are reset.
    """
    steps: list[Step] = []
    present = {topic.name: topic for topic in existing}
    for topic in wanted:
        old = present.get(topic.name)
        steps.extend(_creation(topic) if old is None else _changes(topic, old, prune=prune))
    if prune:
        names = {topic.name for topic in wanted}
        steps.extend(
            Step(
                action=Action.DELETE,
                topic=old.name,
                what="topic",
                before=count_text(old.partitions, "partition"),
                after="gone",
            )
            for old in existing
            if old.name not in names and not old.internal
        )
    return steps


def _creation(topic: WantedTopic) -> list[Step]:
    parts = [
        f"partitions={topic.partitions or 'default'}",
        f"replication_factor={topic.replication_factor or 'default'}",
    ]
    parts.extend(f"{name}={text}" for name, text in sorted(topic.configs.items()))
    return [Step(action=Action.CREATE, topic=topic.name, what="topic", after=", ".join(parts), wanted=topic)]


def _changes(topic: WantedTopic, old: ExistingTopic, *, prune: bool) -> list[Step]:
    steps: list[Step] = []
    if topic.partitions is not None and topic.partitions != old.partitions:
        grows = topic.partitions > old.partitions
        steps.append(
            Step(
                action=Action.ADD_PARTITIONS if grows else Action.REFUSE,
                topic=topic.name,
                what="partitions" if grows else "partitions can only grow",
                before=str(old.partitions),
                after=str(topic.partitions),
            )
        )
    if topic.replication_factor is not None and topic.replication_factor != old.replication_factor:
        steps.append(
            Step(
                action=Action.REFUSE,
                topic=topic.name,
                what="replication factor cannot be changed here",
                before=str(old.replication_factor),
                after=str(topic.replication_factor),
            )
        )
    steps.extend(_config_steps(topic, old, prune=prune))
    return steps


def _config_steps(topic: WantedTopic, old: ExistingTopic, *, prune: bool) -> list[Step]:
    steps = [
        Step(action=Action.SET_CONFIG, topic=topic.name, what=name, before=old.configs.get(name, "default"), after=text)
        for name, text in sorted(topic.configs.items())
        if not _same_value(name, old.configs.get(name), text)
    ]
    if prune:
        steps.extend(
            Step(action=Action.RESET_CONFIG, topic=topic.name, what=name, before=text, after="default")
            for name, text in sorted(old.configs.items())
            if name not in topic.configs
        )
    return steps


def _same_value(name: str, before: str | None, after: str) -> bool:
    """Whether two texts mean the same: `compact, delete` and `compact,delete` do."""
    key = TOPIC_CONFIGS.get(name)
    if before is None or before == after or key is None:
        return before == after
    try:
        return parse_value(key, before) == parse_value(key, after)
    except ValueError:
        return False
