"""Pages for people: templates, and the style that they share. They load nothing from another site."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

STYLE = "style.css"
HTML = "text/html; charset=utf-8"


def style() -> bytes:
    return files(__name__).joinpath(STYLE).read_bytes()


@cache
def environment() -> "Environment":
    """Return the templates; everything that they show is escaped."""
    from jinja2 import Environment, PackageLoader  # only for the first page

    return Environment(loader=PackageLoader(__name__, "."), autoescape=True, trim_blocks=True)


def page(template: str, **values: object) -> str:
    return environment().get_template(template).render(**values)
