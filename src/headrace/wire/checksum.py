"""CRC-32C, by the compiled module of the crc32c package.

The package's own `__init__` looks up its version on disk with half of the standard library, which takes a tenth of the
time of `import headrace`. So the compiled module is loaded directly from the package's folder.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec


def _compiled() -> Callable[..., int]:
    package = find_spec("crc32c")
    found = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if found is None or found.loader is None:
        import crc32c  # this import reports what is missing, or finds it elsewhere

        whole: Callable[..., int] = crc32c.crc32c
        return whole
    module = module_from_spec(found)
    found.loader.exec_module(module)
    compiled: Callable[..., int] = module.crc32c
    return compiled


crc32c = _compiled()
"""CRC-32C of bytes, continuing the checksum of earlier bytes if it is given."""
