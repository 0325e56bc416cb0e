"""Frames of WebSocket subscriptions: JSON objects with a `type`."""

from typing import Annotated, Literal

import msgspec

from headrace.manager.event_streams import POSITIONS
from headrace.manager.limits import (
    CREDIT_MAX,
    POSITIONS_LENGTH_MAX,
    SUBSCRIPTION_ID_LENGTH_MAX,
)
from headrace.manager.problems import ApiProblem
from headrace.manager.record_views import Shown

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=SUBSCRIPTION_ID_LENGTH_MAX)]
Positions = Annotated[str, msgspec.Meta(max_length=POSITIONS_LENGTH_MAX, pattern=POSITIONS)]
CreditCount = Annotated[int, msgspec.Meta(ge=0, le=CREDIT_MAX)]


class Subscribe(msgspec.Struct, tag="subscribe", forbid_unknown_fields=True, kw_only=True):
    """Begin to send records of a topic under an id that the client chooses."""

    id: Id
    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=249)]
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None
    start: Literal["earliest", "latest"] = msgspec.field(default="latest", name="from")
    time: Annotated[str, msgspec.Meta(max_length=40)] | None = None
    positions: Positions | None = None
    """Where an earlier subscription ended."""
    filter: str | None = None
    shown: Shown = msgspec.field(default="auto", name="as")
    credit: CreditCount = 0


class Credit(msgspec.Struct, tag="credit", forbid_unknown_fields=True, kw_only=True):
    """Let the manager send this number of records more."""

    id: Id
    credit: CreditCount


class Acknowledge(msgspec.Struct, tag="ack", forbid_unknown_fields=True, kw_only=True):
    """Acknowledge the records below these positions, which gives their credit back."""

    id: Id
    positions: Positions


class Unsubscribe(msgspec.Struct, tag="unsubscribe", forbid_unknown_fields=True, kw_only=True):
    id: Id


Frame = Subscribe | Credit | Acknowledge | Unsubscribe
_decoder = msgspec.json.Decoder(Frame)


def decode_frame(text: str | bytes) -> Frame:
    try:
        frame: Frame = _decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise ApiProblem(400, f"the frame is not valid: {wrong}; send a JSON object with a type of subscribe, credit, "
                              "ack or unsubscribe") from None  # fmt: skip
    return frame
