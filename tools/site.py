"""Build the documents as a site that can be read offline: `make site`.

The pages are staged beside the files they link to, every Mermaid diagram is rendered once so that a mistake in one
fails the build, and the generator runs in its strict mode. Then every link of the site must lead to a file of the site,
and no page may load anything from a network.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "site"
SOURCE, HTML = BUILD / "source", BUILD / "html"
MERMAID_SCRIPT = SOURCE / "assets" / "mermaid.js"
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#]+)")
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}
"""Attributes that a browser loads by itself; their targets must be part of the site."""


class SiteError(Exception):
    """The site cannot be built; the message names every mistake."""


def pages() -> list[Path]:
    """List all documents, relative to the root of the repository."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page.relative_to(ROOT) for page in found)


def linked_files() -> Iterator[Path]:
    """Yield the files that documents link to, directly or through another file, and that are no documents."""
    known = set(pages())
    waiting = [*known]
    while waiting:
        page = waiting.pop()
        for link in LINK.finditer((ROOT / page).read_text()):
            target = (ROOT / page.parent / link["target"]).resolve().relative_to(ROOT)
            if target not in known and (ROOT / target).is_file():
                known.add(target)
                yield target
                if target.suffix == ".md":
                    waiting.append(target)


def stage() -> None:
    """Copy everything that the site shows to the folder that the generator reads."""
    shutil.rmtree(BUILD, ignore_errors=True)
    for path in (*pages(), *linked_files()):
        target = SOURCE / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    MERMAID_SCRIPT.parent.mkdir(parents=True, exist_ok=True)
    MERMAID_SCRIPT.write_bytes((files("mermaidx") / "assets" / "mermaid.js").read_bytes())


def diagrams() -> Iterator[tuple[Path, str]]:
    for page in pages():
        for block in DIAGRAM.findall((ROOT / page).read_text()):
            yield page, block


def check_diagrams() -> int:
    """Render every diagram once and return their number."""
    mermaidx = import_module("mermaidx")  # in requirements/docs.txt only
    mistakes, count = [], 0
    for page, block in diagrams():
        count += 1
        try:
            drawn = mermaidx.render(block).svg()
        except Exception as error:  # whatever the renderer raises is a mistake in the diagram
            mistakes.append(f"{page}: {str(error).splitlines()[0]}\n{block}")
            continue
        if "Syntax error" in drawn:
            mistakes.append(f"{page}: syntax error in\n{block}")
    if mistakes:
        raise SiteError("\n".join(mistakes))
    return count


class PageReader(HTMLParser):
    """Collects the targets and the anchors of one page of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.anchors.add(value)
            elif (tag, name) in LOADED:
                self.loaded.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def read_site() -> dict[Path, PageReader]:
    read = {}
    for path in sorted(HTML.rglob("*.html")):
        read[path] = PageReader()
        read[path].feed(path.read_text())
    return read


def broken_links(site: dict[Path, PageReader]) -> Iterator[str]:
    for path, page in site.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    yield f"{path.relative_to(HTML)} loads {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{path.relative_to(HTML)} links to {link}"
            elif parts.fragment and target in site and unquote(parts.fragment) not in site[target].anchors:
                yield f"{path.relative_to(HTML)} links to {link}, which has no such anchor"


def build() -> str:
    """Build and check the site; return a line that says what was built."""
    began = time.monotonic()
    stage()
    drawn = check_diagrams()
    ran = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "zensical.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    output = ran.stdout + ran.stderr
    if ran.returncode or "warning" in output.lower():
        raise SiteError(output)
    (HTML / "404.html").unlink(missing_ok=True)  # for servers: its links are absolute
    site = read_site()
    broken = [*broken_links(site)]
    if broken:
        raise SiteError("\n".join(broken))
    return f"{len(site)} pages, {drawn} diagrams, {time.monotonic() - began:.1f} s: {HTML / 'index.html'}"


def main() -> int:
    try:
        print(f"site: {build()}")
    except SiteError as error:
        print(f"{error}\nsite: not built", file=sys.stderr)
        return 1
    print("Search needs a server: python3 -m http.server --directory build/site/html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
