"""CRC-32C, by the compiled module of the crc32c package.

Its own `__init__` looks up the version of the package on disk with half of the standard library, which takes as long
as a tenth of everything that `import headrace` loads. So the compiled module is loaded from the package's folder.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec


def _compiled() -> Callable[..., int]:
    package = find_spec("crc32c")
    found = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if found is None or found.loader is None:
        import crc32c  # says what is missing, or has it elsewhere

        whole: Callable[..., int] = crc32c.crc32c
        return whole
    module = module_from_spec(found)
    found.loader.exec_module(module)
    compiled: Callable[..., int] = module.crc32c
    return compiled


crc32c = _compiled()
"""Of bytes, and of those before them if their checksum is given as well."""
