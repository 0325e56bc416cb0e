"""The process of a driver: reads tasks and writes results as lines of JSON."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

from pyspark.sql import SparkSession

from headrace.spark import session
from headrace.spark.java import find_java
from headrace.spark.range_reader import decoder_helper
from tools.bench.spark import queries

ERROR_CHARACTERS_MAX = 2_000
TASKS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "generated": queries.generated_totals,
    "totals": queries.totals,
    "read": queries.read,
    "write": queries.write,
    "stream": queries.stream,
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps other output off the result stream
    conf: dict[str, str] = json.loads(sys.argv[1])
    spark = session("headrace-bench", master=conf.pop("spark.master"), conf=conf)
    spark.sparkContext.setLogLevel("ERROR")
    about = {"spark": spark.version, "java": find_java().version, "helper": decoder_helper() is not None}
    try:
        serve(spark, sys.stdin, answers, about)
    finally:
        spark.stop()


def serve(spark: SparkSession, requests: IO[str], answers: IO[str], about: Mapping[str, object]) -> None:
    """Run tasks until the input ends."""
    print(json.dumps(about), file=answers, flush=True)
    for line in requests:
        wanted = json.loads(line)
        try:
            answer = TASKS[wanted.pop("task")](spark, **wanted)
        except Exception as error:  # the benchmark decides what to do without this figure
            answer = {"error": f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS_MAX]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
