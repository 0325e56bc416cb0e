"""Small scripts that Spark starts in place of a program: written once for each user and program."""

import errno
import os
import re
import stat
from pathlib import Path
from tempfile import gettempdir

NAME_CHARACTERS_MAX = 100
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def places(kind: str, program: Path) -> tuple[Path, Path]:
    """Return folders for the script, private to this user: the usual one, and a fallback."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"{kind}-{re.sub(r'[^a-zA-Z0-9.]+', '-', str(program)).strip('-')}"[-NAME_CHARACTERS_MAX:]
    return cache / "headrace" / name, Path(gettempdir()) / f"headrace-{os.getuid()}-{name}"


def written(script: Path, text: str) -> Path:
    """Return the script, existing or rewritten; OSError if another user could have placed it there."""
    for folder in (script.parent.parent, script.parent):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _insist_on_own(folder)
    if not script.exists() or script.read_text() != text:
        fresh = script.with_name(f"{script.name}.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o700)
        fresh.replace(script)
    return script


def _insist_on_own(folder: Path) -> None:
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(errno.EACCES, "other users can write there", str(folder))
