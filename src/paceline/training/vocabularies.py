"""Vocabularies read from files: one word in each line, at any URL that fsspec understands."""

from __future__ import annotations

from paceline.training import errors
from paceline.training.input import locations, text_streams


def read(url: str) -> tuple[str, ...]:
    """Read the words of a file, without the space around them, for `features.Vocabulary`.

    Raises:
        InputError: the file cannot be read, is not text or has no word; or a line is empty, repeats a word or
            is not UTF-8.
    """
    with locations.opened(url) as stream:
        data = text_streams.unpacked(stream, url).read()
    lines: dict[str, int] = {}
    for number, line in enumerate(text_streams.without_mark(data, url).splitlines(), start=1):
        try:
            word = line.decode().strip()
        except UnicodeDecodeError as error:
            raise errors.InputError.of(url, f"this line is not UTF-8: {error}", line=number) from error
        if not word:
            raise errors.InputError.of(url, "this line is empty; take it out", line=number)
        if word in lines:
            why = f"the word {word!r} stands in line {lines[word]} already; leave one of them out"
            raise errors.InputError.of(url, why, line=number)
        lines[word] = number
    if not lines:
        raise errors.InputError.of(url, "there is no word in this file")
    return tuple(lines)
