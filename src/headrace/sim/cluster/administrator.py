"""An administrator who changes metadata through any broker and reads it back."""

from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.client.types import NewTopic
from headrace.model.errors import RETRIABLE, ErrorCode
from headrace.sim.checkers.violation import require
from headrace.sim.cluster.brokers import CLIENT_PORT
from headrace.sim.cluster.context import ClusterContext
from headrace.sim.cluster.metadata_truth import ConfigRegister, ScratchTopic
from headrace.sim.node import VirtualNode
from headrace.sim.workloads import requests
from headrace.sim.workloads.connection import KafkaConnection
from headrace.wire.apis import ApiKey

NAME = "administrator"
REGISTERS = ("register-a", "register-b")
CONFIG = "retention.ms"
VERSION_BASE = 10_000_000
PAUSE_MS_MAX = 400
RESPONSE_MS_MAX = 25_000
PARTITIONS_MAX = 3

HONEST = "a broker refuses the change of an administrator only with an error that can be retried"
_REFUSALS = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def new_registers() -> list[NewTopic]:
    return [NewTopic(topic, partitions=1, configs={CONFIG: str(VERSION_BASE)}) for topic in REGISTERS]


class ClusterAdministrator:
    """Has one request at a time, each with a drawn broker."""

    def __init__(self, context: ClusterContext) -> None:
        self._context = context
        self.name = NAME
        self._entropy = context.world.entropy.branch(NAME)
        self._registers = [ConfigRegister(topic) for topic in REGISTERS]
        self._scratches = 0
        self._scratch = self._new_scratch()
        self._connection: KafkaConnection | None = None
        self._asked_ms = 0.0
        self._next_ms = 0.0
        self._open: Callable[[], None] = lambda: None
        """Called if the request gets no response."""
        self._follow_up: Callable[[], None] | None = None
        """The read of a change that has just been acknowledged."""
        self.stopped = False
        self.progress = 0
        self._progress_before = 0

    @property
    def _now_ms(self) -> float:
        return self._context.world.time.now_ms

    @property
    def settled(self) -> bool:
        return self._connection is None

    def hurry(self) -> None:
        self._progress_before = self.progress
        self._next_ms = 0.0

    def has_progressed(self) -> bool:
        return self.progress > self._progress_before

    # The turn

    def step(self) -> None:
        if self._connection is None:
            if not self.stopped and self._now_ms >= self._next_ms:
                self._next_ms = self._now_ms + self._entropy.below(PAUSE_MS_MAX)
                self._act()
            return
        connection = self._connection
        responses = connection.poll()
        for handle, message in responses:
            self._connection = None
            connection.wire.close()
            handle(message)
        if not responses and (connection.is_closed() or self._now_ms - self._asked_ms > RESPONSE_MS_MAX):
            self._connection = None
            connection.wire.reset()
            self._open()

    def _act(self) -> None:
        follow_up, self._follow_up = self._follow_up, None
        if follow_up is not None:
            follow_up()
            return
        nodes = self._context.cluster.nodes
        virtual = nodes[self._entropy.below(len(nodes))]
        register = self._registers[self._entropy.below(len(self._registers))]
        actions = (self._write, self._read, self._read, self._change_scratch, self._read_scratch)
        actions[self._entropy.below(len(actions))](virtual, register)

    def _ask(
        self,
        virtual: VirtualNode,
        api_key: ApiKey,
        version: int,
        request: object,
        handle: Callable[[Any], None],
        *,
        otherwise: Callable[[], None] = lambda: None,
    ) -> bool:
        """Send a request; return False if the broker refuses the connection."""
        world = self._context.world
        try:
            self._connection = KafkaConnection(world, virtual.machine.name, CLIENT_PORT, from_host=NAME)
        except ConnectionRefusedError:
            return False
        self._asked_ms = self._now_ms
        self._open = otherwise
        self._connection.send(api_key, version, request, handle)
        return True

    def _is_applied(self, code: int, message: str | None, *, or_twice: ErrorCode | None = None) -> bool:
        """Return whether a change is done; an error leaves its outcome open.

        `or_twice` is the error of a change that was carried out before: a broker forwards a request again when its
        connection to the controller broke.
        """
        if code == ErrorCode.NONE:
            self.progress += 1
            return True
        require(ErrorCode(code) in (*_REFUSALS, or_twice), HONEST, f"{ErrorCode(code).name}: {message}")
        return False

    def _read_elsewhere(self, read: Callable[[VirtualNode, ConfigRegister], None], register: ConfigRegister) -> None:
        """Read a change at once, from a drawn broker, which may not have heard of it."""
        nodes = self._context.cluster.nodes
        virtual = nodes[self._entropy.below(len(nodes))]
        self._follow_up = partial(read, virtual, register)
        self._next_ms = self._now_ms

    # Configs

    def _write(self, virtual: VirtualNode, register: ConfigRegister) -> None:
        version = register.requested + 1
        request = requests.config_change(register.topic, CONFIG, str(VERSION_BASE + version))

        def answered(response: Any) -> None:
            result = response.responses[0]
            if self._is_applied(result.error_code, result.error_message):
                register.acknowledge(version)
                self._read_elsewhere(self._read, register)

        if self._ask(virtual, ApiKey.INCREMENTAL_ALTER_CONFIGS, requests.ALTER_CONFIGS, request, answered):
            register.request()

    def _read(self, virtual: VirtualNode, register: ConfigRegister) -> None:
        """Read from any broker, which must show everything that was acknowledged before."""
        acknowledged = register.acknowledged

        def answered(response: Any) -> None:
            result = response.results[0]
            if result.error_code:
                self._is_applied(result.error_code, result.error_message)
                return
            register.check(int(result.configs[0].value) - VERSION_BASE, floor=acknowledged)

        request = requests.config_of(register.topic, CONFIG)
        self._ask(virtual, ApiKey.DESCRIBE_CONFIGS, requests.DESCRIBE_CONFIGS, request, answered)

    # Topics

    def _new_scratch(self) -> ScratchTopic:
        self._scratches += 1
        return ScratchTopic(self._scratches)

    def _give_up_scratch(self) -> None:
        self._scratch = self._new_scratch()

    def _change_scratch(self, virtual: VirtualNode, register: ConfigRegister) -> None:
        scratch = self._scratch
        twice = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if scratch.exists else ErrorCode.TOPIC_ALREADY_EXISTS

        def answered(code: int, message: str | None) -> None:
            if self._is_applied(code, message, or_twice=twice):
                scratch.exists = not scratch.exists
                self._read_elsewhere(self._read_scratch, register)
            else:
                self._give_up_scratch()

        if scratch.exists:
            self._ask(
                virtual,
                ApiKey.DELETE_TOPICS,
                requests.DELETE_TOPICS,
                requests.topic_deletion(scratch.name),
                lambda response: answered(response.responses[0].error_code, response.responses[0].error_message),
                otherwise=self._give_up_scratch,
            )
        else:
            self._ask(
                virtual,
                ApiKey.CREATE_TOPICS,
                requests.CREATE_TOPICS,
                requests.new_topic(scratch.name, 1 + self._entropy.below(PARTITIONS_MAX)),
                lambda response: answered(response.topics[0].error_code, response.topics[0].error_message),
                otherwise=self._give_up_scratch,
            )

    def _read_scratch(self, virtual: VirtualNode, _register: ConfigRegister) -> None:
        scratch = self._scratch

        def answered(response: Any) -> None:
            code = response.topics[0].error_code
            if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                scratch.check(is_shown=code == ErrorCode.NONE)
            else:
                self._is_applied(code, None)

        self._ask(
            virtual,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            requests.DESCRIBE_TOPIC_PARTITIONS,
            requests.partitions_of(scratch.name),
            answered,
        )
