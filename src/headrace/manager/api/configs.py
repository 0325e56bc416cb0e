"""Configs of topics and brokers: the values, where they come from, and changes of single ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.client import Admin
from headrace.client.types import ConfigChange, ConfigEntry, ConfigOperation, ConfigResource, ResourceType
from headrace.manager.api.topics import DryRun, existing
from headrace.manager.parts import Parts
from headrace.manager.problems import ApiProblem, refusal
from headrace.manager.responses import respond
from headrace.model.errors import ErrorCode

router = APIRouter(prefix="/v1", tags=["configs"])
EVERY_BROKER = "all"
"""Stands for the dynamic configs of all brokers; on the wire the name is empty."""


@dataclass(frozen=True, slots=True)
class ConfigSynonymView:
    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class ConfigView:
    name: str
    value: str | None
    """Null for a secret."""
    source: str
    is_default: bool
    read_only: bool
    sensitive: bool
    documentation: str | None
    synonyms: list[ConfigSynonymView]


class ConfigChanges(BaseModel):
    """Changes that are made together."""

    model_config = ConfigDict(extra="forbid")

    set: dict[str, str] = Field(default_factory=dict)
    delete: list[str] = Field(default_factory=list, description="Configs to reset to their defaults.")
    append: dict[str, str] = Field(default_factory=dict, description="Items to add to configs that are lists.")
    subtract: dict[str, str] = Field(default_factory=dict, description="Items to remove from configs that are lists.")


OnlyChanged = Annotated[bool, Query(description="Leave out configs that have their default value.")]
BrokerName = str
"""A node id, or `all`."""


@router.get("/topics/{topic}/configs", response_model=list[ConfigView], summary="List the configs of a topic")
async def topic_configs(request: Request, parts: Parts, topic: str, only_changed: OnlyChanged = False) -> Response:
    def described(admin: Admin) -> list[ConfigView]:
        existing(admin, topic)
        return _described(admin, ConfigResource(ResourceType.TOPIC, topic), only_changed)

    return respond(request, await parts.cluster.run(described))


@router.patch("/topics/{topic}/configs", response_model=list[ConfigView], summary="Change configs of a topic")
async def alter_topic(
    request: Request, parts: Parts, topic: str, changes: ConfigChanges, dry_run: DryRun = False
) -> Response:
    def altered(admin: Admin) -> list[ConfigView]:
        existing(admin, topic)
        return _altered(admin, ConfigResource(ResourceType.TOPIC, topic), f'topic "{topic}"', changes, dry_run)

    return respond(request, await parts.cluster.run(altered))


@router.get("/brokers/{broker}/configs", response_model=list[ConfigView], summary="List the configs of a broker")
async def broker_configs(
    request: Request, parts: Parts, broker: BrokerName, only_changed: OnlyChanged = False
) -> Response:
    """`all` stands for the dynamic configs of all brokers."""
    resource = _broker(broker)
    return respond(request, await parts.cluster.run(lambda admin: _described(admin, resource, only_changed)))


@router.patch("/brokers/{broker}/configs", response_model=list[ConfigView], summary="Change configs of a broker")
async def alter_broker(
    request: Request, parts: Parts, broker: BrokerName, changes: ConfigChanges, dry_run: DryRun = False
) -> Response:
    """`all` stands for the dynamic configs of all brokers."""
    resource = _broker(broker)
    name = "all brokers" if broker == EVERY_BROKER else f"broker {broker}"
    return respond(request, await parts.cluster.run(lambda admin: _altered(admin, resource, name, changes, dry_run)))


def _broker(name: str) -> ConfigResource:
    if name == EVERY_BROKER:
        return ConfigResource(ResourceType.BROKER, "")
    if not (name.isascii() and name.isdecimal() and len(name) <= 10):
        raise ApiProblem(404, f'there is no broker "{name}": use a node id of GET /v1/brokers, or {EVERY_BROKER}')
    return ConfigResource(ResourceType.BROKER, name)


def _described(admin: Admin, resource: ConfigResource, only_changed: bool) -> list[ConfigView]:
    if resource.type is ResourceType.BROKER and resource.name:
        known = [broker.node_id for broker in admin.cluster().brokers]
        if int(resource.name) not in known:
            nodes = ", ".join(map(str, known))
            raise ApiProblem(404, f"broker {resource.name} does not serve clients: use one of {nodes}")
    (entries,) = admin.describe_configs([resource], with_documentation=True).values()
    return [_view(entry) for entry in entries if not (only_changed and entry.is_default)]


def _altered(
    admin: Admin, resource: ConfigResource, name: str, changes: ConfigChanges, dry_run: bool
) -> list[ConfigView]:
    wanted = [ConfigChange(ConfigOperation.DELETE, each) for each in changes.delete]
    named: Mapping[ConfigOperation, Mapping[str, str]] = {
        ConfigOperation.SET: changes.set,
        ConfigOperation.APPEND: changes.append,
        ConfigOperation.SUBTRACT: changes.subtract,
    }
    for operation, texts in named.items():
        wanted.extend(ConfigChange(operation, each, text) for each, text in texts.items())
    if not wanted:
        raise ApiProblem(400, 'nothing to change: give "set", "delete", "append" or "subtract"')
    for outcome in admin.alter_configs({resource: wanted}, validate_only=dry_run).values():
        if outcome.error != ErrorCode.NONE:
            raise refusal(f"cannot alter {name}", resource.name, outcome)
    return _described(admin, resource, only_changed=True)


def _view(entry: ConfigEntry) -> ConfigView:
    return ConfigView(
        entry.name,
        None if entry.sensitive else entry.value,
        entry.source.name.lower(),
        entry.is_default,
        entry.read_only,
        entry.sensitive,
        entry.documentation,
        [
            ConfigSynonymView(each.name, None if entry.sensitive else each.value, each.source.name.lower())
            for each in entry.synonyms
        ],
    )
