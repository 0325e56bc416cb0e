"""Makes an archive of data from an earlier commit: runs a script on a checkout of it, and packs what it has written."""

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(
    script: str,
    write: Callable[[Path], None],
    *,
    commit: str,
    archive: Path,
    left_out: tuple[str, ...],
    seconds_max: int,
) -> None:
    """Make the archive. With a folder on the command line, write into it instead, as the checkout's code does."""
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        checkout, folder = Path(temporary) / "checkout", Path(temporary) / "written"
        checkout.mkdir()
        folder.mkdir()
        content = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=checkout, input=content, check=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(ROOT)])}
        command = [sys.executable, script, str(folder)]
        subprocess.run(command, cwd=checkout, env=environment, check=True, timeout=seconds_max)
        pack(folder, archive, left_out)
    print(f"{archive}: {archive.stat().st_size} bytes")


def pack(folder: Path, target: Path, left_out: tuple[str, ...]) -> None:
    """Make an archive that does not depend on the time and the user, without files that end in one of `left_out`."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name.endswith(left_out):
            return None
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, arcname=path.name, filter=plain)
