"""Vocabularies out of files: one word in each line, at any URL that fsspec understands."""

from __future__ import annotations

import fsspec

from paceline.training import errors


def read(url: str) -> tuple[str, ...]:
    """Reads the words of a file, without the space around them, for `features.Vocabulary`.

    Raises:
        InputError: there is no such file, it has no word, or a line is empty, repeats a word or is not UTF-8.
    """
    lines: dict[str, int] = {}
    try:
        with fsspec.open(url, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                word = _word(line, f"{url}:{number}")
                if word in lines:
                    raise errors.InputError(
                        f"{url}:{number}: the word {word!r} stands in line {lines[word]} already; "
                        "leave one of them out"
                    )
                lines[word] = number
    except FileNotFoundError as error:
        raise errors.InputError(f"{url}: there is no such file") from error
    if not lines:
        raise errors.InputError(f"{url}: there is no word in this file")
    return tuple(lines)


def _word(line: bytes, place: str) -> str:
    try:
        word = line.decode().strip()
    except UnicodeDecodeError as error:
        raise errors.InputError(f"{place}: this line is not UTF-8: {error}") from error
    if not word:
        raise errors.InputError(f"{place}: this line is empty; take it out")
    return word
