"""Run a chore of the project (`make test` is `python3 tools/dev.py test`), setting up `.venv` first where it needs one.

Standard library only, and readable by old interpreters, so that a bare clone can say what it lacks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMPS = VENV / "headrace-stamps"
CACHE = VENV / "cache"
"""Files that the tests keep from one run to the next, in the place of the user's own."""
PYTHON_MIN = (3, 11)
NEWER_PYTHONS = ("python3.13", "python3.12", "python3.11")

LINTED = ("src", "tests", "tools", "examples", "compat")
CHECKED_LOOSELY = LINTED[1:]
CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache")
LITTER = (".venv", ".compat", *CACHES, "dist", "build")
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate"),
    *("--no-emit-index-url", "--python-version", "3.11", "pyproject.toml"),
)


class ChoreError(Exception):
    """A chore cannot continue; the message tells the user what to do."""


def run(*command: str | Path, **environment: str) -> int:
    """Run a command in the project folder and return its exit status."""
    return subprocess.run([str(word) for word in command], cwd=ROOT, env={**os.environ, **environment}).returncode


def must(*command: str | Path, failing: str, **environment: str) -> None:
    if run(*command, **environment) != 0:
        raise ChoreError(failing)


def existing(*names: str) -> list[str]:
    return [name for name in names if (ROOT / name).is_dir()]


# --- the environment -------------------------------------------------------------------------------------------------


def environment(*, requirements: str, shows_progress: bool = False) -> None:
    """Bring `.venv` to what requirements/<name>.txt pins; costs nothing when the stamp says that it is there."""
    pins = ROOT / "requirements" / f"{requirements}.txt"
    stamp = STAMPS / requirements
    # The C sources are part of it: a compiled helper of an older source would not fit.
    sources = (pins, *sorted(ROOT.glob("src/headrace/wire/**/*.[ch]")))
    content = hashlib.sha256(b"".join(source.read_bytes() for source in sources) + installed_tables()).hexdigest()
    if PYTHON.exists() and stamp.is_file() and stamp.read_text() == content:
        return
    create_venv()
    print(f"setting up .venv from requirements/{requirements}.txt ...", flush=True)
    quiet = () if shows_progress else ("--quiet",)
    pip = (PYTHON, "-m", "pip", "install", *quiet, "--disable-pip-version-check", "--no-input")
    must(*pip, "--require-hashes", "-r", pins, failing="the packages could not be installed; see pip's message above")
    itself = "headrace itself could not be installed"
    must(*pip, "--no-deps", "--no-build-isolation", "-e", ROOT, failing=itself)
    STAMPS.mkdir(exist_ok=True)
    stamp.write_text(content)


def installed_tables() -> bytes:
    """Return the tables of pyproject.toml that an installation depends on, which leaves out the settings of linters."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return repr((project["build-system"], project["project"], project["tool"]["hatch"])).encode()


def create_venv() -> None:
    if PYTHON.exists() and (VENV / "bin" / "pip").exists():
        return
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as missing:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise ChoreError(
            f"this Python has no {missing.name} module; on Debian and Ubuntu: apt-get install python{version}-venv"
        ) from missing
    must(sys.executable, "-m", "venv", "--clear", VENV, failing="no virtual environment could be made in .venv")


# --- the chores ------------------------------------------------------------------------------------------------------


def demo(arguments: Sequence[str]) -> int:
    """Send and read 1,000,000 messages on three brokers, one of them killed, then run orders through Spark (KEEP=1)."""
    began = time.time()
    environment(requirements="core")
    status = run(PYTHON, "examples/demo.py", *arguments, DEMO_BEGAN=str(began), KEEP="")
    if status != 0:
        return status
    print("\nnow a pipeline on Spark, which is about 460 MB to install", flush=True)
    environment(requirements="spark", shows_progress=True)
    return run(PYTHON, "examples/demo_pipeline.py")


def test(arguments: Sequence[str]) -> int:
    """Run the tests, in random order, warnings being errors (CI=true: repeat a few failed tests of real processes)."""
    environment(requirements="dev")
    if not any(argument.startswith("tests") for argument in arguments):
        keep_spark_classes()
    return run(PYTHON, "-m", "tools.test_run", *arguments, XDG_CACHE_HOME=str(CACHE))


def keep_spark_classes() -> None:
    """Keep the classes that Java loads for Spark, once per environment; without them the tests only take longer."""
    if not any(CACHE.glob("headrace/classes-*/*.jsa")):
        run(VENV / "bin" / "headrace", "spark", "archive", XDG_CACHE_HOME=str(CACHE))


def quick(arguments: Sequence[str]) -> int:
    """Run the unit tests: those without processes, real clients, real time or Spark that are not marked slow."""
    environment(requirements="dev")
    return run(PYTHON, "-m", "tools.test_run", "--unit", *arguments)


def check(arguments: Sequence[str]) -> int:
    """Lint, check formatting, types, import rules and that generated files are up to date."""
    environment(requirements="dev")
    module = (PYTHON, "-m")
    steps: dict[str, tuple[str | Path, ...]] = {
        "lint": (*module, "ruff", "check", *existing(*LINTED)),
        "format": (*module, "ruff", "format", "--check", *existing(*LINTED)),
        "types": (*module, "mypy"),
        "types of tests and tools": (*module, "mypy", *existing(*CHECKED_LOOSELY)),
        "imports": (VENV / "bin" / "lint-imports", "--no-logo"),
        "prose": (PYTHON, "tools/prose_check.py"),
        "generated codecs": (*module, "headrace.wire.generator", "--check"),
        "generated reference": (PYTHON, "tools/generate_docs.py", "--check"),
    }
    failed = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        if run(*command) != 0:
            failed.append(name)
    print(f"check: failed in {', '.join(failed)}" if failed else f"check: all {len(steps)} steps passed")
    return 1 if failed else 0


def format_code(arguments: Sequence[str]) -> int:
    """Format the code and apply the linter's safe repairs."""
    environment(requirements="dev")
    folders = existing(*LINTED)
    return run(PYTHON, "-m", "ruff", "check", "--fix", *folders) | run(PYTHON, "-m", "ruff", "format", *folders)


def docs(arguments: Sequence[str]) -> int:
    """Write the generated pages of docs/reference again."""
    environment(requirements="dev")
    return run(PYTHON, "tools/generate_docs.py", *arguments)


def site(arguments: Sequence[str]) -> int:
    """Build the documents as a site in build/site/html, strictly and with checked links; it can be read offline."""
    environment(requirements="core")  # with what builds the package itself
    environment(requirements="docs")
    return run(PYTHON, "-m", "tools.site", *arguments)


def compat(arguments: Sequence[str]) -> int:
    """Run stock clients and librdkafka's own tests against the broker; writes docs/compatibility.md (downloads)."""
    environment(requirements="dev")
    return run(PYTHON, "-m", "compat.run", *arguments)


def lock(arguments: Sequence[str]) -> int:
    """Pin the newest allowed packages again (needs uv)."""
    if shutil.which("uv") is None:
        raise ChoreError("make lock needs uv: pip install uv")
    for name in ("core", "spark", "manager", "dev", "fuzz", "docs"):
        target = f"requirements/{name}"
        must(*COMPILE, f"{target}.in", "-o", f"{target}.txt", *arguments, failing=f"{target}.txt was not written")
    return 0


def bench(arguments: Sequence[str]) -> int:
    """Measure every load beside Apache Kafka and write docs/performance.md (ARGS=--quick: two minutes, not written)."""
    environment(requirements="dev")  # with the clients that are measured too
    page = () if "--quick" in arguments else ("--write", "docs/performance.md")
    return run(PYTHON, "-m", "tools.bench", "compare", *page, *arguments)


def chaos(arguments: Sequence[str]) -> int:
    """Run what is left of the long runs (simulator, kills, fuzzing) and write docs/reliability.md (hours)."""
    environment(requirements="dev")
    return run(PYTHON, "-m", "tools.chaos", *arguments)


def clean(arguments: Sequence[str]) -> int:
    """Remove .venv, caches and build results."""
    for name in LITTER:
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for folder in existing(*LINTED):
        for cache in (ROOT / folder).rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
    return 0


CHORES: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "test": test,
    "quick": quick,
    "check": check,
    "format": format_code,
    "docs": docs,
    "site": site,
    "compat": compat,
    "lock": lock,
    "bench": bench,
    "chaos": chaos,
    "clean": clean,
}


def insist_on_python() -> None:
    """Continue with a newer interpreter when this one is too old and the machine has one."""
    if sys.version_info[:2] >= PYTHON_MIN:
        return
    for name in NEWER_PYTHONS:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0:
            os.execv(path, [path, *sys.argv])
    raise ChoreError("Headrace needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 ...")


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in CHORES:
        print("make TARGET [ARGS=...]")
        for name, chore in CHORES.items():
            print(f"  {name:8} {chore.__doc__}")
        return 0 if list(arguments) == ["--help"] else 2
    try:
        insist_on_python()
        return CHORES[arguments[0]](arguments[1:])
    except ChoreError as error:
        print(f"make {arguments[0]}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
