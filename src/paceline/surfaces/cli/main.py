"""The entry point ``paceline``."""

from __future__ import annotations

import gc
from typing import NoReturn

import click

from paceline.surfaces.cli import groups, options

GARBAGE_THRESHOLD = 50_000


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from paceline.surfaces.cli.verbs import version

        click.echo(version.text())
        ctx.exit()


@click.group("paceline", cls=groups.PacelineGroup, context_settings=options.CONTEXT_SETTINGS)
@options.shared_options
@options.engine_options
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Print the version and exit.",
)  # fmt: skip
def cli() -> None:
    """Run TensorFlow parameter-server training, watch every replica, and see why it is slow."""


def main() -> NoReturn:
    """Run the command line of this process."""
    # Objects that imports create stay alive; collecting them repeatedly costs a tenth of the start-up time.
    gc.set_threshold(GARBAGE_THRESHOLD)
    cli.main()
