"""The generator on tables made for the purpose: every type in every form, and tables that are wrong."""

from types import ModuleType
from typing import Any

import pytest

from headrace.wire.errors import ProtocolError
from headrace.wire.generator.modules import module_text
from headrace.wire.schemas import notation
from headrace.wire.schemas.notation import (
    INT32,
    INT64,
    STRING,
    Field,
    Message,
    Primitive,
    array,
    field,
    request,
    response,
    struct,
)

PRIMITIVES = [found for found in vars(notation).values() if isinstance(found, Primitive)]
REPEATABLE = [found for found in PRIMITIVES if found.name not in ("bool", "float64")]
VARIABLE = [found for found in PRIMITIVES if not found.size]
VALUES: dict[str, tuple[object, object]] = {
    "bool": (True, False),
    "int8": (-128, 127),
    "int16": (-32_768, 32_767),
    "uint16": (0, 65_535),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "float64": (-0.5, 1e300),
    "uuid": (bytes(range(16)), bytes(16)),
    "string": ("größe", ""),
    "bytes": (b"\0\xff", b""),
    "records": (b"batch" * 40, b""),
}


def everything() -> list[Field]:
    """Versions 0 (not flexible) and 1 (flexible); tags only in the latter."""
    fields = [field(f"a_{type_.name}", type_) for type_ in PRIMITIVES]
    fields += [field(f"b_{type_.name}", type_, nullable="0+") for type_ in VARIABLE]
    fields += [array(f"c_{type_.name}s", type_) for type_ in REPEATABLE]
    fields += [array(f"d_{type_.name}s", type_, nullable="0+", default=None) for type_ in REPEATABLE]
    fields += [field(f"e_{type_.name}", type_, "1+", tag=tag) for tag, type_ in enumerate(PRIMITIVES)]
    fields += [field(f"f_{type_.name}", type_, nullable="1+") for type_ in VARIABLE]
    fields += [
        struct("pair", [field("left", INT32), field("right", STRING)]),
        struct("perhaps", [field("only", INT64)], nullable="0+", default=None),
        struct("tagged_pair", [field("left", INT32, default=-1)], "1+", tag=40),
        array("pairs", [field("left", INT32), field("right", STRING)], "1+", tag=41, named="Pair"),
        array("maybe_pairs", [field("left", INT32), field("right", STRING)], nullable="0+", named="Pair"),
    ]
    return fields


def built(request_table: Message, response_table: Message) -> Any:
    module = ModuleType("built")
    # dataclasses look their module up by name; the text is our own.
    exec(compile(module_text(request_table, response_table, "a test"), "built", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def codec() -> Any:
    tables = [make(900, "All", versions="0-1", flexible="1+", fields=everything()) for make in (request, response)]
    return built(tables[0], tables[1])


def filled(codec: Any, kind: str, pick: int, version: int) -> Any:
    values: dict[str, object] = {}
    for entry in everything():
        if not entry.versions.covers(version) or not isinstance(entry.type, Primitive):
            continue
        value = VALUES[entry.type.name][pick]
        values[entry.name] = (value, value, value)[: 3 - pick] if entry.repeated else value
    pair = getattr(codec, f"All{kind}Pair")(left=3, right="r")
    values |= {"pair": pair, "maybe_pairs": (pair,) * 2}
    values["perhaps"] = getattr(codec, f"All{kind}Perhaps")(only=9) if pick else None
    if version and pick:
        values |= {"tagged_pair": getattr(codec, f"All{kind}TaggedPair")(left=8), "pairs": (pair,)}
    return getattr(codec, f"All{kind}")(**values)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("pick", [0, 1])
@pytest.mark.parametrize("kind", ["Request", "Response"])
def test_every_type_in_every_form(codec: Any, kind: str, pick: int, version: int) -> None:
    encode = getattr(codec, f"encode_{kind.lower()}")
    decode = getattr(codec, f"decode_{kind.lower()}")
    for value in (filled(codec, kind, pick, version), getattr(codec, f"All{kind}")(maybe_pairs=None)):
        body = encode(value, version)
        assert decode(body, 0, len(body), version) == value
        for end in range(len(body)):
            with pytest.raises(ProtocolError):
                decode(body, 0, end, version)


def test_versions_that_look_alike_share_their_code() -> None:
    fields = [field("always", INT32), array("later", [field("x", INT32)], "3+")]
    tables = [make(901, "Few", versions="0-6", flexible="5+", fields=fields) for make in (request, response)]
    text = module_text(tables[0], tables[1], "a test")
    assert text.count("def _read_request_v") == 3
    assert text.count("def _write_response_later_v") == 2
    assert "    _read_request_v3,\n    _read_request_v3,\n    _read_request_v5,\n    _read_request_v5,\n" in text


def test_neighbours_of_fixed_size_are_read_at_once() -> None:
    fields = [field("one", INT32), field("two", INT64), field("name", STRING), field("three", INT64)]
    tables = [make(902, "Runs", versions="0", flexible="none", fields=fields) for make in (request, response)]
    text = module_text(tables[0], tables[1], "a test")
    assert "one, two = _IQ.unpack_from(body, position)\n    position += 12\n" in text
    assert "write(_IQ.pack(message.one, message.two))" in text


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ([field("position", INT32)], "clash"),
        ([array("topics", [field("x", INT32)]), array("topic", [field("y", INT32)])], "named="),
    ],
)
def test_tables_that_cannot_be_turned_into_code(fields: list[Field], complaint: str) -> None:
    tables = [make(903, "Bad", versions="0", flexible="none", fields=fields) for make in (request, response)]
    with pytest.raises(ValueError, match=complaint):
        module_text(tables[0], tables[1], "a test")


@pytest.mark.parametrize("type_", [notation.BOOL, notation.FLOAT64])
def test_arrays_that_kafka_does_not_have(type_: Primitive) -> None:
    with pytest.raises(ValueError, match="no array"):
        array("flags", type_)


def test_a_message_may_begin_above_version_0() -> None:
    tables = [
        make(905, "Late", versions="2-3", flexible="none", fields=[field("x", INT32)]) for make in (request, response)
    ]
    module = built(tables[0], tables[1])
    assert (module.MIN_VERSION, module.MAX_VERSION) == (2, 3)
    body = module.encode_request(module.LateRequest(x=7), 2)
    assert module.decode_request(body, 0, len(body), 2).x == 7
    for version in (-1, 0, 1, 4):
        with pytest.raises(ProtocolError, match=f"has no version {version}"):
            module.decode_request(body, 0, len(body), version)
        with pytest.raises(ProtocolError, match=f"has no version {version}"):
            module.encode_response(module.LateResponse(x=7), version)
        with pytest.raises(ProtocolError, match=f"has no version {version}"):
            module.begin_response(module.LateResponse(x=7), version)


def test_request_and_response_have_the_same_versions() -> None:
    ask = request(904, "Odd", versions="0-1", flexible="none", fields=[])
    answer = response(904, "Odd", versions="0-2", flexible="none", fields=[])
    with pytest.raises(ValueError, match="same versions"):
        module_text(ask, answer, "a test")
