"""Facts that the system gives about processes, and processes that misbehave."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from headrace.bench import processes
from headrace.bench.brokers import HeadraceBroker
from headrace.bench.errors import BenchError
from tools.bench.idle import allow_descriptors

pytestmark = pytest.mark.process

BURN = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def test_the_cpu_of_a_tree_has_children_that_ended(tmp_path: Path) -> None:
    before = processes.cpu_seconds(os.getpid())
    processes.run(processes.python_command("-c", BURN.format(seconds=0.1)), messages=tmp_path / "m", seconds_max=60)
    assert processes.cpu_seconds(os.getpid()) - before >= 0.09


def test_the_cpu_of_a_tree_has_children_that_run(tmp_path: Path) -> None:
    child = BURN.format(seconds=0.1) + "print(1, flush=True); input()"
    program = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE).wait()\n"
    )
    process = processes.start(processes.python_command("-c", program), messages=tmp_path / "m", stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert processes.first_line(process.stdout, 60) == "1"
        assert processes.cpu_seconds(process.pid) >= 0.09
        assert processes.resident_bytes(process.pid) > 2 * 4_000_000
    finally:
        processes.stop(process)
    with pytest.raises(BenchError, match="is gone"):
        processes.cpu_seconds(process.pid)


def test_programs_have_bytecode_as_an_installed_package_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept beside the tool's other things where the user wants none in the source tree."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    said = processes.run(processes.python_command("-c", program), messages=tmp_path / "m", seconds_max=60)
    assert said.decode().split() == ["False", str(tmp_path / "headrace" / "bytecode")]


def test_a_program_that_fails_has_last_words(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no such luck"):
        processes.run(
            processes.python_command("-c", "raise SystemExit('no such luck')"), messages=tmp_path / "m", seconds_max=60
        )


class Told(BaseException):
    pass


def test_a_program_ends_with_who_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_waited_for, communicate = threading.Event(), subprocess.Popen.communicate

    def wait(process: subprocess.Popen[bytes], **limits: float) -> tuple[bytes, bytes]:
        is_waited_for.set()
        return communicate(process, **limits)

    def end(*_arguments: object) -> None:
        raise Told

    name = tmp_path / "process"
    program = f"import os, time; open({str(name)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    def tell() -> None:
        while not (is_waited_for.is_set() and name.exists() and name.read_text()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr(subprocess.Popen, "communicate", wait)
    before = signal.signal(signal.SIGUSR1, end)
    telling = threading.Thread(target=tell)
    telling.start()
    try:
        with pytest.raises(Told):
            processes.run(processes.python_command("-c", program), messages=tmp_path / "m", seconds_max=600)
    finally:
        telling.join()
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int(name.read_text()), 0)


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="unknown config"):
        HeadraceBroker(tmp_path, {"no.such.config": "1"}).start()


def test_no_more_descriptors_than_the_system_allows() -> None:
    with pytest.raises(BenchError, match="hard limit"):
        allow_descriptors(1 << 40)
