"""The virtual disk against a model of what a power cut may not touch."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.sim.disk import VirtualDisk
from headrace.sim.entropy import SeededEntropy
from headrace.sim.inodes import SECTOR_BYTES
from headrace.sim.trace import Trace

FOLDER = "data"
NAMES = ("a", "b", "c")
FILE_BYTES_MAX = 12_000


class FileModel:
    """One file: what readers see, what the last sync covered, and every content it had since."""

    def __init__(self):
        self.content = b""
        self.synced = b""
        self.versions = [b""]

    def changed(self, content):
        self.content = content
        self.versions.append(content)

    def sync(self):
        self.synced = self.content
        self.versions = [self.content]


class DiskAgainstModel(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.disk = VirtualDisk(SeededEntropy(0), Trace())
        self.disk.make_directory(FOLDER)
        self.disk.sync_directory("")
        self.files = {}
        self.synced_names = {}
        self.names_changed = False

    def handle(self, name):
        return self.disk.open(f"{FOLDER}/{name}")

    def is_one_file(self, name, other):
        return self.disk._existing(f"{FOLDER}/{name}") is self.disk._existing(f"{FOLDER}/{other}")

    @rule(name=st.sampled_from(NAMES))
    def create(self, name):
        self.disk.close(self.disk.open(f"{FOLDER}/{name}", create=True))
        if name not in self.files:
            self.files[name] = FileModel()
            self.names_changed = True

    @rule(
        name=st.sampled_from(NAMES),
        position=st.integers(0, FILE_BYTES_MAX),
        length=st.integers(1, FILE_BYTES_MAX),
        fill=st.integers(1, 255),
    )
    def write(self, name, position, length, fill):
        if name not in self.files:
            return
        payload = bytes([fill]) * length
        handle = self.handle(name)
        assert self.disk.write_vector(handle, [payload], position) == length
        self.disk.close(handle)
        before = self.files[name].content.ljust(position, b"\0")
        self.files[name].changed(before[:position] + payload + before[position + length :])

    @rule(name=st.sampled_from(NAMES), length=st.integers(0, FILE_BYTES_MAX))
    def truncate(self, name, length):
        if name not in self.files:
            return
        handle = self.handle(name)
        self.disk.truncate(handle, length)
        self.disk.close(handle)
        self.files[name].changed(self.files[name].content[:length].ljust(length, b"\0"))

    @rule(name=st.sampled_from(NAMES))
    def sync(self, name):
        if name not in self.files:
            return
        handle = self.handle(name)
        self.disk.data_sync(handle)
        self.disk.close(handle)
        self.files[name].sync()

    @rule(source=st.sampled_from(NAMES), destination=st.sampled_from(NAMES))
    def rename(self, source, destination):
        if source not in self.files or source == destination:
            return
        self.disk.rename(f"{FOLDER}/{source}", f"{FOLDER}/{destination}")
        if self.files[source] is self.files.get(destination):
            return  # as POSIX has it: two names of one file stay as they are
        self.files[destination] = self.files.pop(source)
        self.names_changed = True

    @rule(name=st.sampled_from(NAMES))
    def unlink(self, name):
        if name not in self.files:
            return
        self.disk.unlink(f"{FOLDER}/{name}")
        del self.files[name]
        self.names_changed = True

    @rule()
    def sync_names(self):
        self.disk.sync_directory(FOLDER)
        self.synced_names = dict(self.files)
        self.names_changed = False

    @rule()
    def kill(self):
        self.disk.kill()

    @rule(seed=st.integers(0, 1 << 16))
    def cut_power(self, seed):
        self.disk.crash(SeededEntropy(seed))
        survived = self.disk.list_directory(FOLDER)
        if not self.names_changed:
            assert survived == sorted(self.synced_names)
        after: dict[Any, Any] = {}
        for name in survived:
            handle = self.handle(name)
            content = self.disk.read(handle, 1 << 20, 0)
            self.disk.close(handle)
            if not self.names_changed:
                assert_possible(self.files[name], content)
            # Of several renames of one file, a later one may have survived and an earlier one not: it has two names.
            twin = next((other for other in after if self.is_one_file(other, name)), None)
            after[name] = FileModel() if twin is None else after[twin]
            after[name].changed(content)
            after[name].sync()
        self.files = after
        self.synced_names = dict(after)
        self.names_changed = False

    @invariant()
    def readers_see_what_was_written(self):
        if not hasattr(self, "disk"):
            return
        assert self.disk.list_directory(FOLDER) == sorted(self.files)
        for name, model in self.files.items():
            handle = self.handle(name)
            assert self.disk.read(handle, 1 << 20, 0) == model.content
            self.disk.close(handle)


def assert_possible(model, survived):
    """Exactly the synced bytes if nothing came after; else each sector is the synced one or the last one written."""
    if len(model.versions) == 1:
        assert survived == model.synced
        return
    bounds = sorted((len(model.synced), len(model.content)))
    assert bounds[0] <= len(survived) <= bounds[1]
    for at in range(0, len(survived), SECTOR_BYTES):
        sector = survived[at : at + SECTOR_BYTES]
        possible = [
            version[at : at + len(sector)].ljust(len(sector), b"\0") for version in (model.synced, model.content)
        ]
        assert sector in possible


TestDiskAgainstModel = pytest.mark.slow(DiskAgainstModel.TestCase)
TestDiskAgainstModel.settings = settings(max_examples=60, stateful_step_count=30)
