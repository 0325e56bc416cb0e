"""The bare loops take what the loads send, and give what they should."""

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.bench.errors import RunRejected
from headrace.bench.loads import LARGE, SINGLE, ProduceLoad
from headrace.bench.replay import ReplayClient
from tools.bench.floor import AppendFloorRounds, GiveFloorRounds, SyncRounds


@pytest.mark.slow
@pytest.mark.parametrize("load", [replace(SINGLE, bytes_max=20_000), replace(LARGE, bytes_max=8_000_000)])
def test_the_bare_loop_appends_what_it_is_sent(tmp_path: Path, any_client: ReplayClient, load: ProduceLoad) -> None:
    found = AppendFloorRounds(tmp_path, any_client, load)()
    assert found["requests_per_second"] > 0
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_wrong_checksum_ends_the_bare_loop(
    tmp_path: Path, client: ReplayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.wire.records.builder.checksum", lambda batch: 7)
    # The Python client sums each batch again; the C client changes the sum it was given, which stays wrong.
    if client.description == "C replay":
        with pytest.raises(RunRejected):
            AppendFloorRounds(tmp_path, client, replace(SINGLE, bytes_max=2_000))()
    else:
        AppendFloorRounds(tmp_path, client, replace(SINGLE, bytes_max=2_000))()


@pytest.mark.parametrize("by_sendfile", [True, False])
def test_bytes_are_given(tmp_path: Path, by_sendfile: bool) -> None:
    found = GiveFloorRounds(tmp_path, by_sendfile=by_sendfile, total_bytes=3_500_000)()
    assert found["megabytes_per_second"] > 0
    assert found["cpu_seconds_per_gigabyte"] >= 0


def test_syncs_are_counted(tmp_path: Path) -> None:
    assert SyncRounds(tmp_path, size=200, seconds=0.05)()["per_second"] > 0
