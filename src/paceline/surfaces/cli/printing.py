"""Output on stdout: documents for programs, renderables for people."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


def console(*, stderr: bool = False) -> Console:
    """Return a rich console; it has no colours if the stream is no terminal or NO_COLOR is set."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def width(*, wide: bool = False) -> int | None:
    """Return the width that tables may take; None for ``wide``."""
    return None if wide else console().width


def show(renderable: RenderableType) -> None:
    """Print a renderable for people; lines wider than the terminal are not cut."""
    console().print(renderable, soft_wrap=True)


def emit(document: Mapping[str, Any], output: str) -> None:
    """Print a document as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        from paceline.specs.job_file import dumping

        click.echo(dumping.dump_document(dict(document)), nl=False)


def emit_all(objects: Sequence[Mapping[str, Any]], output: str) -> None:
    """Print Kubernetes objects: YAML documents, or a ``List`` as JSON."""
    if output == "json":
        emit({"apiVersion": "v1", "kind": "List", "items": list(objects)}, output)
        return
    for number, each in enumerate(objects):
        if number:
            click.echo("---")
        emit(each, output)


class Screen:
    """An area of the terminal in which each picture replaces the one before, with lines of text above it.

    While it exists, lines for stderr must go through ``say``: otherwise the picture is drawn over them.
    """

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, renderable: RenderableType) -> None:
        """Replace the picture."""
        self._live.update(renderable, refresh=True)

    def say(self, text: str) -> None:
        """Print a line above the picture."""
        self._live.console.print(text)


@contextlib.contextmanager
def screen(*, whole: bool) -> Iterator[Screen]:
    """Give a screen.

    Args:
        whole: whether to take the whole terminal and restore it at the end; otherwise the last picture is
            erased at the end.
    """
    from rich.live import Live

    with Live(
        console=console(), auto_refresh=False, screen=whole, transient=True, vertical_overflow="crop"
    ) as live:
        yield Screen(live)


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()
