"""SQL that is looked at without Spark: right queries pass, and common mistakes are found in their line."""

import pytest

from headrace.spark.pipelines.sql_text import Mistake, check_expression, check_query
from headrace.spark.schema_text import ddl_of, parse_schema

RIGHT = [
    "SELECT * FROM input",
    "select a, 'FROM nowhere, ' b from `input` -- FROM nothing",
    "WITH w AS (SELECT * FROM input) SELECT * FROM w JOIN input USING (a);",
    "SELECT extract(hour FROM at), trim(BOTH 'x' FROM a) FROM input WHERE a IS DISTINCT FROM b",
    "SELECT /* two\nlines ( */ window.start FROM input GROUP BY window(at, '1 minute')",
    "SELECT * FROM (SELECT a[0] FROM input) x LATERAL VIEW explode(x.a) t AS b",
    "SELECT * FROM catalog.t JOIN input",
    "FROM input SELECT a",
    "SELECT * FROM range(5) JOIN input",
]
WRONG = [
    ("", 0, "there is no query"),
    ("UPDATE input", 0, 'not with "UPDATE"'),
    ("SELECT 'a FROM input", 0, "a quote is opened"),
    ("SELECT a /* b\nFROM input", 0, "a comment is opened"),
    ("SELECT (a FROM input", 0, 'a ")" is missing'),
    ("SELECT a)\nFROM input", 0, 'a ")" too many'),
    ("SELECT a,\nFROM input", 0, "comma too many before FROM"),
    ("SELECT f(a,) FROM input", 0, "comma too many before )"),
    ("SELECT a FROM input;\nSELECT b", 1, "only one query"),
    ("SELECT a\nFROM inpt", 1, 'did you mean "input"?'),
    ("SELECT a FROM input\nJOIN other", 1, 'the view "other" does not exist'),
    ("SELECT 1", 0, "reads none of its sources: input"),
]


@pytest.mark.parametrize("query", RIGHT)
def test_right_queries_pass(query: str) -> None:
    assert check_query(query, ["input"]) == []


@pytest.mark.parametrize(("query", "line", "text"), WRONG)
def test_wrong_queries_are_reported(query: str, line: int, text: str) -> None:
    (mistake,) = check_query(query, ["input"])
    assert mistake.line == line
    assert text in mistake.text


def test_expressions() -> None:
    assert check_expression("amount > 0 AND name <> 'a(b'") == []
    assert check_expression(" ") == [Mistake(0, "there is no expression")]
    assert "without" in check_expression("WHERE a > 0")[0].text
    assert check_expression("a\n> (b")[0].line == 1


@pytest.mark.parametrize(
    ("text", "ddl"),
    [
        ("id STRING NOT NULL, n int", "`id` string, `n` int"),
        ("a ARRAY<STRUCT<b: INT, c MAP<STRING, DOUBLE>>>", "`a` array<struct<`b`: int, `c`: map<string, double>>>"),
        ("s STRUCT<`a``b`: INT>", "`s` struct<`a``b`: int>"),
        ("price DECIMAL(10, 2) COMMENT 'in euro', `odd name` DATE", "`price` decimal(10,2), `odd name` date"),
    ],
)
def test_schemas_are_read(text: str, ddl: str) -> None:
    assert ddl_of(parse_schema(text)) == ddl


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id", 'field "id" has no type'),
        ("id STRING n INT", 'a comma is needed before "n"'),
        ("id STRING,", "a field name is missing"),
        ("id LIST", "unknown type"),
        ("id ARRAY", "needs its type in <>"),
        ("id ARRAY<INT", 'a ">" is missing'),
        ("id MAP<INT>", "needs two types"),
        ("id DECIMAL(1", '"\\)" is missing'),
        ("id STRING NOT", "write NOT NULL"),
        ("a INT, A INT", "is defined twice"),
        ("a INT; b INT", "this is not a schema at"),
        ("a " + "ARRAY<" * 30 + "INT" + ">" * 30, "nested deeper"),
    ],
)
def test_wrong_schemas_are_reported(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_schema(text)
