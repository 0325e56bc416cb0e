"""Push: subscriptions to topics over a WebSocket."""

import asyncio
from collections.abc import Mapping

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from headrace.manager.access.callers import caller_of
from headrace.manager.api.records import parse_positions
from headrace.manager.api.streams import opened_stream, stream_plan
from headrace.manager.limits import SUBSCRIPTIONS_PER_SOCKET_MAX
from headrace.manager.parts import ManagerParts
from headrace.manager.problems import ApiProblem, problem_of
from headrace.manager.record_views import record_view
from headrace.manager.subscription_frames import Acknowledge, Credit, Frame, Subscribe, Unsubscribe, decode_frame
from headrace.manager.subscriptions import Subscription, encoded_frame, problem_frame

router = APIRouter()


@router.websocket("/v1/subscriptions")
async def subscriptions(socket: WebSocket) -> None:
    await socket.accept()
    await _Session(socket, socket.app.state.parts).run()


class _Session:
    """The subscriptions of one WebSocket, by the ids that its client chose."""

    def __init__(self, socket: WebSocket, parts: ManagerParts) -> None:
        self._socket = socket
        self._parts = parts
        self._open: dict[str, Subscription] = {}

    async def run(self) -> None:
        try:
            while True:
                await self._receive()
        except WebSocketDisconnect:
            pass
        finally:
            tasks = [each.task for each in self._open.values() if each.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive(self) -> None:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        id: str | None = None
        try:
            frame = decode_frame(message.get("text") or message.get("bytes") or b"")
            id = frame.id
            await self._take(frame)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            await self._send(problem_frame(problem, id))

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Subscribe():
                await self._subscribe(frame)
            case Credit():
                self._subscription(frame.id).give_credit(frame.credit)
            case Acknowledge():
                self._subscription(frame.id).acknowledge(parse_positions(frame.positions))
            case Unsubscribe():
                await self._unsubscribe(frame.id)

    async def _subscribe(self, frame: Subscribe) -> None:
        if frame.id in self._open:
            raise ApiProblem(409, f'there is a subscription "{frame.id}" on this connection: choose another id')
        if len(self._open) >= SUBSCRIPTIONS_PER_SOCKET_MAX:
            raise ApiProblem(
                429, f"a connection has at most {SUBSCRIPTIONS_PER_SOCKET_MAX} subscriptions: open another connection"
            )
        masking = await self._parts.masks.masking(frame.topic, caller_of(self._socket))
        plan = stream_plan(
            frame.topic, masking=masking, partition=frame.partition, start=frame.start, time=frame.time,
            positions=parse_positions(frame.positions), filter=frame.filter, is_resumed=frame.positions is not None,
        )  # fmt: skip
        stream = await opened_stream(self._parts, plan)
        made = Subscription(
            frame.id, stream, plan, record_view(frame.shown), metrics=self._parts.metrics, send=self._send
        )
        made.give_credit(frame.credit)
        self._open[frame.id] = made
        made.start(lambda: self._open.pop(frame.id, None))

    async def _unsubscribe(self, id: str) -> None:
        task = self._subscription(id).task
        assert task is not None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._send({"type": "unsubscribed", "id": id})

    def _subscription(self, id: str) -> Subscription:
        found = self._open.get(id)
        if found is None:
            raise ApiProblem(404, f'there is no subscription "{id}" on this connection: send a frame subscribe first')
        return found

    async def _send(self, frame: Mapping[str, object]) -> None:
        await self._socket.send_text(encoded_frame(frame))
