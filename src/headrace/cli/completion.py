"""`headrace completion SHELL`: the completion script for commands, options and topic names."""

import click

_INSTALL = {
    "bash": "headrace completion bash > ~/.local/share/bash-completion/completions/headrace",
    "zsh": "headrace completion zsh > ~/.zfunc/_headrace   (with ~/.zfunc in $fpath)",
    "fish": "headrace completion fish > ~/.config/fish/completions/headrace.fish",
}


@click.command("completion", epilog="\b\nTo install:\n" + "\n".join(f"  {line}" for line in _INSTALL.values()))
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from headrace.cli.main import COMPLETION_VARIABLE, cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "headrace", COMPLETION_VARIABLE).source())
