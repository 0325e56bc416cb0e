"""Bar charts as SVG pictures for the figure pages."""

import os
import re
from collections.abc import Sequence

PICTURE_COLUMNS = 88
_WEB_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Rich's template loads a font from the network; a picture in a repository must not."""


def picture(lines: Sequence[str], *, title: str) -> str:
    """Return the lines as an SVG."""
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=PICTURE_COLUMNS, file=nowhere, force_terminal=True)
        for line in lines:
            console.print(Text(line, style=_style(line)), no_wrap=True, crop=True)
    return _WEB_FONT.sub("", console.export_svg(title=title, unique_id="headrace-bench"))


def _style(line: str) -> str:
    if not line.startswith(" "):
        return "bold"
    return "cyan" if line.startswith("  headrace") else "bright_black"
