"""The commands of a group, and the nearest right name where somebody asks for one that is not among them."""

from collections.abc import Iterable

import click

SUMMARY_MAX = 200
"""Characters of a command's first sentence in the help of its group."""


LIKE_A_WORD = 0.6
LIKE_A_NAME = 0.8
"""How alike the nearest is at least, as difflib has it: names that people give often begin alike."""
GUESSED_NAMES_MAX = 10_000
"""Names that are compared with the one that was asked for."""


class CommandGroup(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole sentences, which go on in the next line where one is too short for them."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, found.get_short_help_str(SUMMARY_MAX)) for name, found in commands if found is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise click.UsageError(f'unknown command "{name}": {guess(name, known)}', ctx)
        return super().resolve_command(ctx, args)


def guess(name: str, known: Iterable[str]) -> str:
    names = list(known)
    nearest = nearest_of(name, names, likeness=LIKE_A_WORD)
    return f'did you mean "{nearest}"?' if nearest is not None else f"there are {', '.join(names)}."


def nearest_of(name: str, known: Iterable[str], *, likeness: float = LIKE_A_NAME) -> str | None:
    names = list(known)[:GUESSED_NAMES_MAX]
    if not names:
        return None
    from difflib import get_close_matches  # slow to import, and needed only here

    nearest = get_close_matches(name, names, n=1, cutoff=likeness)
    return nearest[0] if nearest else None


def meant(name: str, known: Iterable[str], *, likeness: float = LIKE_A_NAME) -> str:
    """The end of a message about a name that is not known: the one that was most likely meant, if any is alike."""
    nearest = nearest_of(name, known, likeness=likeness)
    return "" if nearest is None else f', did you mean "{nearest}"?'
