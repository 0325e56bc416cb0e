"""Records produced, read and deleted over HTTP, through a manager process and a real broker."""

import json
from base64 import b64encode

import pytest

import headrace
from headrace.client.types import ConsumerRecord
from headrace.testing import EmbeddedBroker
from tests.manager.manager_process import ManagerProcess

pytestmark = pytest.mark.process


def produce(manager: ManagerProcess, topic: str, *records: dict[str, object]) -> list[dict[str, int]]:
    stored = manager.call("POST", f"/v1/topics/{topic}/records", json={"records": records})
    places: list[dict[str, int]] = stored["records"]
    return places


@pytest.mark.record_integrity
def test_records_come_back_as_they_were_sent(manager: ManagerProcess, topic: str) -> None:
    sent = [
        {"key": f"k{number}", "value": f"v{number}", "partition": number % 3, "timestamp": 1_000 + number}
        for number in range(300)
    ]
    places = produce(manager, topic, *sent)
    assert [each["partition"] for each in places] == [each["partition"] for each in sent]
    read = manager.call("GET", f"/v1/topics/{topic}/records", params={"max": 1000})
    assert read["complete"]
    by_place = {(each["partition"], each["offset"]): each for each in read["records"]}
    assert len(by_place) == len(read["records"]) == 300
    for place, record in zip(places, sent, strict=True):
        found = by_place[place["partition"], place["offset"]]
        assert {name: found[name] for name in record} == record


def test_the_forms_of_a_value_are_stored_as_bytes(manager: ManagerProcess, broker: EmbeddedBroker, topic: str) -> None:
    produce(
        manager,
        topic,
        {"value": {"a": [1, "ü"]}, "partition": 0},
        {"value": "text", "key": 7, "partition": 0},
        {"value": None, "key": "gone", "partition": 0},
        {"value_base64": b64encode(b"\xff\x00").decode(), "key_base64": "", "partition": 0},
        {"value": True, "headers": [{"name": "h", "value": "1"}, {"name": "n", "value": None}], "partition": 0},
        {"value": "", "headers": [{"name": "b", "value_base64": "AP8="}], "partition": 0},
    )
    with headrace.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 0)
        records: list[ConsumerRecord] = []
        while len(records) < 6:
            records += consumer.poll(timeout_ms=20_000)
    assert [json.loads(records[0].value), *(record.value for record in records[1:])] == [
        {"a": [1, "ü"]}, b"text", None, b"\xff\x00", b"true", b"",
    ]  # fmt: skip
    assert [record.key for record in records] == [None, b"7", b"gone", b"", None, None]
    assert records[4].headers == (("h", b"1"), ("n", None))
    assert records[5].headers == (("b", b"\x00\xff"),)


def test_one_record_lines_and_raw_bytes_are_bodies_too(manager: ManagerProcess, topic: str) -> None:
    path = f"/v1/topics/{topic}/records"
    manager.call("POST", path, json={"value": "one", "partition": 1})
    lines = b'{"value": "two", "partition": 1}\n\n{"value": "three", "partition": 1}\n'
    manager.call("POST", path, content=lines, headers={"content-type": "application/x-ndjson"})
    stored = manager.call(
        "POST", path, content=b"four\xfe", headers={"content-type": "image/png"},
        params={"key": "k", "partition": 1, "timestamp": 5},
    )  # fmt: skip
    assert stored == {"records": [{"partition": 1, "offset": 3, "timestamp": 5}]}
    read = manager.call("GET", path, params={"partition": 1, "as": "base64"})
    assert [each["value_base64"] for each in read["records"]] == [
        b64encode(each).decode() for each in (b"one", b"two", b"three", b"four\xfe")
    ]


def test_reading_starts_where_it_is_asked_to(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *({"value": number, "partition": 0, "timestamp": 1000 * number} for number in range(10)))
    path = f"/v1/topics/{topic}/records"

    def values(**parameters: object) -> list[int]:
        read = manager.call("GET", path, params={"as": "json", **parameters})
        return [each["value"] for each in read["records"]]

    assert values() == [*range(10)]
    assert values(max=3) == [0, 1, 2]
    assert values(partition=0, offset=7) == [7, 8, 9]
    assert values(positions="0:8") == [8, 9]
    assert values(time="1970-01-01T00:00:05Z") == [5, 6, 7, 8, 9]
    assert values(**{"from": "latest"}) == []
    assert values(partition=1) == []


@pytest.mark.record_integrity
def test_a_topic_is_read_page_by_page(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *({"value": number, "partition": number % 3} for number in range(100)))
    path, positions, found = f"/v1/topics/{topic}/records", None, []
    while True:
        parameters = {"as": "json", "max": 7} | ({} if positions is None else {"positions": positions})
        read = manager.call("GET", path, params=parameters)
        if not read["records"]:
            break
        positions = read["positions"]
        found += [each["value"] for each in read["records"]]
    assert sorted(found) == [*range(100)]


def test_the_batches_of_records_are_shown_on_request(
    manager: ManagerProcess, broker: EmbeddedBroker, topic: str
) -> None:
    with headrace.Producer(broker.bootstrap_servers, compression="gzip", linger_ms=60_000) as producer:
        for number in range(6):
            producer.send(topic, b"%d" % number, partition=1)
        producer.flush()
        producer.send(topic, b"last", partition=1)
    path = f"/v1/topics/{topic}/records"
    (plain,) = manager.call("GET", path, params={"max": 1})["records"]
    assert "batch" not in plain
    found = manager.call("GET", path, params={"batches": "true", "partition": 1})["records"]
    batches = [record["batch"] for record in found]
    assert [(each["base_offset"], each["last_offset"], each["sequence"]) for each in batches] == [
        *((0, 5, number) for number in range(6)), (6, 6, 6),
    ]  # fmt: skip
    first, last = batches[0], batches[6]
    assert (first["codec"], first["transactional"], first["producer_epoch"]) == ("gzip", False, 0)
    assert first["producer_id"] == last["producer_id"] >= 0
    assert first["crc"] != last["crc"]
    assert first["size"] > 61
    (alone,) = manager.call("GET", path, params={"batches": "true", "partition": 1, "filter": "value = 3"})["records"]
    assert (alone["offset"], alone["batch"]["sequence"]) == (3, 3)
    assert manager.call("GET", path, params={"batches": "true", "partition": 0})["records"] == []


def test_a_filter_chooses_records(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *({"key": f"k{n}", "value": {"n": n, "odd": n % 2 == 1}} for n in range(50)))
    parameters = {"filter": "value.odd and value.n >= 45", "as": "json"}
    read = manager.call("GET", f"/v1/topics/{topic}/records", params=parameters)
    assert sorted(each["value"]["n"] for each in read["records"]) == [45, 47, 49]
    text = manager.call("GET", f"/v1/topics/{topic}/records", params={"filter": 'text contains "k13"'})
    assert [each["key"] for each in text["records"]] == ["k13"]


def test_records_are_streamed_as_lines(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *({"value": number} for number in range(500)))
    headers = {"accept": "application/x-ndjson"}
    path = f"/v1/topics/{topic}/records"
    with manager.http.stream("GET", path, headers=headers, params={"max": 1000, "as": "json"}) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        assert sorted(json.loads(line)["value"] for line in response.iter_lines()) == [*range(500)]
    missing = manager.http.get("/v1/topics/missing/records", headers=headers)
    assert missing.status_code == 404


def test_a_long_poll_ends_with_the_first_record(manager: ManagerProcess, topic: str) -> None:
    import threading

    read: list[object] = []
    path = f"/v1/topics/{topic}/records"
    thread = threading.Thread(
        target=lambda: read.extend(manager.call("GET", path, params={"from": "latest", "wait_ms": 30_000})["records"])
    )
    thread.start()
    with ManagerRequests(manager) as requests:
        # `from=latest` starts at the end that the reader finds, so records are sent until one comes after that.
        while thread.is_alive():
            requests.produce(topic)
            thread.join(0.05)
    assert len(read) >= 1


class ManagerRequests:
    """Requests on a connection of their own, beside one that waits."""

    def __init__(self, manager: ManagerProcess) -> None:
        import httpx

        self._http = httpx.Client(base_url=manager.url, timeout=30)

    def produce(self, topic: str) -> None:
        assert self._http.post(f"/v1/topics/{topic}/records", json={"value": 1}).status_code == 200

    def __enter__(self) -> "ManagerRequests":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._http.close()


def test_aborted_records_are_not_read(manager: ManagerProcess, broker: EmbeddedBroker, topic: str) -> None:
    with headrace.Producer(broker.bootstrap_servers, transactional_id=f"{topic}-id") as producer:
        transaction = producer.transaction()
        producer.send(topic, b"aborted", partition=0)
        transaction.abort()
        with producer.transaction():
            producer.send(topic, b"committed", partition=0)
    read = manager.call("GET", f"/v1/topics/{topic}/records")
    assert [each["value"] for each in read["records"]] == ["committed"]
    assert read["complete"]


def test_records_are_deleted_from_the_start(manager: ManagerProcess, topic: str) -> None:
    produce(manager, topic, *({"value": number, "partition": number % 3} for number in range(30)))
    path = f"/v1/topics/{topic}/records"
    assert manager.call("DELETE", path, params={"partition": 1, "before": 4}) == [{"partition": 1, "first_offset": 4}]
    refused = manager.call("GET", path, params={"partition": 1, "offset": 2}, status=400)
    assert refused["error"] == "OFFSET_OUT_OF_RANGE"
    assert len(manager.call("GET", path, params={"partition": 1})["records"]) == 6
    emptied = manager.call("DELETE", path)
    assert sorted(each["first_offset"] for each in emptied) == [10, 10, 10]
    assert manager.call("GET", path)["records"] == []


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "headers", "parameters", "status", "detail"),
    [
        (b"", JSON, {}, 400, "{"),
        (b"{", JSON, {}, 400, "truncated"),
        (b"[1]", JSON, {}, 400, "Expected `object`"),
        (b"{}", JSON, {}, 400, "no value"),
        (b'{"records": []}', JSON, {}, 400, "no records"),
        (b'{"records": 1}', JSON, {}, 400, "Expected `array`"),
        (b'{"valu": 1}', JSON, {}, 400, "valu"),
        (b'{"value": 1, "value_base64": "AA=="}', JSON, {}, 400, "leave one out"),
        (b'{"value_base64": "?"}', JSON, {}, 400, "Base64"),
        (b'{"value": 1, "partition": -1}', JSON, {}, 400, "partition must be"),
        (b'{"value": 1, "partition": 3}', JSON, {}, 400, "partitions 0 to 2"),
        (b'{"value": 1, "timestamp": -5}', JSON, {}, 400, "timestamp must be"),
        (b'{"value": 1, "headers": [{"name": "a"}]}', JSON, {}, 400, "needs one of"),
        (b'{"value": "\\ud800"}', JSON, {}, 400, "value"),
        (b'{"value": 1}\n{', {"content-type": "application/x-ndjson"}, {}, 400, "line 2"),
        (b"a=b", {"content-type": "application/x-www-form-urlencoded"}, {}, 415, "application/json"),
        (b"{" * 100_000, JSON, {}, 400, "{"),
        (b'{"value": 1}', JSON, {"acks": "2"}, 400, "acks"),
        (b'{"value": 1}', JSON, {"delivery": "exactly-once"}, 400, "Idempotency-Key"),
        (b'{"value": 1}', JSON, {"delivery": "at-most-once", "acks": "all"}, 400, "leave acks out"),
        (b"x", {"content-type": "text/plain"}, {"partition": "-1"}, 400, "partition"),
        (b'{"records": [' + b",".join([b'{"value":1}'] * 10_001) + b"]}", JSON, {}, 413, "10000"),
        (b"x" * ((8 << 20) + 1), {"content-type": "text/plain"}, {}, 413, "8388608"),
        (b"x" * (2 << 20), {"content-type": "text/plain"}, {}, 413, "MESSAGE_TOO_LARGE"),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_stored_says_why(
    manager: ManagerProcess, topic: str, body: bytes, headers: dict[str, str], parameters: dict[str, str], status: int,
    detail: str,
) -> None:  # fmt: skip
    path = f"/v1/topics/{topic}/records"
    problem = manager.call("POST", path, content=body, headers=headers, params=parameters, status=status)
    assert detail in f"{problem['detail']} {problem.get('error')}"
    assert manager.call("GET", path)["records"] == []


def test_a_record_for_a_missing_topic_is_refused(manager: ManagerProcess) -> None:
    refused = manager.call("POST", "/v1/topics/missing/records", json={"value": 1}, status=404)
    assert refused["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert refused["records"] == [{"error": "UNKNOWN_TOPIC_OR_PARTITION"}]


@pytest.mark.parametrize(
    ("parameters", "status", "detail"),
    [
        ({"offset": 1}, 400, "belongs to a partition"),
        ({"partition": 9}, 404, "it has 3"),
        ({"partition": 0, "offset": 5}, 400, "has no offset 5"),
        ({"positions": "7:0"}, 404, "no partition 7"),
        ({"positions": "a"}, 400, "positions"),
        ({"time": "soon"}, 400, "is not a time"),
        ({"max": 0}, 400, "max"),
        ({"max": 10_001}, 400, "max"),
        ({"wait_ms": 30_001}, 400, "wait_ms"),
        ({"filter": "value ="}, 400, "the filter ends"),
        ({"filter": "(" * 40 + "key" + ")" * 40}, 400, "nested"),
        ({"filter": "key and " * 500 + "key"}, 400, "2000 characters"),
        ({"as": "avro"}, 400, "as"),
        ({"from": "middle"}, 400, "from"),
    ],
)
def test_a_read_that_is_not_possible_says_why(
    manager: ManagerProcess, topic: str, parameters: dict[str, object], status: int, detail: str
) -> None:
    problem = manager.call("GET", f"/v1/topics/{topic}/records", params=parameters, status=status)
    assert detail in problem["detail"]


@pytest.mark.parametrize("parameters", [{"acks": "1"}, {"acks": "0"}, {"delivery": "at-most-once"}])
def test_weaker_acknowledgements_store_records_too(
    manager: ManagerProcess, topic: str, parameters: dict[str, str]
) -> None:
    manager.call("POST", f"/v1/topics/{topic}/records", params=parameters, json={"value": "x"})
    read = manager.call("GET", f"/v1/topics/{topic}/records", params={"wait_ms": 20_000})
    assert [each["value"] for each in read["records"]] == ["x"]
