"""Every reader of foreign bytes: what was found before stays fixed, and a slice of a campaign finds nothing new."""

import pytest

from tools.fuzz import campaign, corpus
from tools.fuzz.catalog import targets
from tools.fuzz.mutation import Mutator
from tools.fuzz.target import Target

DECODES = 400
"""More of them by `python -m tools.fuzz.run --decodes 500000`."""

SEED = 20
EVERY_TARGET = [pytest.param(target, id=name) for name, target in targets().items()]


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_what_is_kept_is_read_without_surprise(target: Target) -> None:
    for data in (*corpus.load(corpus.CORPUS, target.name), *corpus.load(corpus.FINDINGS, target.name)):
        target.read(data)


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_mutated_inputs_are_read_without_surprise(target: Target) -> None:
    outcome = campaign.attack(target, decodes=DECODES, seed=SEED)
    assert outcome.decodes == DECODES
    assert [(data.hex(), kind) for data, kind in outcome.findings] == []


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_some_inputs_are_accepted_and_some_refused(target: Target) -> None:
    """A target that refuses everything would look at nothing but its first line."""
    mutator = Mutator(SEED, target.seeds())
    assert any(target.read(seed) for seed in target.seeds())
    assert any(not target.read(mutator.next()) for _ in range(DECODES))


def test_files_of_the_corpus_belong_to_targets() -> None:
    kept = {path.stem for folder in (corpus.CORPUS, corpus.FINDINGS) for path in folder.glob("*.hex")}
    assert kept <= targets().keys()


def _target(read: object) -> Target:
    return Target(name="of-this-test", read=read, seeds=lambda: [b"seed of a test"], sources=())


def test_an_undocumented_error_is_a_finding_with_its_input() -> None:
    def read(data: bytes) -> bool:
        if len(data) < 10:
            raise KeyError("undocumented")
        return True

    outcome = campaign.attack(_target(read), decodes=500, seed=SEED)
    (data, kind), *more = outcome.findings
    assert len(data) < 10
    assert kind == "KeyError: 'undocumented'"
    assert more == []


def test_reading_without_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_data: bytes) -> bool:
        while True:
            pass

    monkeypatch.setattr(campaign, "CHUNK_S_MAX", 0.2)
    outcome = campaign.attack(_target(read), decodes=1, seed=SEED)
    assert [kind.partition(":")[0] for _, kind in outcome.findings] == ["Finding"]


def test_a_believed_length_is_a_finding() -> None:
    def read(_data: bytes) -> bool:
        return bool(bytearray(1 << 34))

    with campaign.bounded_address_space():
        outcome = campaign.attack(_target(read), decodes=1, seed=SEED)
    assert [kind.partition(":")[0] for _, kind in outcome.findings] == ["MemoryError"]


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, second = (Mutator(SEED, [b"one", b"another"]) for _ in range(2))
    assert [first.next() for _ in range(200)] == [second.next() for _ in range(200)]
