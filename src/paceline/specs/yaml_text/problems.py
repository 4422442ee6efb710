"""Errors in documents, shown in the style of compilers: place, field, reason, source line and caret.

Text from the file is always escaped: otherwise, control and direction characters would reach the terminal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from paceline import errors
from paceline.model.explanations import findings

#: How many problems of one file are shown.
MAX_SHOWN = 20

_WIDTH = 96


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error in a file.

    Attributes:
        path: the field, such as ``spec.roles.ps.cpu``; empty for the file as a whole.
        message: what is wrong and what is allowed.
        excerpt: the source line with a caret below it; empty if there is no such line.
    """

    position: findings.TextPosition
    path: str
    message: str
    excerpt: str = ""

    def __str__(self) -> str:
        field = f"{self.path}: " if self.path else ""
        text = f"{self.position}: {field}{self.message}"
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class DocumentError(errors.InvalidInput):
    """A job file or another document is wrong; ``problems`` holds everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem], hint: str | None = None) -> None:
        self.problems = tuple(problems)
        text = "\n".join(str(problem) for problem in self.problems[:MAX_SHOWN])
        rest = len(self.problems) - MAX_SHOWN
        super().__init__(f"{text}\nand {rest} more" if rest > 0 else text, hint)

    def __reduce__(self) -> tuple[type[DocumentError], tuple[tuple[Problem, ...], str | None]]:
        """Make the error picklable, so that it can be passed between processes."""
        return type(self), (self.problems, self.hint)


@contextlib.contextmanager
def hinted(hint: str) -> Iterator[None]:
    """Give the hint for one kind of document to errors of documents that have none."""
    try:
        yield
    except DocumentError as error:
        if error.hint is not None:
            raise
        raise DocumentError(error.problems, hint) from error


def at(
    file: str, lines: Sequence[str], place: tuple[int, int], path: Sequence[str | int], message: str
) -> Problem:
    """Return a problem at a line and column, with its excerpt."""
    line, column = place
    position = findings.TextPosition(file=visible(file), line=line, column=column)
    excerpt = _excerpt(lines[line - 1], line, column) if 0 < line <= len(lines) else ""
    return Problem(position=position, path=dotted(path), message=message, excerpt=excerpt)


def failure(
    file: str,
    lines: Sequence[str],
    place: tuple[int, int],
    message: str,
    path: Sequence[str | int] = (),
) -> DocumentError:
    """Return the error for a file with a single problem, at which reading stopped."""
    return DocumentError([at(file, lines, place, path, message)])


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as users write it, such as ``spec.hosts[1].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").replace("-", "").isalnum() and part.isascii():
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def visible(text: str) -> str:
    """Return text in which every character is escaped that a terminal would not display."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(text: str, limit: int = 60) -> str:
    """Return a value for a message: quoted, escaped and shortened."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return visible(repr(cut))


def quoted(text: str) -> str:
    """Return the beginning of a text as a double-quoted YAML scalar, for advice in messages."""
    return '"' + visible(text[:60]).replace('"', '\\"') + '"'


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return text such as ``; did you mean 'replicas'?``, or an empty text if no known word is similar."""
    candidates = sorted(known)
    normal = word[:80].replace("-", "_").lower()
    by_normal = {candidate.replace("-", "_").lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(normal, by_normal, n=1, cutoff=0.6)
    return f"; did you mean {by_normal[close[0]]!r}?" if close else ""


def _excerpt(source: str, line: int, column: int) -> str:
    start = max(0, column - 1 - _WIDTH * 2 // 3) if len(source) > _WIDTH else 0
    cut = source[start : start + _WIDTH]
    before = visible(cut[: column - 1 - start].replace("\t", " "))
    after = visible(cut[column - 1 - start :].replace("\t", " "))
    if not (before + after).strip():
        return ""
    lead = "…" if start else ""
    tail = "…" if start + _WIDTH < len(source) else ""
    margin = f"{line:>5} | "
    return f"{margin}{lead}{before}{after}{tail}\n{' ' * 5} | {' ' * _columns(lead + before)}^"


def _columns(text: str) -> int:
    """Return how many terminal columns a text takes."""
    wide = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return wide - sum(1 for c in text if unicodedata.combining(c))
