"""The Go program, built in a folder of its own with the release of franz-go that is named here."""

import os
import shutil
import subprocess
from pathlib import Path

from compat.environments import HOME, INSTALL_S_MAX, Missing

MODULE, VERSION = "github.com/twmb/franz-go", "v1.22.2"
SOURCE = Path(__file__).with_name("main.go")


def go_program() -> Path:
    """Built once; Missing where Go or its modules cannot be had."""
    if shutil.which("go") is None:
        raise Missing("no go on this machine: install Go 1.24 or newer")
    home = HOME / f"franz-go-{VERSION}"
    program = home / "program"
    stamp = home / "main.go"
    if program.is_file() and stamp.is_file() and stamp.read_bytes() == SOURCE.read_bytes():
        return program
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    shutil.copy(SOURCE, stamp)
    for arguments in (
        ("mod", "init", "compat"),
        ("get", f"{MODULE}@{VERSION}"),
        ("build", "-o", str(program), "."),
    ):
        _run(home, *arguments)
    return program


def _run(home: Path, *arguments: str) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    done = subprocess.run(
        ["go", *arguments],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if done.returncode:
        raise Missing(f"go {arguments[0]} failed for {MODULE} {VERSION}: {done.stderr.strip()[-200:]}")
