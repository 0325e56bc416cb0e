"""Run `make demo` and draw what it printed as an SVG: docs/images/demo.svg, the picture in the README."""

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS = 92
INSTALLED = "setting up .venv from requirements/spark.txt ..."
# Rich's template loads a web font; a picture in a repository should not call anyone.
WEB_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def output_of(command: list[str]) -> str:
    """Return what the command prints for a colour terminal without cursor movement: each progress bar at its end."""
    environment = {**os.environ, "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0", "COLUMNS": str(COLUMNS)}
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def without_installer(printed: str) -> str:
    """Leave out what pip says of the packages of Spark, which is longer than all the rest."""
    begin, told, rest = printed.partition(INSTALLED)
    _, broker, after = rest.partition("broker at")
    return f"{begin}{told}\n{broker}{after}" if broker else printed


def draw(printed: str) -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print("[bold]$ make demo[/bold]")
        console.print(Text.from_ansi(printed))
    return WEB_FONT.sub("", console.export_svg(title="Headrace", unique_id="headrace-demo"))


def main() -> int:
    printed = output_of(["make", "--no-print-directory", "demo"])
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(without_installer(printed)))
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
