"""``paceline completion``: the scripts with which shells complete verbs, options and job names."""

from __future__ import annotations

import click

from paceline.errors import PacelineError
from paceline.surfaces.cli import options, sessions

_INSTALLED = {
    "bash": "paceline completion bash > ~/.local/share/bash-completion/completions/paceline",
    "zsh": "paceline completion zsh > ~/.zfunc/_paceline   (with ~/.zfunc in fpath)",
    "fish": "paceline completion fish > ~/.config/fish/completions/paceline.fish",
}


@options.verb("completion")
@click.argument("shell", type=click.Choice(tuple(_INSTALLED)))
def command(session: sessions.CliSession, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from paceline.surfaces.cli import main

    completion = get_completion_class(shell)
    if completion is None:
        raise PacelineError(f"click cannot complete for {shell}")
    click.echo(completion(main.cli, {}, "paceline", "_PACELINE_COMPLETE").source())
    session.say(f"install it: {_INSTALLED[shell]}")
