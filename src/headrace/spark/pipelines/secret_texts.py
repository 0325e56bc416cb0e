"""Secrets that a pipeline file refers to: read from the environment or a file, and removed from all that is shown."""

import json
import os
from pathlib import Path
from urllib.parse import quote

SECRET_LENGTH_MIN = 4
"""Characters; a shorter text is part of too many messages to be removed from them."""
SECRET_LENGTH_MAX = 64 * 1024
HIDDEN = "***"


class SecretMissing(ValueError):
    """A secret cannot be read, or it cannot be kept out of messages."""


class Secrets:
    """The secrets of one pipeline. Its text form shows none of them."""

    def __init__(self) -> None:
        self._forms: set[str] = set()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def add(self, secret: str) -> None:
        """Remember a secret, with the forms in which messages may quote it."""
        self._forms |= {secret, *secret.splitlines(), repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, "")}
        self._forms = {form for form in self._forms if len(form) >= SECRET_LENGTH_MIN}

    def hide(self, text: str) -> str:
        """Return the text without secrets; a secret that contains another one is removed first."""
        for form in sorted(self._forms, key=len, reverse=True):
            text = text.replace(form, HIDDEN)
        return text


def secret_of_environment(name: str) -> str:
    found = os.environ.get(name)
    if found is None:
        raise SecretMissing(f"the environment variable {name} is not set")
    return _usable(found, f"the environment variable {name}")


def secret_of_file(file: Path) -> str:
    """Return the text of the file without the line break at its end."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(SECRET_LENGTH_MAX + 1)
    except UnicodeDecodeError:
        raise SecretMissing(f"the file {file} is not UTF-8 text") from None
    except OSError as error:
        raise SecretMissing(f"the file {file} cannot be read: {error.strerror}") from None
    return _usable(text.removesuffix("\n").removesuffix("\r"), f"the file {file}")


def _usable(text: str, what: str) -> str:
    if not SECRET_LENGTH_MIN <= len(text) <= SECRET_LENGTH_MAX:
        raise SecretMissing(f"{what} must contain {SECRET_LENGTH_MIN} to {SECRET_LENGTH_MAX} characters")
    return text
