"""Masks of records: what they hide, and that nothing of it can be learned by asking."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from websockets.sync.client import connect

from headrace.client.types import ConsumerRecord
from headrace.manager.access.masks import HIDDEN, MaskRule, parsed_field, record_mask
from headrace.manager.access.roles import UserRole
from headrace.operations.errors import OperationError
from tests.manager.people import TeamOfUsers

KEY = bytes(range(32))


def rule(field: str, action: str = "hide", *, topic: str = "payments", visible_to: str = "admin") -> MaskRule:
    return MaskRule("id", topic.removesuffix("*"), topic.endswith("*"), field, action, visible_to, 0)


def masked(
    value: bytes | None, *rules: MaskRule, role: UserRole = UserRole.VIEWER, headers: Sequence[tuple[str, bytes]] = ()
) -> ConsumerRecord:
    record: ConsumerRecord[Any] = ConsumerRecord("payments", 0, 0, 0, b"key", value, tuple(headers))
    mask = record_mask(rules, "payments", role, KEY)
    return record if mask is None else mask(record)


def masked_json(value: object, *rules: MaskRule) -> Any:
    return json.loads(masked(json.dumps(value).encode(), *rules).value)


def test_a_field_inside_json_is_hidden_wherever_it_is() -> None:
    number = rule("value.card.number")
    assert masked_json({"card": {"number": 4711, "kind": "x"}}, number) == {"card": {"number": HIDDEN, "kind": "x"}}
    assert masked_json({"card": [{"number": 1}, {"number": 2}]}, number) == {"card": [{"number": HIDDEN}] * 2}
    assert masked_json({"other": 1}, number) == {"other": 1}
    assert masked_json({"card": {"number": None}}, number) == {"card": {"number": None}}
    assert masked_json([{"price": 1}], rule("value[*].price")) == [{"price": HIDDEN}]
    assert masked_json({"a": [1, 2]}, rule("value.a[*]")) == {"a": [HIDDEN, HIDDEN]}


def test_what_the_mask_cannot_look_into_is_hidden_as_a_whole() -> None:
    number = rule("value.card.number")
    assert masked(b"not JSON: card number 4711", number).value == HIDDEN.encode()
    assert masked_json(json.dumps({"card": {"number": 4711}}), number) == HIDDEN
    assert masked_json({"card": "number 4711"}, number) == {"card": HIDDEN}
    assert masked(b'{"card": {"number": 1}}' + b" " * (1 << 20), number).value == HIDDEN.encode()
    assert masked(b'{"card": {"number": 1, "number": 2}}', number).value == b'{"card":{"number":"***"}}'
    assert masked(None, number).value is None


def test_keys_headers_and_whole_values_are_hidden() -> None:
    record = masked(b"x", rule("key"), rule("headers.token"), headers=[("token", b"secret"), ("other", b"seen")])
    assert record.key == HIDDEN.encode()
    assert record.headers == (("token", HIDDEN.encode()), ("other", b"seen"))
    assert masked(b"x", rule("value")).value == HIDDEN.encode()
    assert masked(b"x", rule("headers"), headers=[("a", b"b")]).headers == (("a", HIDDEN.encode()),)


def test_a_hash_is_equal_for_equal_values_and_needs_the_key() -> None:
    name = rule("value.name", "hash")
    ada, again, bob = (masked_json({"name": each}, name)["name"] for each in ("ada", "ada", "bob"))
    assert ada == again != bob
    other = record_mask([name], "payments", UserRole.VIEWER, bytes(32))
    assert other is not None
    record: ConsumerRecord[Any] = ConsumerRecord("payments", 0, 0, 0, None, b'{"name":"ada"}', ())
    assert json.loads(other(record).value)["name"] != ada


def test_a_mask_covers_its_topics_and_the_roles_below() -> None:
    for_admins = rule("value", topic="pay*")
    assert masked(b"x", for_admins, role=UserRole.EDITOR).value == HIDDEN.encode()
    assert masked(b"x", for_admins, role=UserRole.ADMIN).value == b"x"
    assert masked(b"x", rule("value", visible_to="editor"), role=UserRole.EDITOR).value == b"x"
    assert masked(b"x", rule("value", topic="payment")).value == b"x"


def test_a_field_to_mask_is_written_as_in_a_filter() -> None:
    assert parsed_field("value.items[*].price") == ("value", ("items", "[*]", "price"))
    assert parsed_field("headers.x.y") == ("headers", ("x.y",))
    for wrong in ("", "offset", "value.", "value[0]", "values", "key name"):
        with pytest.raises(OperationError, match="no field to mask"):
            parsed_field(wrong)


@pytest.mark.process
def test_nothing_masked_gets_out_or_can_be_guessed(team: TeamOfUsers, topic: str) -> None:
    manager, viewer, admin = team.manager, team.bearer("viewer"), team.bearer("admin")
    wanted = {"topic": topic, "field": "value.card"}
    made = manager.call("POST", "/v1/access/masks", json=wanted, headers=admin, status=201)
    records = f"/v1/topics/{topic}/records"
    body = {"key": "ada", "value": {"card": "4711", "amount": 5}, "headers": [{"name": "kind", "value": "test"}]}
    manager.call("POST", records, json=body, headers=team.bearer("editor"))

    def matching(text: str, headers: dict[str, str]) -> int:
        found = manager.call("GET", records, params={"as": "json", "filter": text}, headers=headers)
        return len(found["records"])

    for guess in ('value.card = "4711"', 'text contains "4711"', 'value.card startswith "4"', 'value contains "4711"'):
        assert matching(guess, viewer) == 0, guess
    assert matching('value.card = "4711"', admin) == 1
    assert matching("value.amount = 5", viewer) == 1
    for shown in ("auto", "json", "base64"):
        seen = manager.http.get(records, params={"as": shown}, headers=viewer).text
        assert "4711" not in seen
        assert "NDcxMQ" not in seen
    (hidden,) = manager.call("GET", records, headers=viewer)["records"]
    assert hidden["size"] == len("ada") + len(hidden["value"])
    lines = manager.http.get(records, headers={**viewer, "accept": "application/x-ndjson"}).text
    assert "4711" not in lines
    for start in ("earliest", "latest"):
        with manager.http.stream("GET", f"/v1/topics/{topic}/stream?from={start}", headers=viewer) as stream:
            chunks = stream.iter_text()
            received = next(chunks)
            manager.call("POST", records, json=body, headers=team.bearer("editor"))
            while HIDDEN not in received:
                received += next(chunks)
            assert "4711" not in received
    for caller, is_hidden in ((viewer, True), (admin, False)):
        shown_batches = manager.call("GET", records, params={"batches": "true"}, headers=caller)["records"]
        details = [(each["batch"]["crc"] is None, each["batch"]["size"] is None) for each in shown_batches]
        assert set(details) == {(is_hidden, is_hidden)}, "the checksum of a batch would tell what is hidden"
    editor = team.bearer("editor")
    consumer = {"kind": "consumer", "name": "masked", "topic": topic}
    client = manager.call("POST", "/v1/clients", json=consumer, headers=editor, status=201)["id"]
    read = manager.http.post(f"/v1/clients/{client}/reads", headers=editor).text
    with manager.http.stream("GET", f"/v1/clients/{client}/stream", headers=editor) as stream:
        pushed = next(text for text in stream.iter_text() if HIDDEN in text)
    assert HIDDEN in read
    assert "4711" not in read + pushed
    address = manager.url.replace("http://", "ws://") + "/v1/subscriptions"
    with connect(address, open_timeout=60, additional_headers=viewer) as socket:
        socket.send(json.dumps({"type": "subscribe", "id": "a", "topic": topic, "from": "earliest", "credit": 1}))
        frames = [str(socket.recv(timeout=60)) for _ in range(2)]
    assert HIDDEN in frames[1]
    assert "4711" not in frames[1]
    manager.call("DELETE", f"/v1/access/masks/{made['id']}", headers=viewer, status=403)
    manager.call("DELETE", f"/v1/access/masks/{made['id']}", headers=admin, status=204)
    assert "4711" in manager.http.get(records, headers=viewer).text
