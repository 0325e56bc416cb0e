"""A whole node in one thread on virtual ports: it serves, loses its power, and has lost nothing it promised."""

import errno

import pytest

from headrace.model.errors import ErrorCode
from headrace.sim.node import HOST, PORT
from headrace.sim.workloads import requests
from headrace.wire.apis import ApiKey
from tests.sim.kafka_client import KafkaClient
from tests.sim.scenes import LOOSE, SYNCED, Scene

pytestmark = pytest.mark.usefixtures("virtual_world_only")
SEEDS = range(4)
ENDS = 3
QUIET_STEPS = 200
WALL_JUMP_MS_MAX = 600_000
LARGE_VALUE_BYTES = 200_000


@pytest.mark.parametrize("seed", SEEDS)
def test_power_cuts_lose_nothing_acknowledged_after_a_sync(seed):
    scene = Scene(seed)
    for _ in range(ENDS):
        scene.work(scene.synced, batches=20 + scene.world.entropy.below(40))
        scene.machine.cut_power()
        scene.boot()
        scene.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_kills_lose_nothing_acknowledged_at_all(seed):
    scene = Scene(seed)
    for _ in range(ENDS):
        scene.work(scene.synced, scene.loose, batches=20 + scene.world.entropy.below(40))
        scene.machine.kill()
        scene.boot()
        scene.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_kills_power_cuts_and_clock_jumps_in_any_order(seed):
    scene = Scene(seed)
    entropy = scene.world.entropy
    for _ in range(2 * ENDS):
        scene.work(scene.synced, batches=20 + entropy.below(40))
        scene.machine.clock.jump_wall(entropy.below(2 * WALL_JUMP_MS_MAX) - WALL_JUMP_MS_MAX)
        (scene.machine.kill, scene.machine.cut_power, scene.virtual.stop)[entropy.below(3)]()
        scene.boot()
        scene.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_end_at_any_disk_call_loses_nothing_and_a_retry_doubles_nothing(seed):
    """Also of the recovery; producers send again what was not acknowledged."""
    scene = Scene(seed)
    entropy, machine = scene.world.entropy, scene.machine
    clients = scene.clients(scene.synced, idempotent=True)

    def arm(disk_calls_max):
        machine.cut_off_after(entropy.below(disk_calls_max), power=entropy.below(2) == 0)

    for _ in range(ENDS):
        arm(300)
        scene.work(batches=10_000, clients=clients)
        for _ in range(entropy.below(3)):
            arm(60)
            if scene.virtual.boots():
                machine.cut_power()
        scene.boot()
        scene.work(batches=5, clients=clients)
    for client in clients:
        client.drop()
    scene.check()


def test_a_clean_stop_keeps_everything_and_a_power_cut_afterwards_too():
    scene = Scene(11)
    scene.work(scene.synced, scene.loose, batches=50)
    scene.virtual.stop()
    for partition in scene.context.targets:
        partition.closed_cleanly()
    scene.machine.cut_power()
    scene.boot()
    scene.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unsynced_topic_may_lose_its_end_but_stays_whole(seed):
    scene = Scene(seed)
    for _ in range(2):
        scene.work(scene.loose, batches=20)
        scene.machine.cut_power()
        scene.boot()
        scene.check()


def test_a_topic_is_there_only_when_its_commit_is():
    scene = Scene(5)
    spawner, world = scene.machine.spawner, scene.world
    spawner.hold(name_contains="sync_metadata")
    asking, looking = KafkaClient(world), KafkaClient(world)
    asking.send(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, requests.new_topic("late", 1))
    for _ in range(QUIET_STEPS):
        world.step()
        assert asking.poll() == []
    assert looking.topic_metadata("late").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    scene.work(scene.synced, batches=10)
    spawner.release()
    (answer,) = asking.await_answers(1)
    assert answer.topics[0].error_code == 0
    assert looking.topic_metadata("late").error_code == 0


def test_a_sync_of_metadata_that_fails_without_the_disks_fault_is_repeated():
    scene = Scene(6)
    scene.machine.spawner.fail_next(RuntimeError("no helper took it"), name_contains="sync_metadata")
    client = KafkaClient(scene.world)
    assert client.create_topic("unlucky").error_code == 0
    assert client.topic_metadata("unlucky").error_code == 0
    scene.machine.kill()
    scene.boot()
    assert KafkaClient(scene.world).topic_metadata("unlucky").error_code == 0


def test_a_topic_whose_commit_was_cut_off_is_there_wholly_or_not_at_all():
    seen = set()
    for seed in range(12):
        scene = Scene(seed)
        client = KafkaClient(scene.world)
        client.send(ApiKey.CREATE_TOPICS, requests.CREATE_TOPICS, requests.new_topic("half", 3))
        for _ in range(scene.world.entropy.below(12)):
            scene.world.step()
        answered = bool(client.poll())
        scene.machine.cut_power()
        scene.boot()
        found = KafkaClient(scene.world).topic_metadata("half")
        assert found.error_code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert len(found.partitions) == (3 if found.error_code == 0 else 0)
        assert found.error_code == 0 or not answered
        seen.add(found.error_code)
    assert seen == {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_failed_sync_is_an_error_to_the_producer_and_never_an_acknowledgement():
    scene = Scene(8)
    scene.machine.disk.faults.fail("data_sync", code=errno.EIO, path_contains=f"{SYNCED}-0")
    client = KafkaClient(scene.world)
    client.send_produce(SYNCED, 0, [b"doomed"], timestamp=scene.machine.clock.wall_ms())
    (answer,) = client.await_answers(1)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_clients_that_stall_reset_and_leave_harm_no_other():
    scene = Scene(9)
    world = scene.world
    assert KafkaClient(world).create_topic("other").error_code == 0
    troubled = [KafkaClient(world) for _ in range(4)]
    for client in troubled:
        client.send_produce("other", 0, [b"x" * 500], timestamp=scene.machine.clock.wall_ms())
    troubled[0].wire.stall(sending=True)
    troubled[1].wire.stall(receiving=True)
    troubled[2].wire.finish()
    world.step()
    troubled[3].wire.reset()
    scene.work(scene.synced, batches=40)
    scene.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_large_batches_pass_through_sliced_streams(seed):
    scene = Scene(seed)
    client = KafkaClient(scene.world)
    values = [bytes([number]) * (LARGE_VALUE_BYTES + number) for number in range(6)]
    for value in values:
        client.send_produce(LOOSE, 0, [value], timestamp=scene.machine.clock.wall_ms())
    answers = client.await_answers(len(values))
    assert [response.responses[0].partition_responses[0].error_code for response in answers] == [0] * len(values)
    assert KafkaClient(scene.world).read_all(LOOSE, 0) == list(enumerate(values))


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_closes_its_own_connection_and_no_other(seed):
    scene = Scene(seed)
    noise = scene.world.entropy.branch("noise")
    noisy = [scene.world.connect(HOST, PORT) for _ in range(8)]
    for connection in noisy:
        connection.send(b"\xff" + noise.random_bytes(1 + noise.below(2_000)))
    scene.work(scene.synced, batches=30)
    scene.check()

    def all_closed():
        return all(connection.receive() is not None and connection.is_closed() for connection in noisy)

    scene.world.run_until(all_closed)
