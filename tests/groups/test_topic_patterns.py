"""Expressions over topic names: as Python's own engine says, or refused; never slow."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.groups import topic_patterns
from headrace.core.groups.topic_patterns import NamePattern, PatternRefused

NAMES = [
    "a",
    "b",
    "ab",
    "aab",
    "abc",
    "orders",
    "orders.eu",
    "orders-1",
    "orders-22",
    "x_y",
    "A",
    "aaaaaaaaaaaa",
    "-",
    ".",
]


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a|b",
        "a*b",
        "(ab)+",
        "orders.*",
        "orders\\..*",
        "orders-[0-9]+",
        "orders-\\d{2}",
        "[^a-c]",
        "(?:a|b)*c?",
        "\\w+",
        "^orders$",
        "(^orders.*)",
        "(^a|b$)",
        "a^b",
        "a$b",
        "(^|x)a",
        "a{2,}b",
        "a{0}b",
        ".*",
        "",
        "[.-]",
        "x\\Wy|x.y",
        "(a|b)?c?",
        "[]a]",
        "a+?b",
        "((a)(b))",
        "a{1,2}b",
        "\\D",
        "(a*)*b",
    ],
)
def test_the_same_as_pythons(text):
    expected = tuple(name for name in NAMES if re.fullmatch(text, name))
    assert NamePattern(text).matching(NAMES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "(",
        ")",
        "a)",
        "[a",
        "*",
        "a**b{",
        "a{2",
        "a{3,2}",
        "a{1000}",
        "(?i)a",
        "(?=a)",
        "\\1",
        "[z-a]",
        "x" * 1_001,
        "(" * 60 + "a" + ")" * 60,
        "((a{100}){100}){100}",
        "\\",
    ],
)
def test_refused(text):
    with pytest.raises(PatternRefused):
        NamePattern(text)


def test_what_makes_others_hang_is_quick():
    assert NamePattern("(a*)*b").matching(["a" * 249]) == ()
    names = [f"{'a' * 200}{number}" for number in range(200)]
    assert NamePattern("(a|a)*(a|aa)*c").matching(names) == ()


def test_too_much_work_is_refused(monkeypatch):
    monkeypatch.setattr(topic_patterns, "STEPS_MAX", 20_000)
    pattern = NamePattern("(.*a.{60}){3}")
    with pytest.raises(PatternRefused):
        pattern.matching(f"{number:08d}" + "ab" * 120 for number in range(100))


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "1"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("".join, st.lists(inner, min_size=1, max_size=3)),
        st.builds("({}|{})".format, inner, inner),
        st.builds("({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,1}"])),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(text=PATTERNS, names=st.lists(st.text(alphabet="ab1", max_size=7), max_size=8))
def test_any_expression(text, names):
    assert NamePattern(text).matching(names) == tuple(name for name in names if re.fullmatch(text, name))
