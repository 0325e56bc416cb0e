"""Files with secrets that a node reads at its start, and whether other users of the machine can read them."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from headrace.model.configs import BROKER_CONFIGS
from headrace.model.configs.providers import PROVIDED_LENGTH_MAX

ROOT = 0
_OF_OTHERS = stat.S_IRWXO | stat.S_IWGRP
_OF_GROUP = stat.S_IRGRP


class SecretFiles:
    """Reads files and variables for config providers, and remembers which files it has read."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.paths: list[str] = []

    def read(self, path: str) -> str:
        with Path(path).open(encoding="utf-8") as opened:
            text = opened.read(PROVIDED_LENGTH_MAX + 1)
        if len(text) > PROVIDED_LENGTH_MAX:
            raise ValueError(f"it has more than {PROVIDED_LENGTH_MAX} characters")
        if path not in self.paths:
            self.paths.append(path)
        return text

    def resolved(self, path: str) -> str:
        return os.path.realpath(path)

    def variable(self, name: str) -> str | None:
        return self._environment.get(name)


def is_sensitive(name: str) -> bool:
    """Tell whether the value of a broker config is a secret."""
    key = BROKER_CONFIGS.get(name)
    return key is not None and key.sensitive


def is_exposed(path: str | Path) -> bool:
    """Tell whether other users of the machine can read or change a file."""
    try:
        found = os.stat(path)
    except OSError:
        return False  # reading the file fails then, with a message of its own
    return others_may(found.st_mode, owner=found.st_uid)


def others_may(mode: int, *, owner: int) -> bool:
    """Tell the same from the mode. Its group may read a file of root, as with the mounted secrets of containers."""
    return bool(mode & (_OF_OTHERS if owner == ROOT else _OF_OTHERS | _OF_GROUP))
