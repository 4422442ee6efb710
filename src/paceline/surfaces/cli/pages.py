"""Generates the page ``docs/cli.md`` from the commands: ``python -m paceline.surfaces.cli.pages [FILE]``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from paceline.surfaces.cli import catalogue, main

_INTRODUCTION = """\
# The command line

This page is made from the commands (`make docs`); do not edit it.

Data go to stdout, talk goes to stderr. Without a terminal there are no colours and nothing moves; `NO_COLOR`
turns colours off everywhere. JSON and YAML (`-o json`, `-o yaml`) say `apiVersion` and `kind`; their keys are
in snake_case and stable, durations are in seconds, times are ISO 8601 in UTC, and what was not measured is
null. In tables that is `-`. Ctrl-C ends the watching of a job, never the job.
"""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Exit codes\n"
    yield "| code | meaning |\n| --- | --- |"
    for code, meaning in catalogue.EXIT_CODES:
        yield f"| {code} | {meaning} |"
    yield "\n## Options of every command\n"
    yield "They may stand before or behind the command.\n"
    root = click.Context(main.cli, info_name="paceline", help_option_names=["-h", "--help"])
    shared: set[str | None] = {parameter.name for parameter in main.cli.params}
    yield from _options(root, [*main.cli.params, _help(root, main.cli)])
    for section, verbs in catalogue.sections().items():
        yield f"\n## {section}"
        for verb in verbs:
            command = main.cli.get_command(root, verb.name)
            assert command is not None, "the catalogue names it"
            yield from _verb(click.Context(command, parent=root, info_name=verb.name), shared)


def _verb(ctx: click.Context, shared: set[str | None]) -> Iterator[str]:
    command = ctx.command
    yield f"\n### paceline {ctx.info_name}\n"
    yield f"```\n{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}\n```\n"
    yield inspect.cleandoc(command.help or "")
    own = [p for p in command.params if isinstance(p, click.Option) and p.name not in shared]
    if own:
        yield ""
        yield from _options(ctx, own)


def _options(ctx: click.Context, parameters: list[click.Parameter] | list[click.Option]) -> Iterator[str]:
    yield "| option | meaning |\n| --- | --- |"
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is not None:
            names, meaning = (text.replace("|", "\\|") for text in record)
            yield f"| `{names}` | {' '.join(meaning.split())} |"


def _help(ctx: click.Context, command: click.Command) -> click.Option:
    option = command.get_help_option(ctx)
    assert option is not None, "every command has --help"
    return option


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page())
    else:
        click.echo(page(), nl=False)
