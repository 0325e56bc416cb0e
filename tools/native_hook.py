"""The build hook: compile the helpers into the wheel where a C compiler is, and leave them out where none is.

HEADRACE_NATIVE=1 makes a helper that cannot be built an error; HEADRACE_NATIVE=0 builds a wheel of Python alone.
"""

import os
import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "HEADRACE_NATIVE"


class NativeHook(BuildHookInterface):
    PLUGIN_NAME = "custom"
    _folder: Path | None = None
    """Where the helpers of a wheel are built, until they are packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wanted = os.environ.get(VARIABLE, "")
        if self.target_name != "wheel" or wanted == "0":
            return
        tools = runpy.run_path(str(Path(self.root, "tools", "build_native.py")))
        # An editable installation imports from the sources, so its helpers belong beside them.
        self._folder = None if version == "editable" else Path(tempfile.mkdtemp(prefix="headrace-native-"))
        built = tools["build_all"](self._folder, tell=self.app.display_info)
        if wanted == "1" and len(built) < len(tools["LIBRARIES"]):
            raise SystemExit(f"{VARIABLE}=1 wants every helper compiled, see above; without it Python does their work")
        if not built:
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        sources = Path(self.root, "src")
        if self._folder is not None:
            for source, library in built.items():
                build_data["force_include"][str(library)] = str(source.with_name(library.name).relative_to(sources))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
