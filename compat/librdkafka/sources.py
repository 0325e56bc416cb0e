"""librdkafka's sources, which an npm package carries with their tests, and the test-runner built of them; both once."""

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from compat.environments import HOME, INSTALL_S_MAX, Missing

PACKAGE = "@confluentinc/kafka-javascript"
PACKAGE_VERSION = "1.10.1"
PACKAGE_SHA256 = "ada7d703bb1d3237e2292bfabf438d663b6160c9f1ac2a2406b5dc4257c81b66"
LIBRDKAFKA_VERSION = "2.15.1"
SOURCES_IN_PACKAGE = "package/deps/librdkafka"
TOOLS = {"npm": "npm", "gcc": "gcc", "g++": "g++", "make": "make"}
"""Commands that are needed, and the Debian packages they come in."""

ONE_REPLICA = {
    "0098-consumer-txn.cpp": (("(), 1, 3, 5000)", "(), 1, 1, 5000)"), ("(), 2, 3, 5000)", "(), 2, 1, 5000)")),
    "0107-topic_recreate.c": (("part_cnt_1, 3,", "part_cnt_1, 1,"), ("part_cnt_2, 3,", "part_cnt_2, 1,")),
    "0111-delay_create_topics.cpp": (("topic.c_str(), 1, 3)", "topic.c_str(), 1, 1)"),),
}
"""The only change to the tests: what they want of three brokers that one can give."""

BUILD_S_MAX = 1800
SAID_CHARACTERS_MAX = 400


def built_tests() -> Path:
    """The folder that holds `test-runner`; raises Missing when it can be neither found nor made."""
    sources = HOME / f"librdkafka-{LIBRDKAFKA_VERSION}"
    tests = sources / "tests"
    stamp = sources / "built"
    if stamp.is_file():
        return tests
    for command, package in TOOLS.items():
        if shutil.which(command) is None:
            raise Missing(f"no {command} on this machine: apt-get install {package}")
    if not tests.is_dir():
        _unpack(_download(), sources)
    _ask_for_one_replica(tests)
    politely = ("nice", "-n", "10")
    if not (sources / "Makefile.config").is_file():
        _must("./configure", cwd=sources, seconds_max=BUILD_S_MAX)
    _must(*politely, "make", f"-j{os.cpu_count()}", "libs", cwd=sources, seconds_max=BUILD_S_MAX)
    _must(*politely, "make", f"-j{os.cpu_count()}", "build", cwd=tests, seconds_max=BUILD_S_MAX)
    stamp.touch()
    return tests


def _download() -> Path:
    """The package's archive, with the checksum that this module states."""
    HOME.mkdir(exist_ok=True)
    _must("npm", "pack", "--silent", f"{PACKAGE}@{PACKAGE_VERSION}", cwd=HOME, seconds_max=INSTALL_S_MAX)
    archive = HOME / f"{PACKAGE.removeprefix('@').replace('/', '-')}-{PACKAGE_VERSION}.tgz"
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != PACKAGE_SHA256:
        archive.unlink()
        raise Missing(f"{PACKAGE} {PACKAGE_VERSION} has the checksum {found}, expected {PACKAGE_SHA256}")
    return archive


def _unpack(archive: Path, sources: Path) -> None:
    """The sources alone; in place only when they are complete."""
    unfinished = HOME / "librdkafka-unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    with tarfile.open(archive) as files:
        wanted = [member for member in files if member.name.startswith(f"{SOURCES_IN_PACKAGE}/")]
        files.extractall(unfinished, members=wanted, filter="data")
    (unfinished / SOURCES_IN_PACKAGE).rename(sources)
    shutil.rmtree(unfinished)
    archive.unlink()


def _ask_for_one_replica(tests: Path) -> None:
    for name, changes in ONE_REPLICA.items():
        source = tests / name
        text = source.read_text()
        for before, after in changes:
            assert before in text or after in text, f"{name} is not as expected"
            text = text.replace(before, after)
        source.write_text(text)


def _must(*command: str, cwd: Path, seconds_max: float) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds_max, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-SAID_CHARACTERS_MAX:]
        raise Missing(f"{' '.join(command)} failed: {said}")
