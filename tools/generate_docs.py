"""Write docs/reference and the diagrams that have a table in the code; --check only compares."""

import argparse
import ast
import inspect
import re
import socket
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import click

from headrace.broker.api import describe_groups, describe_transactions, find_coordinator, offset_fetch
from headrace.broker.api.access_table import CHECKS, WITHOUT_CHECK, AccessCheck
from headrace.broker.api.registry import INTERNAL, SERVED, ServedApi
from headrace.broker.produce import record_hold, transaction_hold
from headrace.cli.main import cli
from headrace.core.access.sasl import TRANSITIONS as SASL_TRANSITIONS
from headrace.core.access.sasl import SaslState
from headrace.core.controller.lifecycle import TRANSITIONS as LIFECYCLE_TRANSITIONS
from headrace.core.controller.lifecycle import LifecycleState
from headrace.core.groups.states import TRANSITIONS as GROUP_TRANSITIONS
from headrace.core.groups.states import GroupState
from headrace.core.peers.handshake import TRANSITIONS as HANDSHAKE_TRANSITIONS
from headrace.core.peers.handshake import HandshakeState
from headrace.core.raft.roles import TRANSITIONS, Role
from headrace.core.transactions import settings
from headrace.core.transactions.states import PRECEDING, TransactionState
from headrace.manager import limits as manager_limits
from headrace.model import limits
from headrace.model.access import AclResourceType, Operation
from headrace.model.configs import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigKey, ConfigTable, ConfigType
from headrace.model.configs.definition import INT64_MAX, render_value
from headrace.testing import EmbeddedBroker
from headrace.wire.apis import ApiKey

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
HELP_COLUMNS = 100
SCRAPE_SECONDS_MAX = 10
UNITS = {
    "ms": ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")),
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")),
}
LIMITS: dict[str, tuple[tuple[ModuleType, tuple[str, ...]], ...]] = {
    "Requests and the loop": ((limits, ()),),
    "Transactions and batch commits": ((settings, ()),),
    "Single APIs": (
        (record_hold, ("RECORDS_HELD_BYTES_MAX",)),
        (transaction_hold, ("TRANSACTIONS_HELD_BYTES_MAX",)),
        (find_coordinator, ("FIND_COORDINATOR_KEYS_MAX",)),
        (describe_transactions, ("DESCRIBE_TRANSACTIONS_IDS_MAX",)),
        (describe_groups, ("DESCRIBE_GROUPS_MAX",)),
        (offset_fetch, ("OFFSET_FETCH_GROUPS_MAX",)),
    ),
    "The manager": ((manager_limits, ()),),
}
"""The sections of the limits page: modules, and which of their constants; an empty tuple means all of them."""
NOTE = "<!-- Written by `make docs` from the tables in the code. Change those, not this page. -->"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    headings = tuple(headings)
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in rows:
        yield f"| {' | '.join(in_one_line(cell) for cell in row)} |"


def in_one_line(cell: str) -> str:
    """Return the text as a cell of a table, which a line break or a bar would end."""
    return " ".join(cell.split()).replace("|", r"\|")


def in_words(name: str, value: object) -> str:
    """` (7 d)` after a number of milliseconds or bytes that has a rounder name, ` (no limit)` after the largest."""
    if value == INT64_MAX:
        return " (no limit)"
    words = name.split(".")
    for unit, scales in UNITS.items():
        if unit in words[-3:] and isinstance(value, int):
            for size, symbol in scales:
                if value >= size and value % size == 0:
                    return f" ({value // size} {symbol})"
    return ""


def shown_default(key: ConfigKey) -> str:
    text = render_value(key.default)
    if text is None:
        return "none"
    return f"`{text}`{in_words(key.name, key.default)}" if text else "empty"


def allowed(key: ConfigKey) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    if key.low is not None and key.high is not None:
        return f"{key.low} to {key.high}"
    if key.low is not None:
        return f"{key.low} or more"
    return "" if key.high is None else f"{key.high} or less"


def config_rows(keys: Iterable[ConfigKey], *, scope: bool) -> Iterator[tuple[str, ...]]:
    for key in keys:
        changed = (key.scope.value,) if scope else ()
        kind = ConfigType(key.type).name.lower()
        yield (f"`{key.name}`", kind, shown_default(key), allowed(key), *changed, key.documentation)


def config_section(configs: ConfigTable, *, scope: bool) -> Iterator[str]:
    headings = ("name", "type", "default", "allowed", *(("changeable",) if scope else ()), "meaning")
    yield from table(headings, config_rows((key for key in configs if key.honoured), scope=scope))
    refused = [key for key in configs if key.refusal]
    yield ""
    yield "Other values than the default of these are refused, since they would promise what the broker does not do:"
    yield ""
    yield from table(
        ("name", "default", "meaning", "why, and what to do"),
        ((f"`{key.name}`", shown_default(key), key.documentation, key.refusal) for key in refused),
    )
    yield ""
    yield "Kept and described as Kafka does, but without effect in this release. The broker logs a warning when one of"
    yield "them is given another value than its default, and `headrace topics` and `headrace configs` print one:"
    yield ""
    without_effect = [key for key in configs if not key.honoured and not key.refusal]
    yield from table(headings, config_rows(without_effect, scope=scope))


def configuration_page() -> Iterator[str]:
    yield "# Configuration reference"
    yield ""
    yield "Names, types and defaults are Kafka's where Kafka has them; Headrace's own names start with `headrace.`."
    yield "How to set them is in [the guide](../guide/configuration.md)."
    yield ""
    yield "## Topics"
    yield ""
    yield from config_section(TOPIC_CONFIGS, scope=False)
    yield ""
    yield "## Brokers"
    yield ""
    yield "`read-only` values are read at start; the others can be changed on a running broker, for one broker"
    yield "(`per-broker`) or for all of them at once (`cluster-wide`)."
    yield ""
    yield from config_section(BROKER_CONFIGS, scope=True)


def versions(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def api_versions_page() -> Iterator[str]:
    yield "# Kafka APIs served"
    yield ""
    yield "What a broker answers to an ApiVersions request. A version is listed only when its semantics are served,"
    yield "with one exception that clients need: Produce is listed from 0, although record formats older than v2 are"
    yield "refused, because older librdkafka ties compression to it. InitProducerId 6 is not served: it begins"
    yield "two-phase commits (KIP-939), which Kafka 4.3 does not offer either (its version 6 is marked as unstable)."
    yield ""
    yield from _served_table(SERVED)
    yield ""
    yield "## Between the nodes of a cluster"
    yield ""
    yield "These are served on the CONTROLLER listener alone, to nodes that have authenticated. ApiVersions does not"
    yield "list them, and a client that sends one is disconnected."
    yield ""
    yield from _served_table(INTERNAL)


def authorization_page() -> Iterator[str]:
    yield "# What requests need"
    yield ""
    yield "A broker with an [authorizer](../guide/security.md#access-rules) checks these operations, for Kafka's"
    yield "requests those that Kafka checks. Access is checked before existence: a client without access gets the"
    yield "same response whether a topic, a group or a transactional id exists or not. Topic ids are the exception,"
    yield "as in Kafka: every client learns that one is unknown. Requests that are forwarded to the active controller"
    yield "are judged there, with the client's own principal and address."
    yield ""
    yield '"Left out" means that the response has no error, and nothing that the client may not see.'
    yield ""
    rows = sorted(CHECKS.items())
    yield from table(
        ("API", "operation", "on", "error of a client that may not", "applies to"),
        (
            (_words(key), _words(check.operation), _words(check.resource_type), _error(check), check.note)
            for key, checks in rows
            for check in checks
        ),
    )
    yield ""
    yield "## Without a check"
    yield ""
    yield from table(("API", "reason"), ((_words(key), reason) for key, reason in sorted(WITHOUT_CHECK.items())))
    yield ""
    yield "Requests between the nodes of a cluster are served on the CONTROLLER listener alone, to nodes that have"
    yield "authenticated. A client cannot send them, nor fetch as a replica, nor fetch `__cluster_metadata`."


def _error(check: AccessCheck) -> str:
    return "left out" if check.error is None else f"`{check.error.name}`"


def _words(value: ApiKey | Operation | AclResourceType) -> str:
    return "".join(word.title() for word in value.name.split("_"))


def _served_table(apis: Iterable[ServedApi]) -> Iterator[str]:
    rows = sorted((api.key, api.min_version, api.max_version, api.module) for api in apis)
    yield from table(
        ("key", "API", "versions", "handler"),
        (
            (
                str(key.value),
                _words(key),
                versions(low, high),
                f"`broker/api/{module}.py`",
            )
            for key, low, high, module in rows
        ),
    )


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from commands(inner, click.Context(inner, info_name=name, parent=context))


def cli_page() -> Iterator[str]:
    yield "# Command line reference"
    yield ""
    yield "Every command prints its own page with `--help`; these are all of them."
    top = click.Context(cli, info_name="headrace", color=False, terminal_width=HELP_COLUMNS, **cli.context_settings)
    for command, context in commands(cli, top):
        yield ""
        yield f"## {context.command_path}"
        yield ""
        yield "```"
        yield from (line.rstrip() for line in command.get_help(context).splitlines())
        yield "```"


def scrape() -> str:
    """The metrics page of a broker with a listener for other nodes and an audit log that has just started."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    configs = {"headrace.metrics.listen": f"127.0.0.1:{port}", "listeners": listeners}
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(config={**configs, "headrace.audit.dir": folder}):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SCRAPE_SECONDS_MAX) as page:
            text: bytes = page.read()
    return text.decode()


def metrics_page() -> Iterator[str]:
    yield "# Metrics reference"
    yield ""
    yield "What a scrape of `headrace.metrics.listen` gives, in the text format of Prometheus. Histograms come as"
    yield "`_bucket`, `_sum` and `_count`. A line with labels appears when there is something to count."
    yield ""
    lines = scrape().splitlines()
    described = [line.split(" ", 3)[2:] for line in lines if line.startswith("# HELP ")]
    kinds = dict(line.split(" ")[2:] for line in lines if line.startswith("# TYPE "))
    yield from table(("name", "kind", "meaning"), ((f"`{name}`", kinds[name], text) for name, text in described))


def limits_page() -> Iterator[str]:
    yield "# Limits reference"
    yield ""
    yield "Bounds that no configuration key sets; those that can be set are in"
    yield "[the configuration reference](configuration.md#brokers)."
    for heading, sources in LIMITS.items():
        yield ""
        yield f"## {heading}"
        yield ""
        yield from table(("name", "value", "meaning"), (row for source in sources for row in limit_rows(*source)))


def limit_rows(module: ModuleType, only: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and meaning of the constants of a module: those in `only`, or all of them."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if only and name not in only:
                continue
            docstring = following.value if isinstance(following, ast.Expr) else None
            meaning = str(docstring.value) if isinstance(docstring, ast.Constant) else ""
            value = getattr(module, name)
            yield f"`{name}`", f"{value:,}{in_words(name.lower().replace('_', '.'), value)}", meaning


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "configuration.md": configuration_page,
    "api-versions.md": api_versions_page,
    "authorization.md": authorization_page,
    "cli.md": cli_page,
    "metrics.md": metrics_page,
    "limits.md": limits_page,
}


def raft_diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield f"    [*] --> {Role.FOLLOWER}: the voter set names it"
    yield f"    [*] --> {Role.OBSERVER}: it does not"
    for (role, event), following in TRANSITIONS.items():
        yield f"    {role} --> {following}: {event}"


def handshake_diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    for state in HandshakeState:
        yield f"    {state.name}: {state}"
    yield f"    [*] --> {HandshakeState.AWAITING_CHALLENGE.name}: the initiator"
    yield f"    [*] --> {HandshakeState.AWAITING_HELLO.name}: the acceptor"
    for (state, event), following in HANDSHAKE_TRANSITIONS.items():
        yield f"    {state.name} --> {following.name}: {event}"


def sasl_diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    for state in SaslState:
        yield f"    {state.name}: {state}"
    yield f"    [*] --> {SaslState.MECHANISM.name}: the connection begins"
    for (state, event), following in SASL_TRANSITIONS.items():
        yield f"    {state.name} --> {following.name}: {event}"
    yield f"    {SaslState.REFUSED.name} --> [*]"


def lifecycle_diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    for state in LifecycleState:
        yield f"    {state.name}: {state.capitalize()}"
    yield f"    [*] --> {LifecycleState.INITIAL.name}"
    for (state, event), following in LIFECYCLE_TRANSITIONS.items():
        yield f"    {state.name} --> {following.name}: {event}"
    yield f"    {LifecycleState.STOPPED.name} --> [*]"
    yield f"    {LifecycleState.FAILED.name} --> [*]"


def group_diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield f"    [*] --> {GroupState.EMPTY}: the first member or commit names the group"
    for (state, event), following in GROUP_TRANSITIONS.items():
        yield f"    {state} --> {following}: {event}"
    yield f"    {GroupState.DEAD} --> [*]"


def transaction_diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield f"    [*] --> {TransactionState.EMPTY}"
    for state, preceding in PRECEDING.items():
        for before in TransactionState:
            if before in preceding and before is not state:
                yield f"    {before} --> {state}"
    yield f"    {TransactionState.DEAD} --> [*]"


def layers_diagram() -> Iterator[str]:
    """Draw the import contracts between packages of pyproject.toml: arrows are allowed, crossed lines forbidden."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(
        [[name.strip(" ()").removeprefix("headrace.") for name in layer.split("|")] for layer in contract["layers"]]
        for contract in contracts
        if contract["type"] == "layers"
    )
    names = {name for layer in layers for name in layer}
    forbidden = {
        (source, target)
        for contract in contracts
        if contract["type"] == "forbidden"
        for source in (name.removeprefix("headrace.") for name in contract["source_modules"])
        for target in (name.removeprefix("headrace.") for name in contract["forbidden_modules"])
        if source in names and target in names
    }
    yield "flowchart TD"
    for upper, lower, below in zip(layers, layers[1:], [*layers[2:], []], strict=False):
        # What the next layer must not import is still below this one.
        lower = lower + [target for target in below if all((name, target) in forbidden for name in lower)]
        for source in upper:
            refused = [target for target in lower if (source, target) in forbidden]
            yield f"    {source} --> {' & '.join([name for name in lower if name not in refused] or below)}"
            yield from (f"    {source} -. never .-x {target}" for target in refused)
    world = next(contract for contract in contracts if "socket" in contract.get("forbidden_modules", ()))
    yield f"    world[/{len(world['forbidden_modules'])} modules such as os, socket, threading and time/]"
    yield "    ports -- ports/real --> world"
    yield "    classDef pure stroke-width:3px"
    yield f"    class {','.join(name.removeprefix('headrace.') for name in world['source_modules'])} pure"


class Diagram(NamedTuple):
    page: str
    source: str
    """The table in the code that it is drawn from."""
    draw: Callable[[], Iterator[str]]

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?<=^```mermaid\n){re.escape(self.heading)}\n.*?(?=^```$)", re.MULTILINE | re.DOTALL)

    @property
    def heading(self) -> str:
        return f"%% Drawn by `make docs` from {self.source}: change that."


DIAGRAMS = (
    Diagram("internals/README.md", "the contracts in pyproject.toml", layers_diagram),
    Diagram("internals/raft.md", "core/raft/roles.py", raft_diagram),
    Diagram("internals/peer-links.md", "core/peers/handshake.py", handshake_diagram),
    Diagram("internals/membership.md", "core/controller/lifecycle.py", lifecycle_diagram),
    Diagram("internals/transaction.md", "core/transactions/states.py", transaction_diagram),
    Diagram("guide/security.md", "core/access/sasl.py", sasl_diagram),
    Diagram("guide/groups.md", "core/groups/states.py", group_diagram),
)


def stale_diagrams(*, only_check: bool) -> Iterator[str]:
    for diagram in DIAGRAMS:
        path = ROOT / "docs" / diagram.page
        text = path.read_text()
        found = diagram.pattern.search(text)
        if found is None:
            raise SystemExit(f"docs/{diagram.page} has no Mermaid block that begins with: {diagram.heading}")
        content = "\n".join((diagram.heading, *diagram.draw(), ""))
        if found[0] != content:
            yield diagram.page
            if not only_check:
                path.write_text(f"{text[: found.start()]}{content}{text[found.end() :]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    only_check: bool = parser.parse_args().check
    stale = [*stale_diagrams(only_check=only_check)]
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        path = REFERENCE / name
        content = "\n".join((NOTE, "", *page(), ""))
        if path.is_file() and path.read_text() == content:
            continue
        stale.append(name)
        if not only_check:
            path.write_text(content)
    if stale and only_check:
        print(f"docs is behind the code in {', '.join(stale)}: run make docs")
        return 1
    print(f"docs: {'wrote ' + ', '.join(stale) if stale else 'up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
