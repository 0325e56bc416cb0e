"""A slice of the socket campaign: mutated frames of every API at one broker, beside a healthy client."""

import os

import pytest

from tests.hostile.socket_fuzzer import RESIDENT_GROWTH_MAX, SocketCampaign

pytestmark = pytest.mark.process

FRAMES = int(os.environ.get("HOSTILE_FRAMES", "3000"))
"""More of them by `python -m tools.fuzz.run --frames 1000000`."""

SEED = 20


def test_mutated_frames_harm_no_client() -> None:
    with SocketCampaign(seed=SEED) as campaign:
        campaign.send(FRAMES)
        campaign.wait_until_counted("headrace_protocol_errors_total", FRAMES / 10)
        campaign.wait_until_counted("headrace_requests_total", FRAMES / 10)
        report = campaign.report()
        assert report["frames"] == FRAMES
        assert report["handler_failures"] == 0
        assert float(str(report["resident_growth_mb"])) < RESIDENT_GROWTH_MAX / 1e6
        assert campaign.complaints() == []
