import pytest

from headrace.client.addresses import parse_bootstrap
from headrace.client.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("here:1", [("here", 1)]),
        ("here", [("here", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b"], [("a", 1), ("b", 9092)]),
        ("[::1]:5", [("::1", 5)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
    ],
)
def test_addresses(text: str | list[str], expected: list[tuple[str, int]]) -> None:
    assert list(parse_bootstrap(text)) == expected


@pytest.mark.parametrize("text", ["", ",", [], ":9092", "a:b", "a:0", "a:70000", "[::1", "a:-1", [5], "kafka://a:1"])
def test_what_is_not_an_address(text: object) -> None:
    with pytest.raises(InvalidArgument, match=r"127\.0\.0\.1:9092"):
        parse_bootstrap(text)  # type: ignore[arg-type]


def test_an_address_is_written_as_it_is_read() -> None:
    assert [str(address) for address in parse_bootstrap("a:1,[::1]:2")] == ["a:1", "[::1]:2"]
