import random
import struct
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.errors import CorruptBatch, InflationLimit
from headrace.wire.records.compression import Compression, compress, decompress
from tests.peak_memory import allocates_less_than, allocations_traced

PACKED = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
MIB = 1024 * 1024
GIB = 1024 * MIB


@pytest.mark.parametrize("codec", Compression)
@given(plain=st.binary(max_size=4096) | st.binary(min_size=1, max_size=40).map(lambda piece: piece * 10_000))
def test_round_trip(codec: Compression, plain: bytes) -> None:
    assert decompress(codec, compress(codec, plain), len(plain)) == plain


@pytest.mark.parametrize("codec", PACKED)
def test_the_limit_is_exact(codec: Compression) -> None:
    plain = b"abcdefgh" * 50_000
    packed = compress(codec, plain)
    assert decompress(codec, packed, len(plain)) == plain
    with pytest.raises(InflationLimit, match=str(len(plain) - 1)):
        decompress(codec, packed, len(plain) - 1)


def gzip_bomb() -> bytes:
    """A gibibyte of zeros in a mebibyte: one flushed piece, repeated."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    return head + (packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)) * 1024


def snappy_bomb() -> bytes:
    """Blocks in the Java framing that declare a gibibyte in all."""
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + (struct.pack(">i", len(block)) + block) * 1024


def lz4_bomb() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
    head = bytes(cramjam.lz4.compress(b""))[:4] + b"\x60\x70\x73"
    return head + (struct.pack("<I", len(block)) + block) * 256 + bytes(4)


def zstd_bomb() -> bytes:
    """Run-length blocks of 128 KiB, four bytes each; the last one says so."""
    blocks = b"".join(
        struct.pack("<I", 128 * 1024 << 3 | 1 << 1 | (number == 8191))[:3] + b"\x00" for number in range(8192)
    )
    return struct.pack("<I", 0xFD2FB528) + b"\x00" + bytes([(17 - 10) << 3]) + blocks


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        (Compression.GZIP, gzip_bomb),
        (Compression.SNAPPY, snappy_bomb),
        (Compression.LZ4, lz4_bomb),
        (Compression.ZSTD, zstd_bomb),
    ],
    ids=["gzip", "snappy", "lz4", "zstd"],
)
def test_a_bomb_is_refused_within_the_limit(codec: Compression, bomb: object) -> None:
    packed = bomb()  # type: ignore[operator]

    def refused() -> None:
        with pytest.raises(InflationLimit):
            decompress(codec, packed, 4 * MIB)

    # Two copies of the compressed bytes and two of the plain ones at most are alive at once.
    with allocations_traced():
        assert allocates_less_than(2 * len(packed) + 2 * 4 * MIB + MIB, refused)


def test_the_lz4_bomb_is_well_formed() -> None:
    """Its header checksum is right, so the refusal above is for its size."""
    one_block = lz4_bomb()
    size = struct.unpack_from("<I", one_block, 7)[0]
    assert len(decompress(Compression.LZ4, one_block[: 11 + size] + bytes(4), 4 * MIB)) == 4 * MIB


def test_the_zstd_bomb_is_well_formed() -> None:
    last_block = zstd_bomb()[:6] + zstd_bomb()[-4:]
    assert decompress(Compression.ZSTD, last_block, MIB) == bytes(128 * 1024)


def test_a_gzip_of_many_members_counts_them_together() -> None:
    member = compress(Compression.GZIP, bytes(1000))
    assert decompress(Compression.GZIP, member * 3, 3000) == bytes(3000)
    with pytest.raises(InflationLimit):
        decompress(Compression.GZIP, member * 4, 3999)


def test_a_zstd_frame_that_asks_for_a_window_of_a_gibibyte_is_refused() -> None:
    frame = struct.pack("<I", 0xFD2FB528) + b"\x00" + bytes([(30 - 10) << 3]) + b"\x01\x00\x00"
    with pytest.raises(InflationLimit, match="window"):
        decompress(Compression.ZSTD, frame, 64 * MIB)


def test_a_zstd_frame_that_declares_a_gibibyte_of_content_is_refused() -> None:
    frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, GIB) + b"\x01\x00\x00"
    with pytest.raises(InflationLimit):
        decompress(Compression.ZSTD, frame, 64 * MIB)


def test_a_zstd_frame_without_content_size_is_read() -> None:
    packer = cramjam.zstd.Compressor()
    packer.compress(b"hello " * 1000)
    frame = bytes(packer.finish())
    assert frame[4] & 0xE0 == 0, "the stream compressor states no size"
    assert decompress(Compression.ZSTD, frame, 6000) == b"hello " * 1000


def test_snappy_is_read_without_framing_as_librdkafka_writes_it() -> None:
    plain = b"plain snappy " * 300
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(plain)), len(plain)) == plain


def test_snappy_that_declares_four_gibibytes_is_refused_before_anything_is_allocated() -> None:
    with pytest.raises(CorruptBatch, match="declares"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100), 2**40)


def test_lz4_blocks_are_independent_as_the_java_client_demands() -> None:
    flags = compress(Compression.LZ4, bytes(200_000))[4]
    assert flags >> 6 == 1
    assert flags & 0x20


def test_lz4_with_checksums_content_size_and_linked_blocks_is_read() -> None:
    plain = random.Random(7).randbytes(70_000) * 3
    frame = bytes(cramjam.lz4.compress(plain))
    assert frame[4] & 0x20 == 0, "this encoder links its blocks"
    assert decompress(Compression.LZ4, frame, len(plain)) == plain


@pytest.mark.parametrize("codec", PACKED)
def test_truncation_at_every_byte_is_a_clean_error(codec: Compression) -> None:
    packed = compress(codec, random.Random(3).randbytes(300) * 3)
    whole_prefix = 16 if codec == Compression.SNAPPY else None  # the bare header is a stream of no blocks
    for size in range(len(packed)):
        if size == whole_prefix:
            assert decompress(codec, packed[:size], 10_000) == b""
        else:
            with pytest.raises(CorruptBatch):
                decompress(codec, packed[:size], 10_000)


@pytest.mark.parametrize("codec", PACKED)
@given(garbage=st.binary(max_size=200), keep=st.integers(0, 20))
def test_garbage_gives_only_the_declared_errors(codec: Compression, garbage: bytes, keep: int) -> None:
    for packed in (garbage, compress(codec, b"seed" * 50)[:keep] + garbage):
        try:
            plain = decompress(codec, packed, 100_000)
        except (CorruptBatch, InflationLimit):
            continue
        assert len(plain) <= 100_000


@pytest.mark.parametrize("codec", PACKED)
@given(position=st.integers(0, 2000), bit=st.integers(0, 7))
def test_a_flipped_bit_gives_only_the_declared_errors(codec: Compression, position: int, bit: int) -> None:
    packed = bytearray(compress(codec, b"some plain text " * 200))
    packed[position % len(packed)] ^= 1 << bit
    try:
        plain = decompress(codec, bytes(packed), 100_000)
    except (CorruptBatch, InflationLimit):
        return
    assert len(plain) <= 100_000


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(codec: int) -> None:
    with pytest.raises(CorruptBatch, match=str(codec)):
        decompress(codec, b"", 10)
    with pytest.raises(ValueError, match=str(codec)):
        compress(codec, b"")
