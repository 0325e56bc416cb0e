"""The contents of earlier_release.tar.xz, for tests."""

import tarfile
from pathlib import Path

from tests.upgrades.make_earlier_release import ARCHIVE


def unpack(folder: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def owner(folder: Path, kind: str) -> str:
    """Return the owner of the batch commits of one query, which is named after the id in its checkpoint."""
    (query_id,) = (folder / "checkpoints" / kind / "metadata").read_text().split('"')[3:4]
    return f"spark.{query_id}.sink"
