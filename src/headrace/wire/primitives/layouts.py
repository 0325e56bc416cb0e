"""Sizes and limits that reading and writing share."""

from struct import Struct

Buffer = bytes | bytearray | memoryview

STRING_BYTES_MAX = 32_767
"""Kafka's limit for every string, even where the compact encoding could carry more."""

TAGGED_FIELDS_MAX = 128
"""Tagged fields of one struct; Kafka defines a handful at most."""

TAGGED_FIELD_BYTES_MAX = 128 * 1024
"""Bytes of one tagged field; a larger one is refused rather than skipped."""

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10

ZERO_UUID = bytes(16)

BOOL = Struct(">?")
INT8 = Struct(">b")
INT16 = Struct(">h")
UINT16 = Struct(">H")
INT32 = Struct(">i")
UINT32 = Struct(">I")
INT64 = Struct(">q")
FLOAT64 = Struct(">d")
UUID = Struct(">16s")
