"""Sizes and counts as text."""


def size_text(count: int) -> str:
    """Return a number of bytes in the largest unit that fits: 1536 is 1.5 KiB."""
    if count < 0:
        return "unknown"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: `1 topic`, `2 topics`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
