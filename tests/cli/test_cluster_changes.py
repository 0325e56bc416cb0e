"""`headrace cluster features|voters|unregister`: changes of a cluster of two processes, of which one votes."""

import json
from collections.abc import Iterator

import pytest
from click.shell_completion import ShellComplete

from headrace.cli.main import COMPLETION_VARIABLE, cli
from headrace.testing import EmbeddedCluster
from tests.process_groups import wait_until

from .conftest import Headrace, caller, wait_for_completions

pytestmark = pytest.mark.process

COLUMNS = 80


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, controllers=1) as running:
        yield running


@pytest.fixture
def headrace(cluster: EmbeddedCluster) -> Headrace:
    return caller(cluster)


def levels(headrace: Headrace) -> dict[str, int]:
    return {one["name"]: one["level"] for one in json.loads(headrace("cluster", "features", "list", "--json").stdout)}


def quorum(headrace: Headrace) -> tuple[list[int], list[int]]:
    found = json.loads(headrace("cluster", "quorum", "--json").stdout)
    return found["voters"], found["observers"]


def test_features_are_lowered_raised_and_listed(headrace: Headrace) -> None:
    before = levels(headrace)
    name, level = "headrace.scan.version", before["headrace.scan.version"]
    assert level > 0
    checked = headrace("cluster", "features", "downgrade", f"{name}=0", "--dry-run").stdout
    assert checked == "the change is possible; nothing was changed\n"
    assert levels(headrace) == before
    headrace("cluster", "features", "downgrade", f"{name}=0", "--yes")
    assert levels(headrace) == {**before, name: 0}
    raised = headrace("cluster", "features", "upgrade", f"{name}={level}", "--json").stdout
    assert {one["name"]: one["level"] for one in json.loads(raised)} == before
    table = headrace("cluster", "features", "list").stdout
    assert f"{name}" in table
    assert all(len(line) <= COLUMNS for line in table.splitlines())


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("upgrade", "no.feature=1"), 1, 'the controller does not know the feature "no.feature": use one of'),
        (("upgrade", "metadata.version=99"), 1, "the controller supports metadata.version"),
        (("upgrade", "headrace.scan.version=0"), 1, "ask for a downgrade to lower it to 0"),
        (("upgrade", "headrace.scan.version=high"), 2, "headrace cluster features list shows levels"),
        (("upgrade", "headrace.scan.version"), 2, "write it as feature name=value"),
        (("downgrade", "headrace.scan.version=0"), 1, "--yes skips it"),
    ],
)
def test_features_that_cannot_be_changed(
    headrace: Headrace, arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    before = levels(headrace)
    refused = headrace("cluster", "features", *arguments, exit_code=exit_code)
    assert message in " ".join(refused.stderr.split())
    assert levels(headrace) == before


def test_an_observer_becomes_a_voter_and_is_removed_again(headrace: Headrace, cluster: EmbeddedCluster) -> None:
    leader = cluster.active_controller()
    other = next(node_id for node_id in cluster.node_ids if node_id != leader)
    assert quorum(headrace) == ([leader], [other])
    refused = headrace("cluster", "voters", "remove", str(other), "--yes", exit_code=1).stderr
    assert refused == f"headrace: node {other} is not a voter of the metadata quorum; voters: {leader}\n"
    added = headrace("cluster", "voters", "add", str(other)).stdout
    assert added == f"node {other} is a voter; voters: 1, 2\n"
    assert "is not an observer of the metadata quorum; observers: none" in (
        headrace("cluster", "voters", "add", str(other), exit_code=1).stderr
    )
    assert "2 controllers vote" in headrace("cluster", "status").stdout
    assert "--yes skips it" in headrace("cluster", "voters", "remove", str(other), exit_code=1).stderr
    removed = json.loads(headrace("cluster", "voters", "remove", str(other), "--yes", "--json").stdout)
    assert removed["voters"] == [leader]
    wait_until(lambda: quorum(headrace) == ([leader], [other]), "it is no observer")


def test_a_broker_that_is_gone_is_unregistered_and_may_return(headrace: Headrace, cluster: EmbeddedCluster) -> None:
    victim = next(node_id for node_id in cluster.node_ids if node_id != cluster.active_controller())
    running = headrace("cluster", "unregister", str(victim), "--yes", exit_code=1).stderr
    assert f"broker {victim} is running and would register again: stop it first" in running
    cluster.kill(victim)

    def registered() -> dict[int, bool]:
        found = json.loads(headrace("cluster", "brokers", "--json").stdout)["brokers"]
        return {broker["node_id"]: broker["is_fenced"] for broker in found}

    wait_until(lambda: registered().get(victim) is True, "it is not fenced")
    seen = {one["about"]: one for one in json.loads(headrace("doctor", "--json", exit_code=1).stdout)}
    assert seen[f"broker {victim}"]["seen"] == "is fenced: the controller hears nothing from it"
    assert seen["controller"]["level"] == "ok"
    assert "--yes skips it" in headrace("cluster", "unregister", str(victim), exit_code=1).stderr
    assert headrace("cluster", "unregister", str(victim), "--yes").stdout == f"unregistered broker {victim}\n"
    assert victim not in registered()
    unknown = headrace("cluster", "unregister", str(victim), "--yes", exit_code=1).stderr
    assert "is not registered: `headrace cluster brokers` lists the registered ones" in unknown
    cluster.restart(victim)
    assert registered()[victim] is False


def test_the_shell_completes_nodes_and_features(
    headrace: Headrace, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_completions(monkeypatch)
    completion = ShellComplete(cli, {}, "headrace", COMPLETION_VARIABLE)

    def completed(*words: str) -> list[str]:
        found = completion.get_completions(["cluster", *words, "--bootstrap", cluster.bootstrap_servers], "")
        return [item.value for item in found]

    leader = cluster.active_controller()
    other = next(node_id for node_id in cluster.node_ids if node_id != leader)
    assert completed("voters", "remove") == [str(leader)]
    assert completed("voters", "add") == [str(other)]
    assert completed("unregister") == []
    assert "metadata.version=" in completed("features", "upgrade")


@pytest.mark.parametrize("listing", [("status",), ("brokers",), ("quorum",), ("features", "list")])
def test_every_listing_fits_80_columns_and_has_json(headrace: Headrace, listing: tuple[str, ...]) -> None:
    assert json.loads(headrace("cluster", *listing, "--json").stdout)
    assert all(len(line) <= COLUMNS for line in headrace("cluster", *listing).stdout.splitlines())
