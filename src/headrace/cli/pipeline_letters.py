"""`headrace pipeline replay-dlq`: list dead letters by reason and send them again."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.connection import bootstrap_option
from headrace.cli.console import print_json, print_table
from headrace.cli.failures import Misuse
from headrace.cli.options import json_option
from headrace.cli.pipeline_places import chosen_bootstrap, load, pipeline_argument, told_failures
from headrace.operations.amounts import count_text
from headrace.operations.times import time_text

if TYPE_CHECKING:
    from headrace.client import ConsumerRecord
    from headrace.spark.pipelines.dead_letters import DeadLetters, ReplayResult

REASONS_SHOWN_MAX = 100
OTHER_REASONS = "(other reasons)"


@click.command("replay-dlq")
@pipeline_argument
@click.option("--reason", metavar="TEXT", help="Send only dead letters whose reason contains this text.")
@click.option("--limit", type=click.IntRange(1), help="Send at most this many dead letters.")
@click.option("--list", "is_list", is_flag=True, help="List the dead letters by reason without sending them.")
@click.option("--dry-run", is_flag=True, help="Show which dead letters would be sent.")
@click.option(
    "--rewound", is_flag=True, help="Also send dead letters whose records are read again because of a rewind."
)
@bootstrap_option
@json_option
@click.pass_context
def replay_dlq(
    ctx: click.Context,
    place: Path,
    bootstrap: str,
    reason: str | None,
    limit: int | None,
    is_list: bool,
    dry_run: bool,
    rewound: bool,
    as_json: bool,
) -> None:
    """Send dead letters back to their source topics.

    Each is sent once, even if the command is interrupted and repeated. Dead letters that are not selected stay in the
    dead letter topic and can be sent later.
    """
    from headrace.spark.pipelines.checkpoints import Checkpoint
    from headrace.spark.pipelines.dead_letters import DeadLetters, reason_of
    from headrace.spark.pipelines.rewound_letters import reread_choice
    from headrace.spark.pipelines.topics import client_settings

    pipeline = load(place)
    topic = pipeline.bad_records.topic
    if topic is None:
        raise Misuse(f"{pipeline.file} has no dead letter topic (bad_records.topic)")
    settings = client_settings(chosen_bootstrap(ctx, pipeline), pipeline)
    box = DeadLetters(settings=settings, pipeline=pipeline.name, topic=topic)
    with told_failures():
        is_reread = (lambda _letter: False) if rewound else reread_choice(Checkpoint(pipeline.checkpoint).note())

    def is_chosen(letter: "ConsumerRecord") -> bool:
        return reason is None or reason in reason_of(letter)

    if is_list:
        _print_reasons(box, is_chosen, as_json)
    elif dry_run:
        _print_dry_run(box, is_chosen, is_reread, limit, as_json)
    else:
        _print_replay(box.replay(is_chosen, is_reread=is_reread, limit=limit), as_json)


def _print_replay(found: "ReplayResult", as_json: bool) -> None:
    if as_json:
        print_json(found._asdict())
        return
    click.echo(f"sent {count_text(found.sent, 'letter')} again, left {found.passed_over} for later")
    _say_rewound(found.before_rewind)


def _say_rewound(count: int) -> None:
    if count:
        click.echo(
            f"{count_text(count, 'letter')} from before the last rewind were not sent: the pipeline reads their "
            "records again, so they would be processed twice (--rewound sends them anyway)",
            err=True,
        )


@dataclass(slots=True)
class _Reason:
    letters: int = 0
    left: int = 0
    first_ms: int = 0
    last_ms: int = 0


def _print_reasons(box: "DeadLetters", is_chosen: "Callable[[ConsumerRecord], bool]", as_json: bool) -> None:
    from headrace.spark.pipelines.dead_letters import reason_of

    found: dict[str, _Reason] = {}
    for letter in box.letters():
        if not is_chosen(letter.record):
            continue
        name = reason_of(letter.record)
        known = found.setdefault(name if name in found or len(found) < REASONS_SHOWN_MAX else OTHER_REASONS, _Reason())
        known.letters += 1
        known.left += not letter.is_sent
        known.first_ms = min(known.first_ms or letter.record.timestamp, letter.record.timestamp)
        known.last_ms = max(known.last_ms, letter.record.timestamp)
    ordered = sorted(found.items(), key=lambda pair: (-pair[1].left, -pair[1].letters, pair[0]))
    if as_json:
        print_json(
            [
                {
                    "reason": name,
                    "letters": each.letters,
                    "left": each.left,
                    "first_ms": each.first_ms,
                    "last_ms": each.last_ms,
                }
                for name, each in ordered
            ]
        )
        return
    print_table(
        ("left", "letters", "first", "last", "reason"),
        ((each.left, each.letters, time_text(each.first_ms), time_text(each.last_ms), name) for name, each in ordered),
        right=("left", "letters"),
        empty="no dead letters",
    )


def _print_dry_run(
    box: "DeadLetters",
    is_chosen: "Callable[[ConsumerRecord], bool]",
    is_reread: "Callable[[ConsumerRecord], bool]",
    limit: int | None,
    as_json: bool,
) -> None:
    from headrace.spark.pipelines.dead_letters import ReplayResult, reason_of

    reasons: Counter[str] = Counter()
    passed_over = before_rewind = 0
    for letter in box.letters():
        if letter.is_sent:
            continue
        if not is_chosen(letter.record):
            passed_over += 1
        elif is_reread(letter.record):
            before_rewind += 1
        elif limit is None or reasons.total() < limit:
            name = reason_of(letter.record)
            reasons[name if name in reasons or len(reasons) < REASONS_SHOWN_MAX else OTHER_REASONS] += 1
    found = ReplayResult(sent=reasons.total(), passed_over=passed_over, before_rewind=before_rewind)
    if as_json:
        print_json({**found._asdict(), "reasons": dict(reasons.most_common())})
        return
    click.echo(f"would send {count_text(found.sent, 'letter')} again, and leave {found.passed_over} for later")
    print_table(
        ("letters", "reason"), ((count, name) for name, count in reasons.most_common()), right=("letters",), empty=""
    )
    _say_rewound(found.before_rewind)
