"""Pages for people: templates, and the files that they load. They load nothing from another site."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from headrace.manager.pages.schema_text import body_members, type_text
from headrace.operations.amounts import size_text

if TYPE_CHECKING:
    from jinja2 import Environment

HTML = "text/html; charset=utf-8"
ASSETS = {
    "style.css": "text/css; charset=utf-8",
    "overview.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
"""Media types of the files that pages load, by name."""

DIAGRAM_HEIGHT = 24
"""Height of the diagram of rates in units of its view box, and one unit per rate across."""


def asset(name: str) -> bytes:
    return files(__name__).joinpath(name).read_bytes()


@cache
def environment() -> "Environment":
    """Return the templates; everything that they show is escaped."""
    from jinja2 import Environment, PackageLoader  # only for the first page

    found = Environment(loader=PackageLoader(__name__, "."), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.filters.update(
        size=size_text, count_of="{:,}".format, rate=rate_text, type_text=type_text, body_members=body_members
    )
    return found


def page(template: str, **values: object) -> str:
    return environment().get_template(template).render(**values)


def rate_text(rate: float) -> str:
    """Return a rate without decimals that its size makes meaningless."""
    return f"{rate:,.0f}" if rate >= 10 or rate == 0 else f"{rate:.1f}"


def diagram_points(rates: Sequence[float], width: int) -> tuple[str, str]:
    """Return the points of a line through the rates, the newest at the right, and of the area below it."""
    top = max(*rates, 1e-9)
    first = width - len(rates)
    line = " ".join(f"{first + index},{DIAGRAM_HEIGHT * (1 - rate / top):.2f}" for index, rate in enumerate(rates))
    return line, f"{first},{DIAGRAM_HEIGHT} {line} {width - 1},{DIAGRAM_HEIGHT}"
