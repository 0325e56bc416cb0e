"""Hard links to a log's files, for jobs that read them outside the broker.

Retention, DeleteRecords, compaction and topic deletion remove a file's original name; its bytes stay as long as another
link exists. So the log need not track these readers. Links last no longer than the process that made them: a start
removes the links it finds.
"""

from collections.abc import Iterable

from headrace.ports.disk import Disk

from . import names


def scan_folder(directory_path: str, scan: str) -> str:
    return f"{directory_path}/{names.SCANS}/{scan}"


def link_files(disk: Disk, source: str, destination: str, file_names: Iterable[str]) -> None:
    """Link exactly these files. Raises FileNotFoundError if one of them has been removed or renamed meanwhile."""
    remove_folder(disk, destination)
    disk.make_directory(destination)
    for name in file_names:
        disk.link(f"{source}/{name}", f"{destination}/{name}")


def remove_folder(disk: Disk, path: str) -> None:
    """Remove the folder and its contents; do nothing if it does not exist."""
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
    """Remove the links that an earlier process left behind."""
    remove_folder(disk, f"{directory_path}/{names.SCANS}")
