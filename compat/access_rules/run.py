"""Asks both brokers, compares what they say about access, and keeps the counts for docs/compatibility.md."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from compat.access_rules import pairs
from compat.access_rules.targets import headrace, kafka
from compat.environments import Missing
from compat.segments import KAFKA_VERSION
from headrace.core.access.acls import AccessRule, PatternType, Permission
from headrace.model.access import AclResourceType, Operation

OUTCOMES = Path(__file__).parent / "outcomes.json"
BEGIN, END = "<!-- access rules -->", "<!-- end of access rules -->"
SETS = 100
REQUESTS_PER_SET = 50
SEED = 17
SHOWN_MAX = 20


def run_access_rules(seed: int = SEED, sets: int = SETS) -> int:
    """The exit status: 1 if an outcome differs; 0 where Apache Kafka cannot be had, which is said."""
    random = Random(seed)
    asked = refused = 0
    differing: list[str] = []
    try:
        with headrace() as ours, kafka() as theirs:
            for target in (ours, theirs):
                target.prepare()
            for number in range(sets):
                rules = pairs.rules(random)
                for target in (ours, theirs):
                    target.replace_rules(rules)
                for _ in range(REQUESTS_PER_SET):
                    wanted = pairs.request(random)
                    found, expected = (pairs.verdict(wanted.case.key, target.ask(wanted)) for target in (ours, theirs))
                    asked += 1
                    refused += bool(expected[0])
                    if found != expected:
                        outcomes = f"{found}, Apache Kafka {expected}"
                        differing.append(f"set {number}, {wanted}: {outcomes}, rules {shown(rules)}")
    except Missing as lacking:
        print(f"access rules beside Apache Kafka: not run, {lacking}", flush=True)
        return 0
    print(f"access rules: {asked} requests, {refused} refused, {len(differing)} differ", flush=True)
    for difference in differing[:SHOWN_MAX]:
        print(f"  {difference}", flush=True)
    kept = {"kafka": KAFKA_VERSION, "seed": seed, "sets": sets, "requests": asked, "refused": refused}
    OUTCOMES.write_text(json.dumps({**kept, "differing": len(differing)}, indent=1) + "\n")
    return 1 if differing else 0


def shown(rules: Sequence[AccessRule]) -> str:
    """Return the rules in short, to see why a decision was made."""
    return "; ".join(
        f"{Permission(rule.permission).name} {rule.principal} from {rule.host} {Operation(rule.operation).name} on "
        f"{AclResourceType(rule.resource_type).name} {PatternType(rule.pattern_type).name} {rule.resource_name!r}"
        for rule in rules
    )


def stored() -> Mapping[str, Any]:
    outcomes: Mapping[str, Any] = json.loads(OUTCOMES.read_text())
    return outcomes


def section(outcomes: Mapping[str, Any]) -> str:
    return "\n".join([BEGIN, "", *_lines(outcomes), "", END])


def _lines(outcomes: Mapping[str, Any]) -> Iterator[str]:
    yield "## Access rules"
    yield ""
    yield f"Random requests of two users under random access rules, beside Apache Kafka {outcomes['kafka']} with its"
    yield "StandardAuthorizer: literal, prefixed and wildcard patterns, hosts, denial, implied operations. The requests"
    yield "are those of [the table](reference/authorization.md) that Kafka has too, but for changes of voters. The"
    yield "errors of authorization must be the same in the same fields, and so must the topics, groups and"
    yield "transactional ids that a response lists, and the operations that it says are allowed."
    yield ""
    yield "| sets of rules | requests | refused by Kafka | differ |"
    yield "|---|---|---|---|"
    yield f"| {outcomes['sets']:,} | {outcomes['requests']:,} | {outcomes['refused']:,} | {outcomes['differing']:,} |"
