"""The command ``paceline`` itself: verbs loaded when used, help in sections, errors with their exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from paceline.errors import PacelineError
from paceline.surfaces.cli import catalogue, sessions

INTERRUPTED = 130


class PacelineGroup(click.Group):
    """A group whose commands are the verbs of the catalogue."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the help."""
        return list(catalogue.VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb; None: there is no such verb."""
        verb = catalogue.VERBS.get(cmd_name)
        if verb is None:
            return None
        command: click.Command = importlib.import_module(verb.module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; the error for an unknown verb suggests similar names."""
        known = args[0] in catalogue.VERBS or args[0].startswith("-") or ctx.resilient_parsing
        if not known:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=catalogue.VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs and global options from the catalogue."""
        verbs = [
            CompletionItem(verb.name, help=verb.summary)
            for verb in catalogue.VERBS.values()
            if verb.name.startswith(incomplete)
        ]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by section."""
        for section, verbs in catalogue.sections().items():
            with formatter.section(section):
                formatter.write_dl([(verb.name, verb.summary) for verb in verbs], col_max=12, col_spacing=2)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the meanings of the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), what) for code, what in catalogue.EXIT_CODES])
        formatter.write("\nStart with: paceline demo, or paceline init --example clicks\n")

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run a command line and exit with its code; errors meant for users have no traceback."""
        session = sessions.CliSession()
        try:
            code = super().main(
                args, prog_name or "paceline", complete_var, standalone_mode=False, obj=session, **extra
            )
        except PacelineError as error:
            session.complain(error)
            code = error.exit_code
        except click.UsageError as error:
            hint = None
            if error.ctx is not None and "--help" not in error.format_message():
                hint = f"{error.ctx.command_path} --help"
            sessions.complain(error.format_message(), hint)
            code = error.exit_code
        except click.ClickException as error:
            sessions.complain(error.format_message(), None)
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)
