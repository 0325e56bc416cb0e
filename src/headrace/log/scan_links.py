"""Second names for a log's files, for jobs that read them outside the broker.

Retention, DeleteRecords, compaction and the deletion of a topic take a file's first name away; its bytes stay as long
as it has another one. So nothing of the log has to know who reads it. The names are forgotten with the process that
made them: a start removes what it finds.
"""

from collections.abc import Iterable

from headrace.ports.disk import Disk

from . import names


def scan_folder(directory_path: str, scan: str) -> str:
    return f"{directory_path}/{names.SCANS}/{scan}"


def link_files(disk: Disk, source: str, destination: str, file_names: Iterable[str]) -> None:
    """And nothing else. FileNotFoundError if one of them has gone, or been renamed, meanwhile."""
    remove_folder(disk, destination)
    disk.make_directory(destination)
    for name in file_names:
        disk.link(f"{source}/{name}", f"{destination}/{name}")


def remove_folder(disk: Disk, path: str) -> None:
    """With all that is in it; nothing if it is not there."""
    if not disk.exists(path):
        return
    for name in disk.list_directory(path):
        inner = f"{path}/{name}"
        if disk.is_directory(inner):
            remove_folder(disk, inner)
        else:
            disk.unlink(inner)
    disk.remove_directory(path)


def remove_scans(disk: Disk, directory_path: str) -> None:
    """What a process before has left behind."""
    remove_folder(disk, f"{directory_path}/{names.SCANS}")
