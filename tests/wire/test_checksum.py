"""The checksum is that of the package, and is had without what the package loads beside it."""

import subprocess
import sys

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire.checksum import crc32c


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_checksum_is_the_packages(before, data):
    assert crc32c(memoryview(data)) == package.crc32c(data)
    assert crc32c(data, crc32c(before)) == package.crc32c(before + data)


def test_the_version_of_the_package_is_not_looked_up():
    program = "import sys, headrace.wire.checksum; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
