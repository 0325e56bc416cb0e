"""One of examples/delivery as a process that ends at a named call: `python -m tests.delivery.failing_copy MODE PLAN`.

A plan names a method of the client that the copy uses (`commit_transaction`), the number of the call, and whether the
process ends `before` or `after` it. The copy reads fewer rows at once than the example does, so that it has more to do.
"""

import importlib.util
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import confluent_kafka

EXAMPLES = Path(__file__).parents[2] / "examples" / "delivery"
READ_AT_ONCE = 50


def failing(kind, plan):
    """A client class whose instances end the process where the plan says so."""

    def ending(name):
        original = getattr(kind, name)
        calls = 0

        def call(self, *arguments, **named):
            nonlocal calls
            calls += 1
            here = calls == plan["number"]
            if here and plan["when"] == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(self, *arguments, **named)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    name = plan.get("point")
    return type(kind.__name__, (kind,), {name: ending(name)} if name is not None and hasattr(kind, name) else {})


def main(mode, plan, bootstrap, source, target):
    spec = importlib.util.spec_from_file_location(mode, EXAMPLES / f"{mode}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.READ_AT_ONCE = READ_AT_ONCE
    example.Consumer = failing(confluent_kafka.Consumer, plan)
    example.Producer = failing(confluent_kafka.Producer, plan)
    try:
        example.copy(bootstrap, source, target)
    except confluent_kafka.KafkaException:
        # librdkafka can wait for ever in the end of a producer whose broker went away, so it is not ended but left.
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), *sys.argv[3:])
