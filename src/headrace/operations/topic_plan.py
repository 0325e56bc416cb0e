"""Plan of `topics apply`: the steps from the topics of the cluster to those of a file. Makes no request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.model.configs import TOPIC_CONFIGS, ConfigError
from headrace.model.configs.definition import parse_value
from headrace.model.nearest_names import LIKE_A_NAME, nearest_of, question
from headrace.operations.amounts import count_text

FILE_LENGTH_MAX = 10 << 20
"""Characters in a topics file."""
TOPICS_MAX = 100_000


Place = tuple[int | str, ...]
"""The path to a value of a document: keys of tables and indexes of lists."""


class PlanError(ValueError):
    """The file does not describe topics; the message says what is wrong, and `place` says where."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """A topic of the file. None keeps the current value, or takes the broker's default for a new topic."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTopic:
    """A topic of the cluster, with the configs that the topic itself sets."""

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
    """Return the topics of a parsed document: `{"topics": [...]}` or the bare list."""
    place: Place = ()
    if isinstance(document, dict):
        unknown = sorted(str(key) for key in document if key != "topics")
        if "topics" not in document or unknown:
            raise PlanError(f'the file must contain one list named "topics"{_also(unknown)}', tuple(unknown[:1]))
        document, place = document["topics"], ("topics",)
    if not isinstance(document, list):
        raise PlanError('"topics" must be a list of topics', place)
    if len(document) > TOPICS_MAX:
        raise PlanError(f"the file has {len(document)} topics, at most {TOPICS_MAX} are allowed", place)
    wanted: dict[str, WantedTopic] = {}
    for number, item in enumerate(document):
        topic = _parse_topic(item, (*place, number))
        if topic.name in wanted:
            raise PlanError(f'topic "{topic.name}" is in the file twice', (*place, number, "name"))
        wanted[topic.name] = topic
    return list(wanted.values())


_FIELDS = ("name", "partitions", "replication_factor", "configs")


def _parse_topic(item: object, place: Place) -> WantedTopic:
    number = int(place[-1]) + 1
    if not isinstance(item, dict):
        raise PlanError(f'topic {number} must be a table like {{"name": "orders", "partitions": 4}}', place)
    name = item.get("name")
    unknown = sorted(str(key) for key in item if key not in _FIELDS)
    if isinstance(name, str) and name:
        subject = f'topic "{name}"'
    elif unknown and nearest_of(unknown[0], _FIELDS) == "name":
        subject = f"topic {number}"
    else:
        raise PlanError(f"topic {number} has no name: it may have {', '.join(_FIELDS)}", place)
    if unknown:
        nearest = nearest_of(unknown[0], _FIELDS)
        hint = f"it may have {', '.join(_FIELDS)}" if nearest is None else question(nearest)
        raise PlanError(f'{subject} has "{unknown[0]}": {hint}', (*place, unknown[0]))
    return WantedTopic(
        name=str(name),
        partitions=_whole(item, "partitions", subject, place),
        replication_factor=_whole(item, "replication_factor", subject, place),
        configs=_configs(item.get("configs", {}), subject, (*place, "configs")),
    )


def _whole(item: Mapping[str, object], key: str, subject: str, place: Place) -> int | None:
    value = item.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 2**31 - 1:
        raise PlanError(f"{subject}: {key} must be a whole number above 0", (*place, key))
    return value


def _configs(value: object, subject: str, place: Place) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise PlanError(f"{subject}: configs must be a table of names and values", place)
    found: dict[str, str] = {}
    for keys, text in _config_pairs(value, (), subject, place):
        name = ".".join(keys)
        _check_config(name, text, subject, (*place, *keys))
        found[name] = text
    return found


def _check_config(name: str, text: str, subject: str, place: Place) -> None:
    """Refuse an invalid value, and a name that resembles a known one; the broker decides about any other name."""
    try:
        if nearest_of(name, (key.name for key in TOPIC_CONFIGS), likeness=LIKE_A_NAME) is not None:
            TOPIC_CONFIGS.parse(name, text, subject=subject)
    except ConfigError as wrong:
        raise PlanError(str(wrong), place) from None


def _config_pairs(
    table: Mapping[object, object], keys: tuple[str, ...], subject: str, place: Place
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield names and values. Nested tables are joined with dots: TOML parses a bare `retention.ms = 1` as one."""
    for key, value in table.items():
        path = (*keys, str(key))
        if isinstance(value, dict):
            yield from _config_pairs(value, path, subject, place)
        elif isinstance(value, bool):
            yield path, "true" if value else "false"
        elif isinstance(value, str | int | float):
            yield path, str(value)
        elif isinstance(value, list) and all(isinstance(item, str | int) for item in value):
            yield path, ",".join(str(item) for item in value)
        else:
            name = ".".join(path)
            raise PlanError(f'{subject}: config "{name}" must be a string, a number, true or false', (*place, *path))


def _also(unknown: Sequence[str]) -> str:
    return f', not "{unknown[0]}"' if unknown else ""


def plan(wanted: Sequence[WantedTopic], existing: Sequence[ExistingTopic], *, prune: bool) -> list[Step]:
    """Return the steps that turn `existing` into `wanted`.

    Topics and configs that the file does not name are left alone. With `prune`, topics that are not in the file are
    deleted, and configs that its topics do not set are reset.
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
                what="the replication factor cannot be changed here",
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
    """Tell whether two texts have the same value, as `compact, delete` and `compact,delete` do."""
    key = TOPIC_CONFIGS.get(name)
    if before is None or before == after or key is None:
        return before == after
    try:
        return parse_value(key, before) == parse_value(key, after)
    except ValueError:
        return False
