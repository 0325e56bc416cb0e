"""A load of requests with keys: each is repeated, at one manager after the other, until it is acknowledged."""

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.manager.manager_process import ManagerProcess

WAIT_S_MAX = 120
REQUEST_S_MAX = 5


def awaited(look: Callable[[], Any]) -> Any:
    """Return what `look` finds, as soon as it finds something."""
    ends = time.monotonic() + WAIT_S_MAX
    while not (found := look()):
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.05)
    return found


class KeyedLoad:
    """Produces records with keys at several managers, and repeats each until it is acknowledged."""

    def __init__(self, managers: list[ManagerProcess], topic: str, headers: dict[str, str] | None = None) -> None:
        self._managers = managers
        self._topic = topic
        self._headers = headers or {}
        self._stopped = threading.Event()
        self.acknowledged: list[int] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            manager = self._managers[number % len(self._managers)]
            for _ in range(1_000):
                if self._sent(manager, number):
                    self.acknowledged.append(number)
                    break
                manager = self._managers[(self._managers.index(manager) + 1) % len(self._managers)]
            number += 1

    def _sent(self, manager: ManagerProcess, number: int) -> bool:
        headers = {**self._headers, "idempotency-key": f"{self._topic}-{number}"}
        try:
            response = httpx.post(
                f"{manager.url}/v1/topics/{self._topic}/records",
                json={"value": number},
                headers=headers,
                timeout=REQUEST_S_MAX,
            )
        except httpx.TransportError:
            return False
        return response.status_code == 200

    def __enter__(self) -> "KeyedLoad":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Return when the last request is acknowledged."""
        self._stopped.set()
        self._thread.join()
