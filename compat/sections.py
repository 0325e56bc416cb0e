"""Parts of docs/compatibility.md that are written by themselves, each between two marks."""


def replaced(page: str, new: str) -> str:
    """The page with this section, which begins and ends in marks, in the place of its old one, which it must have."""
    begin, end = new.splitlines()[0], new.splitlines()[-1]
    before, _, rest = page.partition(begin)
    _, mark, after = rest.partition(end)
    assert mark, f"the page has no place for {begin}"
    return f"{before}{new}{after}"
