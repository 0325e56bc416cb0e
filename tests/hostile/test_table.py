"""The table of what hostile clients did to a healthy one."""

import json

from tests.hostile.ground import turn_percentile_s
from tests.hostile.table import rows, table


def line(attack: str, *, p99_ms: float, longest_turn_ms: float) -> str:
    return json.dumps(
        {
            "attack": attack,
            "rounds": 40,
            "p50_ms": 0.5,
            "p99_ms": p99_ms,
            "p99_alone_ms": 2.0,
            "longest_turn_ms": longest_turn_ms,
            "turn_p99_ms": 0.25,
            "broker_waited": 0.125,
            "client_waited": 0.5,
            "resident_mb": 40.0,
        }
    )


def test_a_row_has_the_worst_of_an_attacks_cases_and_the_last_line_counts_all() -> None:
    recorded = [
        line("test_sizes_that_no_frame_has[0]", p99_ms=1.0, longest_turn_ms=0.9),
        line("test_sizes_that_no_frame_has[7]", p99_ms=6.5, longest_turn_ms=0.2),
        line("test_a_bomb_is_refused_where_records_are_opened[gzip]", p99_ms=5.9, longest_turn_ms=50.0),
    ]
    assert list(table(list(rows(recorded))))[2:] == [
        "| sizes that no frame has (worst of 2) | 0.5 | 6.5 | 0.9 | 0.25 | 12% | 50% |",
        "| a bomb in a compacted topic, gzip | 0.5 | 5.9 | 50.0 | 0.25 | 12% | 50% |",
        "",
        "Alone, its p99 was 2.00 ms; 2 of 3 attacks left it within 3 times, and in 2 no turn of the loop took 1 ms.",
    ]


def test_the_percentile_of_turns_is_that_of_the_turns_between_two_scrapes() -> None:
    name = 'headrace_loop_turn_seconds_bucket{{le="{}"}}'.format
    before = {name("0.001"): 5.0, name("0.01"): 50.0, name("+Inf"): 50.0}
    after = {name("0.001"): 104.0, name("0.01"): 150.0, name("+Inf"): 150.0}
    assert turn_percentile_s(before, after, 0.99) == 0.001
    assert turn_percentile_s(before, after, 0.995) == 0.01
