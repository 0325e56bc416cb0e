"""Rows of a manifest as a job reads them: the records of the files it names, without asking the broker for any."""

from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.client.scans import ScanPartition
from headrace.log.checkpoints import decode_partition_metadata, decode_properties
from headrace.wire.records.header import ATTRIBUTES, BASE_OFFSET, HEADER, PRODUCER_ID, TRANSACTIONAL_BIT
from headrace.wire.records.reader import batches, check_batch, is_control, records

Row = tuple[int, bytes | None, bytes | None]
"""Offset, key and value."""


def rows(found: ScanPartition, read: Callable[[str], bytes]) -> Iterator[Row]:
    """`read` gives the bytes of a file by its path below the directory."""
    for segment in found.segments:
        content = read(f"{found.folder}/{segment.file_name}")
        assert len(content) >= segment.size_bytes
        for batch in batches(content[: segment.size_bytes]):
            check_batch(batch)
            fields = HEADER.unpack_from(batch)
            assert segment.base_offset <= fields[BASE_OFFSET] < segment.end_offset
            if is_control(batch) or _is_aborted(found, fields):
                continue
            for record in records(batch):
                if found.start_offset <= record.offset < found.end_offset:
                    yield record.offset, _bytes(record.key), _bytes(record.value)


def _is_aborted(found: ScanPartition, fields: tuple[int, ...]) -> bool:
    return bool(fields[ATTRIBUTES] & TRANSACTIONAL_BIT) and any(
        each.producer_id == fields[PRODUCER_ID] and each.first_offset <= fields[BASE_OFFSET] <= each.last_offset
        for each in found.aborted
    )


def _bytes(value: object) -> bytes | None:
    return None if value is None else bytes(value)  # type: ignore[call-overload, no-any-return]


def checked_rows(found: ScanPartition, cluster_id: str) -> list[Row]:
    """As an executor on the same machine does it: only if the files are those of the manifest."""
    directory = Path(found.directory)
    properties = decode_properties((directory / "meta.properties").read_bytes())
    assert (properties["cluster.id"], properties["directory.id"]) == (cluster_id, found.directory_id)
    metadata = (directory / found.folder / "partition.metadata").read_bytes()
    assert decode_partition_metadata(metadata) == found.topic_id
    return list(rows(found, lambda path: (directory / path).read_bytes()))
