"""Rows of the broker config table for the audit log, and a typed view of them."""
# ruff: noqa: E501  (one row is one line)

from dataclasses import dataclass
from typing import Protocol

from headrace.model.configs.definition import ConfigType, row

AUDIT_ROWS = (
    row("headrace.audit.dir", ConfigType.STRING, "", "The folder of the audit log, in which each node writes the file audit-NODE.jsonl; empty disables the audit log."),
    row("headrace.audit.file.bytes.max", ConfigType.LONG, 64 << 20, "The size from which the file of the audit log is replaced by a new one.", low=4 << 10),
    row("headrace.audit.files.max", ConfigType.INT, 10, "The number of files of the audit log that are kept, the current one included.", low=2, high=1_000),
    row("headrace.audit.window.ms", ConfigType.LONG, 60_000, "The time in which equal logins and refusals after the first are counted instead of written; a line with the count follows.", low=100),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    folder: str
    """Empty without an audit log."""
    file_bytes_max: int
    files_max: int
    window_ms: int


class AuditValues(Protocol):
    def whole(self, name: str) -> int: ...
    def text(self, name: str) -> str: ...


def audit_config(values: AuditValues) -> AuditConfig:
    return AuditConfig(
        folder=values.text("headrace.audit.dir"),
        file_bytes_max=values.whole("headrace.audit.file.bytes.max"),
        files_max=values.whole("headrace.audit.files.max"),
        window_ms=values.whole("headrace.audit.window.ms"),
    )
