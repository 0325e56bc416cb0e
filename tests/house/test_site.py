"""The site of the documents, as far as it can be checked without building it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.site import DIAGRAM, ROOT, PageReader, broken_links, linked_files, pages

Entry = str | dict[str, "str | list[Entry]"]


def listed(entries: list[Entry]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
            continue
        for inner in entry.values():
            yield from listed(inner) if isinstance(inner, list) else [inner]


def test_the_navigation_lists_every_page_once() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert sorted(listed(config["nav"])) == [page.as_posix() for page in pages()]


def test_the_site_is_written_to_an_ignored_folder() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert config["docs_dir"].startswith("build/")
    assert config["site_dir"].startswith("build/")
    assert "build/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_site_holds_what_documents_link_to() -> None:
    assert Path("examples/delivery/exactly_once.py") in set(linked_files())
    assert Path("docs/performance/compare.json") in set(linked_files())


def test_every_mermaid_block_is_found() -> None:
    for page in pages():
        text = (ROOT / page).read_text()
        assert len(DIAGRAM.findall(text)) == text.count("```mermaid\n"), page


def test_broken_links_and_foreign_scripts_are_reported(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tools.site.HTML", tmp_path)
    first, second = tmp_path / "index.html", tmp_path / "other.html"
    first.write_text(
        '<h1 id="top"></h1><a href="other.html#there"></a><a href="other.html#gone"></a><a href="gone.html"></a>'
        '<a href="https://example.org"></a><script src="https://example.org/x.js"></script>'
    )
    second.write_text('<h2 id="there"></h2>')
    site = {path: PageReader() for path in (first, second)}
    for path, page in site.items():
        page.feed(path.read_text())
    assert [*broken_links(site)] == [
        "index.html links to other.html#gone, which has no such anchor",
        "index.html links to gone.html",
        "index.html loads https://example.org/x.js",
    ]
