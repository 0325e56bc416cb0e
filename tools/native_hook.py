"""What the build does more than packing: with HEADRACE_NATIVE=1 it compiles the helpers; without, the wheel is pure."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("HEADRACE_NATIVE") != "1":
            return
        subprocess.run([sys.executable, str(Path(self.root, "tools", "build_native.py"))], check=True, cwd=self.root)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"] += ["src/headrace/wire/columns/_places.so", "src/headrace/wire/_repeats.*.so"]
