"""The compiled module, built for this run whether or not the environment has one."""

import shutil
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType

import pytest

from tools import build_native

needs_compiler = pytest.mark.skipif(
    build_native.compiler() is None or not build_native.can_build_modules(),
    reason="needs a C compiler and Python's headers: install gcc and python3-dev",
)


@cache
def compiled_module() -> ModuleType:
    folder = Path(mkdtemp(prefix="headrace-native-"))
    library = build_native.build(build_native.REPEATS, folder / build_native.LIBRARIES[build_native.REPEATS].name)
    loader = ExtensionFileLoader("headrace.wire._compiled", str(library))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    shutil.rmtree(folder)
    return module
