"""`pip install .` compiles the helpers where a compiler is, and installs the same package without them elsewhere.

Every case is an environment of its own with nothing of Headrace in it. The packages it depends on, and the build
backend, are lent by the environment of the tests, so nothing is downloaded.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tools import build_native

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        build_native.compiler() is None or not build_native.can_build_modules(),
        reason="needs a C compiler and Python's headers: install gcc and python3-dev",
    ),
]

ROOT = Path(__file__).resolve().parents[2]
INSTALL_SECONDS_MAX = 300
WITHOUT_HEADERS = """#!/bin/sh
for word do
  shift
  case "$word" in -I*) ;; *) set -- "$@" "$word" ;; esac
done
exec {compiler} "$@"
"""
"""A compiler on a machine without Python.h: it looks in its own folders alone."""
PRODUCES = """
from headrace.testing import EmbeddedBroker
from headrace.client import Producer
with EmbeddedBroker() as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
    for number in range(3):
        print(producer.send("t", b"%d" % number).result().offset)
"""


class CleanEnvironment:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin" / "python"
        lent = sysconfig.get_path("purelib")
        own = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
        Path(own, "lent.pth").write_text(f"{lent}\n")

    def run(self, *arguments: str, statuses: tuple[int, ...] = (0,), **environment: str) -> str:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("HEADRACE", "PYTHON"))}
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS_MAX,
        )
        assert done.returncode in statuses, done.stdout + done.stderr
        return done.stdout

    def install(self, **environment: str) -> str:
        options = (
            "--no-deps",
            "--no-index",
            "--no-build-isolation",
            "--ignore-installed",
            "--disable-pip-version-check",
        )
        return self.run("-m", "pip", "install", *options, str(ROOT), **environment)

    def helpers_by_doctor(self) -> dict[str, bool]:
        """Return whether each helper is in use; doctor ends with 1 where the machine has a problem."""
        findings = json.loads(self.run("-m", "headrace", "doctor", "--json", statuses=(0, 1)))
        seen = [finding["seen"] for finding in findings if finding["about"] == "compiled helper"]
        return {each.partition(":")[0]: each.endswith("in use") for each in seen}


def case(tmp_path: Path, **environment: str) -> CleanEnvironment:
    clean = CleanEnvironment(tmp_path / "environment")
    said = clean.install(**environment)
    assert "error" not in said.lower()
    assert "warning" not in said.lower()
    where = clean.run("-c", "import headrace; print(headrace.__file__)")
    assert where.startswith(str(tmp_path))
    return clean


def test_with_a_compiler(tmp_path: Path) -> None:
    before = set(ROOT.joinpath("src").rglob("*.so"))
    clean = case(tmp_path)
    assert clean.helpers_by_doctor() == {"requests": True, "columns": True}
    assert set(ROOT.joinpath("src").rglob("*.so")) == before  # nothing is left in the sources


def test_without_a_compiler(tmp_path: Path) -> None:
    clean = case(tmp_path, CC=str(tmp_path / "no-such-compiler"))
    assert clean.helpers_by_doctor() == {"requests": False, "columns": False}
    assert clean.run("-c", PRODUCES).split() == ["0", "1", "2"]


def test_with_a_compiler_and_without_the_headers_of_python(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    command = build_native.compiler()
    assert command is not None
    compiler.write_text(WITHOUT_HEADERS.format(compiler=" ".join(command)))
    compiler.chmod(0o755)
    clean = case(tmp_path, CC=str(compiler))
    assert clean.helpers_by_doctor() == {"requests": False, "columns": True}
    assert clean.run("-c", PRODUCES).split() == ["0", "1", "2"]


def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    said: list[str] = []
    assert build_native.build_all(tmp_path, tell=said.append) == {}
    assert len(said) == len(build_native.LIBRARIES)
    assert [path.name for path in tmp_path.iterdir()] == ["cc"]


def test_the_sources_compile_without_a_warning(tmp_path: Path) -> None:
    said: list[str] = []
    built = build_native.build_all(tmp_path, "-Werror", tell=said.append)
    assert said == []
    assert built.keys() == build_native.LIBRARIES.keys()
