"""What was most likely meant by a name that nobody knows."""

from collections.abc import Iterable
from itertools import islice

LIKE_A_WORD = 0.6
LIKE_A_NAME = 0.8
"""How alike the nearest is at least, as difflib has it: names that people give often begin alike."""
COMPARED_NAMES_MAX = 10_000
COMPARED_CHARACTERS_MAX = 100


def nearest_of(name: str, known: Iterable[str], *, likeness: float = LIKE_A_WORD) -> str | None:
    """In its right case, whatever case was asked for; None if none is alike."""
    by_letters = {each.lower(): each for each in islice(known, COMPARED_NAMES_MAX)}
    if not by_letters:
        return None
    from difflib import get_close_matches  # slow to import, and needed only here

    nearest = get_close_matches(name[:COMPARED_CHARACTERS_MAX].lower(), by_letters, n=1, cutoff=likeness)
    return by_letters[nearest[0]] if nearest else None


def question(nearest: str) -> str:
    return f'did you mean "{nearest}"?'


def guess(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the one that was most likely meant, or all there are."""
    names = sorted(known)
    nearest = nearest_of(name, names)
    return question(nearest) if nearest is not None else f"there are {', '.join(names)}"


def meant(name: str, known: Iterable[str], *, likeness: float = LIKE_A_NAME) -> str:
    """The end of a message about a name that people gave: the one that was most likely meant, if any is alike."""
    nearest = nearest_of(name, known, likeness=likeness)
    return "" if nearest is None else f", {question(nearest)}"


def aside(name: str, known: Iterable[str]) -> str:
    """The same within a message that goes on."""
    nearest = nearest_of(name, known, likeness=LIKE_A_NAME)
    return "" if nearest is None else f" ({question(nearest)})"
