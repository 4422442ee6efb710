"""Analysis of shell lines and image names, for the rules for job files and manifests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

_MAX_LENGTH = 20_000
#: Only shell lines of up to this many characters are split into words.
_MAX_SPLIT = 4_000
_SHELLS = re.compile(r"(?:\S*/)?(?:ba|z|da|k|a)?sh")
#: Commands that start another program, whose name follows.
_STARTERS = ("exec", "nohup", "time", "env", "sudo", "command", "nice")
_PROGRAM = re.compile(
    r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|horovodrun|mpirun|java)|\S+\.(?:py|sh)|\./\S+"
)
_SEPARATORS = frozenset((";", "&&", "||", "&", ";;"))
#: With one of these words, the exit code of a line cannot be derived from its words alone.
_CONTROL = frozenset(
    ("if", "for", "while", "until", "case", "function", "trap", "{", "}", "(", ")", "wait", "<<")
)
_DOWNLOADS = (
    re.compile(r"\b(?:wget|curl)\b[^|;&\n]{0,500}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b"),
    re.compile(r"\b(?:wget|curl)\b[^|;&\n]{0,500}\|\s*(?:sudo\s+)?python[\d.]*\b"),
    re.compile(r"\b(?:ba|z|da|k)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:wget|curl)\b[^)\n]{0,500}\)"),
    re.compile(r"\bwget\s(?:[^|;&\n]{0,200}\s)?(?:-r\b|--recursive\b|-m\b|--mirror\b)[^|;&\n]{0,300}"),
)
_THEN_RUN = re.compile(
    r"\b(?:wget|curl)\b[^|;&\n]{1,500}(?:;|&&|\n).{0,500}?\b(?:(?:ba|z|da|k)?sh|python[\d.]*)\s+\S",
    re.DOTALL,
)
_CHECKED = re.compile(r"\b(?:sha(?:1|224|256|384|512)sum|shasum|md5sum|gpg|cosign)\b")


class Script(NamedTuple):
    """The script that a command passes to a shell.

    Attributes:
        at: index of the script in the command.
        ends_at_errors: whether the shell exits when a command fails (``set -e``).
        heeds_pipes: whether a pipe fails if any of its commands fails (``pipefail``).
    """

    at: int
    line: str
    ends_at_errors: bool
    heeds_pipes: bool


def script_of(command: Sequence[str]) -> Script | None:
    """Return the script that a command passes to a shell; None if it runs no shell, or a script file."""
    if not command or not _SHELLS.fullmatch(command[0]):
        return None
    for index, word in enumerate(command[1:-1], start=1):
        if not word.startswith("-") and word != "pipefail":
            return None
        if re.fullmatch(r"-[a-z]*c", word):
            options = command[1 : index + 1]
            line = command[index + 1]
            ends = any(re.fullmatch(r"-[a-z]*e[a-z]*", each) for each in options)
            sets = re.search(r"\bset\s+-[a-z]*e", line[:_MAX_LENGTH]) is not None
            return Script(index + 1, line, ends or sets, "pipefail" in options or "pipefail" in line)
    return None


def is_left_behind(script: Script) -> bool:
    """Return whether a script ends while its last command is still running in the background."""
    words = _split(script.line)
    return words is not None and words[-1:] == ["&"] and not _CONTROL.intersection(words)


def hidden_failure(script: Script) -> str | None:
    """Return the part of a script that hides whether its program failed, or None."""
    words = _split(script.line)
    if words is None or _CONTROL.intersection(words) or words[-1:] == ["&"]:
        return None
    statements: list[list[str]] = [[]]
    separators: list[str] = []
    for word in words:
        if word in _SEPARATORS:
            separators.append(word)
            statements.append([])
        else:
            statements[-1].append(word)
    if not statements[-1]:
        del statements[-1], separators[-1:]
    for number, statement in enumerate(statements):
        if not _is_program(statement):
            continue
        separator = separators[number] if number < len(separators) else ""
        following = statements[number + 1] if number + 1 < len(statements) else []
        pipe = next((at for at, word in enumerate(statement) if word in ("|", "|&")), None)
        if pipe is not None and not script.heeds_pipes:
            return " ".join(statement[pipe:])
        if separator == "||" and following[:1] in (["true"], [":"], ["echo"]):
            return " ".join(("||", *following))
        is_work_over = not any(map(_is_program, statements[number + 1 :]))
        if separator == ";" and is_work_over and not script.ends_at_errors and following[:1] != ["exit"]:
            return " ".join((";", *following))
    return None


def _split(line: str) -> list[str] | None:
    """Return the words and separators of a shell line; None if it cannot be parsed."""
    if len(line) > _MAX_SPLIT:
        return None
    # The end of a line ends a statement, unless a backslash continues the line.
    text = re.sub(r"\n+", " ; ", line.replace("\\\n", " ").strip())
    splitting = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>")
    splitting.commenters = ""
    splitting.whitespace_split = True
    try:
        return list(splitting)
    except ValueError:
        return None


def _is_program(statement: Sequence[str]) -> bool:
    """Return whether a statement runs a program that does the work, unlike echo, cd or export."""
    words = [word for word in statement if not re.match(r"\w+=", word)]
    while words and words[0] in _STARTERS:
        del words[0]
    return bool(words) and _PROGRAM.fullmatch(words[0]) is not None


def download_in(line: str) -> str | None:
    """Return the part of a shell line that downloads code and runs it without a check, or None."""
    line = line[:_MAX_LENGTH]
    if _CHECKED.search(line):
        return None
    for pattern in (*_DOWNLOADS, _THEN_RUN):
        match = pattern.search(line)
        if match:
            return " ".join(match[0].split())
    return None


def floating_tag(image: str) -> str | None:
    """Return why an image's version is not fixed, or None."""
    if "@" in image:
        return None
    name, colon, tag = image.rpartition("/")[2].partition(":")
    if not colon or not tag or not name:
        return "has no tag, which means latest"
    return "has the tag latest" if tag == "latest" else None
