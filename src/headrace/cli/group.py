"""The commands of a group, and the nearest right name where somebody asks for one that is not among them."""

from collections.abc import Iterable

import click


class CommandGroup(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise click.UsageError(f'unknown command "{name}": {guess(name, known)}', ctx)
        return super().resolve_command(ctx, args)


def guess(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # slow to import, and needed only here

    names = list(known)
    nearest = get_close_matches(name, names, n=1)
    return f'did you mean "{nearest[0]}"?' if nearest else f"there are {', '.join(names)}."
