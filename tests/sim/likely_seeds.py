"""The order in which seeds are tried until one notices a known fault.

A fault must be noticed by some seed below a limit. The seed that was the first to notice it is tried first; when a
change leads that seed elsewhere, the test passes all the same if another one notices the fault, and only takes longer.
"""

from collections.abc import Iterator

FIRST_TO_NOTICE = {
    "apply_a_refused_change": 100,
    "change_voters_before_a_commit_of_the_own_term": 43,
    "fence_by_a_hint_of_an_earlier_epoch": 137,
    "fence_on_a_reset_alone": 5,
    "forget_owners_by_the_wall_clock_alone": 74,
    "forget_producers_by_the_wall_clock_alone": 3,
    "lend_ids_before_their_markers": 11,
    "send_markers_before_the_outcome_is_committed": 9,
    "serve_reads_without_a_round": 36,
    "tell_an_assignment_once": 28,
    "vote_by_node_id_alone": 17,
}
"""Of faults that none of the first few seeds notices."""


def likely_first(fault: str, seeds_max: int) -> Iterator[int]:
    likely = FIRST_TO_NOTICE.get(fault, 0)
    assert likely < seeds_max, f"{fault} must be noticed within {seeds_max} seeds, and is listed with {likely}"
    yield likely
    yield from (seed for seed in range(seeds_max) if seed != likely)
