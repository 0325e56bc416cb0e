"""The life cycle of a broker: which request it sends when, and when it opens partitions and admits clients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.controller.commands import BrokerRegistration, BrokerState
from headrace.core.controller.lifecycle import (
    CATCH_UP_MS,
    RETRY_MS,
    TRANSITIONS,
    AdmitClients,
    Beat,
    CatchUp,
    Effect,
    Fail,
    Lifecycle,
    LifecycleEvent,
    LifecycleState,
    OpenPartitions,
    Register,
    Stopped,
    Wait,
    Warn,
)
from headrace.model.errors import ErrorCode

HEARTBEAT_MS = 1_000.0
DUPLICATE_MS = 9_000.0
STALE = BrokerState(error=ErrorCode.STALE_BROKER_EPOCH)
DUPLICATE = BrokerRegistration(error=ErrorCode.DUPLICATE_BROKER_REGISTRATION, message="broker 1 runs elsewhere")


def new() -> Lifecycle:
    return Lifecycle(heartbeat_interval_ms=HEARTBEAT_MS, duplicate_wait_ms=DUPLICATE_MS)


def beat(epoch: int, *, fence: bool = False, shut_down: bool = False) -> Beat:
    return Beat(broker_epoch=epoch, wants_fence=fence, wants_shut_down=shut_down)


def running(epoch: int = 5) -> Lifecycle:
    machine = new()
    machine.begin()
    machine.registered(BrokerRegistration(epoch), 0)
    machine.reached(epoch)
    machine.beat_answered(BrokerState(is_caught_up=True, is_fenced=False))
    assert machine.image_changed(broker_epoch=epoch, is_fenced=False) == (AdmitClients(),)
    return machine


def test_a_start() -> None:
    machine = new()
    assert machine.begin() == (Register(previous_epoch=-1),)
    assert machine.registered(BrokerRegistration(5), 0) == (CatchUp(broker_epoch=5), Wait(delay_ms=HEARTBEAT_MS))
    assert machine.resume() == (beat(5, fence=True),)  # the image takes long: it keeps its session
    assert machine.beat_answered(BrokerState(is_fenced=True)) == (Wait(delay_ms=HEARTBEAT_MS),)
    assert machine.reached(5) == (OpenPartitions(), beat(5))
    assert machine.beat_answered(BrokerState(is_fenced=True)) == (Wait(delay_ms=CATCH_UP_MS),)
    assert machine.resume() == (beat(5),)
    assert machine.beat_answered(BrokerState(is_caught_up=True, is_fenced=False)) == (Wait(delay_ms=HEARTBEAT_MS),)
    assert machine.image_changed(broker_epoch=5, is_fenced=False) == (AdmitClients(),)
    assert machine.state is LifecycleState.UNFENCED


def test_nothing_is_opened_before_the_image_has_reached_this_registration() -> None:
    machine = new()
    machine.begin()
    machine.registered(BrokerRegistration(5), 0)
    assert machine.reached(4) == ()
    assert machine.image_changed(broker_epoch=4, is_fenced=False) == ()
    assert machine.image_changed(broker_epoch=5, is_fenced=False) == ()
    assert machine.state is LifecycleState.CATCHING_UP


def test_a_registration_is_repeated_until_a_controller_answers() -> None:
    machine = new()
    machine.begin()
    assert machine.unanswered() == (Wait(delay_ms=RETRY_MS),)
    assert machine.resume() == (Register(previous_epoch=-1),)
    assert machine.registered(BrokerRegistration(error=ErrorCode.REQUEST_TIMED_OUT), 0) == (Wait(delay_ms=RETRY_MS),)


@pytest.mark.parametrize(
    "error", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REGISTRATION]
)
def test_a_refusal_that_does_not_pass_ends_the_start(error: ErrorCode) -> None:
    machine = new()
    machine.begin()
    assert machine.registered(BrokerRegistration(error=error, message="why"), 0) == (Fail(message="why"),)
    assert machine.resume() == machine.unanswered() == ()


def test_a_node_id_in_use_is_waited_for_as_long_as_a_session_lasts() -> None:
    machine = new()
    machine.begin()
    message = DUPLICATE.message or ""
    assert machine.registered(DUPLICATE, 0) == (Warn(message=message), Wait(delay_ms=RETRY_MS))
    assert machine.registered(DUPLICATE, 5_000) == (Wait(delay_ms=RETRY_MS),)
    assert machine.registered(DUPLICATE, DUPLICATE_MS) == (Fail(message=message),)


def test_a_process_whose_node_id_was_taken_over_waits_as_long() -> None:
    """The registration of a process that was killed meanwhile may have reached the controller late."""
    machine = running()
    message = DUPLICATE.message or ""
    assert machine.beat_answered(STALE) == (Register(previous_epoch=5),)
    assert machine.registered(DUPLICATE, 0) == (Warn(message=message), Wait(delay_ms=RETRY_MS))
    assert machine.resume() == (Register(previous_epoch=5),)
    assert machine.registered(DUPLICATE, DUPLICATE_MS) == (Fail(message=message),)


def test_a_forgotten_broker_registers_again_and_keeps_its_partitions_open() -> None:
    machine = running()
    assert machine.beat_answered(STALE) == (Register(previous_epoch=5),)
    machine.registered(BrokerRegistration(9), 0)
    assert machine.reached(9) == (beat(9),)
    assert machine.image_changed(broker_epoch=9, is_fenced=False) == ()  # clients were admitted before
    assert machine.state is LifecycleState.UNFENCED


def test_a_broker_that_was_fenced_asks_to_be_unfenced() -> None:
    machine = running()
    assert machine.image_changed(broker_epoch=5, is_fenced=True) == ()
    assert machine.state is LifecycleState.FENCED
    assert machine.resume() == (beat(5),)
    assert machine.image_changed(broker_epoch=5, is_fenced=False) == ()
    assert machine.state is LifecycleState.UNFENCED


class TestStops:
    def test_the_controller_lets_the_broker_go(self) -> None:
        machine = running()
        assert machine.stop(is_alone=False) == (beat(5, shut_down=True),)
        assert machine.unanswered() == (Wait(delay_ms=RETRY_MS),)
        assert machine.resume() == (beat(5, shut_down=True),)
        assert machine.beat_answered(BrokerState()) == (Wait(delay_ms=RETRY_MS),)
        assert machine.beat_answered(BrokerState(should_shut_down=True)) == (Stopped(),)
        assert machine.released() == ()

    def test_it_does_not_wait_for_ever(self) -> None:
        machine = running()
        machine.stop(is_alone=False)
        assert machine.released() == (Stopped(),)
        assert machine.unanswered() == machine.resume() == ()

    def test_a_broker_that_is_the_whole_cluster_stops_at_once(self) -> None:
        assert running().stop(is_alone=True) == (Stopped(),)

    def test_a_broker_that_never_registered_stops_at_once(self) -> None:
        machine = new()
        machine.begin()
        assert machine.stop(is_alone=False) == (Stopped(),)
        assert machine.registered(BrokerRegistration(5), 0) == ()

    def test_a_forgotten_broker_stops_at_once(self) -> None:
        machine = running()
        machine.stop(is_alone=False)
        assert machine.beat_answered(STALE) == (Stopped(),)


def test_every_state_but_the_last_can_be_left() -> None:
    left = {state for state, _ in TRANSITIONS}
    assert left == set(LifecycleState) - {LifecycleState.STOPPED, LifecycleState.FAILED}
    assert {event for _, event in TRANSITIONS} == set(LifecycleEvent)


events = st.lists(
    st.sampled_from(
        ["resume", "unanswered", "registered", "duplicate", "reached", "fenced", "unfenced", "stale", "beat", "stop"]
    ),
    max_size=40,
)


@given(events)
def test_partitions_are_opened_once_and_before_clients_are_admitted(script: list[str]) -> None:
    machine = new()
    effects: list[Effect] = list(machine.begin())
    epoch = 0
    for event in script:
        match event:
            case "registered":
                epoch += 1
                effects += machine.registered(BrokerRegistration(epoch), 0)
            case "duplicate":
                effects += machine.registered(DUPLICATE, 0)
            case "reached":
                effects += machine.reached(machine.broker_epoch)
            case "fenced" | "unfenced":
                effects += machine.image_changed(broker_epoch=machine.broker_epoch, is_fenced=event == "fenced")
            case "stale":
                effects += machine.beat_answered(STALE)
            case "beat":
                effects += machine.beat_answered(BrokerState(is_fenced=False))
            case "stop":
                effects += machine.stop(is_alone=False)
            case _:
                effects += getattr(machine, event)()
    kinds = [type(effect) for effect in effects]
    assert kinds.count(OpenPartitions) <= 1
    assert kinds.count(AdmitClients) <= 1
    if AdmitClients in kinds:
        assert kinds.index(CatchUp) < kinds.index(OpenPartitions) < kinds.index(AdmitClients)


def test_a_broker_that_lacks_logs_registers_again_before_it_opens_any() -> None:
    machine = new()
    machine.begin()
    machine.registered(BrokerRegistration(5), 0)
    assert machine.reached(5, lacks_logs=True) == (Register(previous_epoch=-1),)
    assert machine.reached(5) == ()
    assert machine.registered(BrokerRegistration(7), 0) == (CatchUp(broker_epoch=7), Wait(delay_ms=HEARTBEAT_MS))
    assert machine.reached(7) == (OpenPartitions(), beat(7))


def test_a_broker_that_serves_does_not_look_for_logs_again() -> None:
    machine = running()
    assert machine.beat_answered(STALE) == (Register(previous_epoch=5),)
    machine.registered(BrokerRegistration(9), 0)
    assert machine.reached(9, lacks_logs=True) == (beat(9),)
