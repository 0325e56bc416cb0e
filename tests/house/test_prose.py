"""The rules of language: banned phrases, openings of docstrings, names of modules and classes, and commit subjects."""

import ast
import json
from pathlib import Path

import pytest

from tools import prose_check
from tools.prose_check import LIMITS, ROOT, Place, exceeded, functions, openings, phrases, repeated, subject_fault

PATH = ROOT / "src" / "headrace" / "client" / "types.py"


@pytest.mark.slow
def test_no_count_exceeds_its_limit() -> None:
    assert not exceeded(prose_check.count(), json.loads(LIMITS.read_text())), "python tools/prose_check.py --show"


def test_a_count_without_a_limit_is_refused() -> None:
    assert exceeded({"new": 1, "old": 2, "none": 0}, {"old": 1}) == {"new": 1, "old": 2}


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("Nobody asks.", '"nobody"', 1),
        ("The client\nwas\ntold.", '"are told"', 2),
        ("# written\n# anew", '"anew"', 2),
        ("for whom it may concern", '"whom"', 1),
        ("records are dropped without a\nword", '"without a word"', 1),
    ],
)
def test_phrases_are_found_across_lines(text: str, limit: str, line: int) -> None:
    assert [str(place) for place in phrases(PATH, text)] == [f"src/headrace/client/types.py:{line}: {limit}"]


def test_parts_of_words_are_not_phrases() -> None:
    assert not list(phrases(PATH, "marshalling, toldo, renewal"))


def test_docstrings_that_begin_with_a_question_word_are_found() -> None:
    text = (
        '"""What a client may ask."""\nLIMIT = 1\n"""How often."""\ndef f():\n    "Whether it is."\n    return "What"\n'
    )
    found = [(place.limit, place.line) for place in openings(PATH, ast.parse(text))]
    assert sorted(found) == [
        (prose_check.MODULE_OPENINGS, 1),
        (prose_check.OTHER_OPENINGS, 3),
        (prose_check.OTHER_OPENINGS, 5),
    ]


def test_functions_named_with_such_a_phrase_are_found() -> None:
    text = "def test_nobody_waits():\n    def is_told():\n        pass\n\n\ndef test_no_client_waits():\n    pass\n"
    assert [place.line for place in functions(PATH, ast.parse(text))] == [1, 2]


def definitions(*modules: str) -> list[str]:
    """Return the limits that a class counts towards if these modules define it."""
    src = ROOT / "src" / "headrace"
    found = [Place(prose_check.CLASSES, src / module, 1) for module in modules]
    return [place.limit for place in repeated({"Name": found})]


def test_a_blocking_class_and_its_asyncio_twin_are_one_definition() -> None:
    assert definitions("client/blocking/consumer.py", "client/aio/producer.py") == []
    assert definitions("client/blocking/consumer.py") == []


def test_repeated_class_names_are_found_in_one_package_and_in_several() -> None:
    assert definitions("log/a.py", "broker/b.py") == [prose_check.CLASSES]
    assert definitions("log/a.py", "log/sub/b.py") == [prose_check.CLASSES, prose_check.CLASSES_OF_ONE_PACKAGE]
    assert definitions("client/aio/a.py", "client/core/b.py") == [
        prose_check.CLASSES,
        prose_check.CLASSES_OF_ONE_PACKAGE,
    ]


@pytest.mark.parametrize(
    "subject",
    [
        "log: sync the directory after creating a segment",
        "spark, tests: bring the sessions together",
        "client: need no lookup after a restart\n\nWhy: because.",
        "Merge branch 'main'",
    ],
)
def test_subjects_in_the_imperative_pass(subject: str) -> None:
    assert subject_fault(subject) is None


@pytest.mark.parametrize(
    ("subject", "advice"),
    [
        ("sync the directory", "area: "),
        ("log: Sync the directory", "lower case"),
        ("log: sync the directory.", "full stop"),
        ("log: synced the directory", "imperative"),
        ("log: syncing the directory", "imperative"),
        ("log: sync " + "the directory " * 10, "at most"),
    ],
)
def test_other_subjects_get_advice(subject: str, advice: str) -> None:
    assert advice in str(subject_fault(subject))


def test_the_hook_checks_the_message_that_git_hands_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("log: syncs.\n")
    monkeypatch.setattr("sys.argv", ["prose_check.py", "--commit-message", str(message)])
    assert prose_check.main() == 1
    assert "commit subject" in capsys.readouterr().out
