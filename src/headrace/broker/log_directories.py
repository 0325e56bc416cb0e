"""Opening of the log directories when a node starts, and the cluster id and the cluster key that they carry."""

from errno import ENOENT
from typing import NamedTuple

from headrace.broker.logs import NodeLogger
from headrace.log.cluster_key import (
    ClusterKey,
    NoClusterKey,
    new_cluster_id,
    new_cluster_key,
    read_cluster_key,
    write_cluster_key,
)
from headrace.log.directory import LogDirectory, read_meta_properties
from headrace.log.errors import CorruptFile, WrongDirectory
from headrace.log.known_directories import missing, read_known, write_known
from headrace.log.names import CLUSTER_KEY
from headrace.log.open_files import OpenFiles
from headrace.model.configs.values import BrokerConfig
from headrace.ports.disk import Disk
from headrace.ports.entropy import Entropy


class LogDirectories(NamedTuple):
    cluster_id: str
    cluster_key: ClusterKey | None
    """The secret shared by the nodes of the cluster; None for a standalone node."""
    opened: list[LogDirectory]
    """The first of `log.dirs`, which holds the metadata, then the others that could be opened."""
    missing: list[str]
    """Paths of those that could not be opened; their partitions are offline."""

    @property
    def home(self) -> LogDirectory:
        """The directory that holds the metadata."""
        return self.opened[0]

    @property
    def clean_shutdown(self) -> bool:
        """True if the last stop was clean in all of them."""
        return all(directory.clean_shutdown for directory in self.opened)

    def close(self) -> None:
        for directory in self.opened:
            directory.close()


def open_directories(
    config: BrokerConfig, disk: Disk, entropy: Entropy, files: OpenFiles, logger: NodeLogger
) -> LogDirectories:
    """Open every directory of `log.dirs`.

    Raises an error if the first cannot be opened. The broker does without any other one that is missing.
    """
    home, *others = config.log_dirs
    key = read_cluster_key(disk, home) if config.cluster.listener is not None else None
    cluster_id = _cluster_id(disk, config.log_dirs)
    if key is None and config.cluster.peers:
        raise NoClusterKey(home)
    if key is not None and cluster_id not in (None, key.cluster_id):
        raise WrongDirectory(
            f"{home} belongs to cluster {cluster_id!r}, but its {CLUSTER_KEY} to cluster {key.cluster_id!r}; restore "
            "the file from another node of the cluster, or start with an empty directory"
        )
    cluster_id = cluster_id or (key.cluster_id if key is not None else new_cluster_id(entropy))
    is_founded = key is None and config.cluster.listener is not None
    key = new_cluster_key(entropy, cluster_id) if is_founded else key
    directories = LogDirectories(cluster_id, key, [], [])

    def open_directory(path: str) -> None:
        directories.opened.append(
            LogDirectory.open(
                disk,
                path,
                cluster_id=directories.cluster_id,
                node_id=config.node_id,
                entropy=entropy,
                files=files,
                notice=logger.warning,
            )
        )

    try:
        open_directory(home)
        if is_founded and key is not None:
            write_cluster_key(disk, home, key)
        known = read_known(disk, home) if others else {}
        lost = missing(disk, others, known)
        for path in others:
            try:
                if path in lost:
                    raise FileNotFoundError(
                        ENOENT, "another directory was here at the last start; is it mounted?", path
                    )
                open_directory(path)
            except OSError as error:
                directories.missing.append(path)
                logger.error(
                    "a log directory is missing; its partitions stay offline until it is repaired and the broker is "
                    "restarted, or until it is removed from log.dirs",
                    directory=path,
                    error=str(error),
                )
        if others:
            write_known(disk, home, others, known, directories.opened[1:])
    except BaseException:
        directories.close()
        raise
    return directories


def _cluster_id(disk: Disk, log_dirs: tuple[str, ...]) -> str | None:
    """Read the cluster id from the directories; None if they are new.

    A directory that cannot be read is passed over here, because opening it reports the error.
    """
    for path in log_dirs:
        try:
            return read_meta_properties(disk, path)["cluster.id"]
        except (OSError, KeyError, CorruptFile):
            continue
    return None
