"""What was most likely meant by a name that nobody knows."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that was most likely meant, or all there are."""
    names = sorted(known)
    found = get_close_matches(name.lower(), names, n=1)
    return f'did you mean "{found[0]}"?' if found else f"there are {', '.join(names)}"
