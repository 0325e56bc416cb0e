"""Small scripts that Spark starts in the place of a program: written once for each user and program."""

import os
import re
from pathlib import Path
from tempfile import gettempdir

NAME_CHARACTERS_MAX = 100


def places(kind: str, program: Path) -> tuple[Path, Path]:
    """Folders for what stands before this program, of this user alone: the usual one, and one where there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"{kind}-{re.sub(r'[^a-zA-Z0-9.]+', '-', str(program)).strip('-')}"[-NAME_CHARACTERS_MAX:]
    return cache / "headrace" / name, Path(gettempdir()) / f"headrace-{os.getuid()}-{name}"


def written(script: Path, text: str) -> Path:
    """The script, as it is or made anew; nobody else can have put it there."""
    if not script.exists() or script.read_text() != text or script.stat().st_uid != os.getuid():
        script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = script.with_name(f"{script.name}.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o700)
        fresh.replace(script)
    return script
