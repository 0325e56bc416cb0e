"""The card of the clients: the exit status reports failures, except those known to be the client's own."""

from compat.cases import CASES
from compat.clients import RELEASES
from compat.report import Column, Outcome, complaints
from compat.run import PAGE, told

FAILED = Outcome(result="fail", detail="nothing came")
PASSED = Outcome(result="pass")


def column(*excused: str, **outcomes: Outcome) -> Column:
    return Column(client="some", version="1.0", outcomes=outcomes, excused=excused)


def test_a_failure_that_nothing_excuses_fails_the_run() -> None:
    found = complaints([column(one=PASSED, two=FAILED)], {"a log": FAILED, "an index": PASSED})
    assert found == ["some 1.0, two: nothing came", "DumpLogSegments, a log: nothing came"]
    assert told(found) == 1


def test_a_failure_that_is_the_clients_own_is_shown_and_no_more() -> None:
    found = complaints([column("two", one=PASSED, two=FAILED)], {})
    assert found == []
    assert told(found) == 0


def test_what_excuses_a_failure_is_a_case_and_has_a_note() -> None:
    names = {case.name for case in CASES}
    excusing = [release for release in RELEASES if release.fails]
    assert excusing
    for release in excusing:
        assert set(release.fails) <= names
        assert "Apache Kafka" in release.note


def test_what_the_card_shows_as_failed_is_excused() -> None:
    """The last run that wrote the page had no failure of ours."""
    for line in PAGE.read_text().partition("## Failures")[2].partition("##")[0].splitlines():
        title, comma, rest = line.removeprefix("- ").partition(", ")
        if line.startswith("- ") and comma and ": " in rest and any(release.title == title for release in RELEASES):
            (release,) = (release for release in RELEASES if release.title == title)
            assert rest.partition(": ")[0] in release.fails
