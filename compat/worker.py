"""Runs cases with one client, in the environment where that client is installed.

Reads one JSON object per line (`{"case": name, "topic": name, "bootstrap_servers": address}`) and answers each with one
line: `{"case": name, "outcome": "pass" | "fail" | "absent", "detail": text}`. The first line it writes names the
client's version.
"""

import json
import logging
import sys
import traceback
from contextlib import redirect_stdout
from typing import TextIO

from compat.adapters import connect, features
from compat.cases import CASES
from compat.client import Client

DETAIL_LENGTH_MAX = 300


def main(name: str, bootstrap_servers: str) -> None:
    answers = sys.stdout
    logging.disable(logging.CRITICAL)
    with redirect_stdout(sys.stderr):  # a client that prints must not disturb the answers
        clients = {bootstrap_servers: connect(name, bootstrap_servers)}
        _write(answers, {"version": clients[bootstrap_servers].version})
        for line in sys.stdin:
            wanted = json.loads(line)
            address = wanted["bootstrap_servers"]
            if address not in clients:
                clients[address] = connect(name, address)
            outcome, detail = _run(name, clients[address], wanted["case"], wanted["topic"])
            _write(answers, {"case": wanted["case"], "outcome": outcome, "detail": detail})
        for client in clients.values():
            client.close()


def _run(name: str, client: Client, case_name: str, topic: str) -> tuple[str, str]:
    (case,) = (case for case in CASES if case.name == case_name)
    if not case.needs <= features(name):
        return "absent", ""
    try:
        case.run(client, topic)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}" if str(error) else f"{type(error).__name__} at {frame.line}"
        return "fail", " ".join(text.split())[:DETAIL_LENGTH_MAX]
    return "pass", ""


def _write(answers: TextIO, answer: dict[str, str]) -> None:
    answers.write(f"{json.dumps(answer)}\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
