"""The line of a failed script's output that says why, and the place in the user's own code.

Python writes a traceback and, as its last line, the name of the exception with its message. TensorFlow's own
errors have more lines, of which one names the operation (``Node: 'MatMul'``), and after them where the
operation was made; those of another process of the job come with ``From /job:worker/...``, and what matters
follows. A log goes on after that: threads that end, tracebacks of an exception while another one is handled,
lines of the C++ runtime.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

#: So many of the last lines are looked at, and so much of each: a log may be gigabytes of one line.
LINES, CHARACTERS = 500, 2000
#: A message that goes on over several lines is told with so many of them.
_MORE_LINES = 3
_EXCEPTION = re.compile(
    r"^(?:[\w.]+\.)?(?P<name>[A-Za-z_]\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration|NotFound|Timeout))"
    r"(?::\s*(?P<message>.*))?$"
)
#: A shell's, a loader's and a runtime's own words, where no exception is.
_OTHER = (
    re.compile(r"^(?:\S+: )?line \d+: .+"),  # a shell: train.sh: line 3: foo: command not found
    re.compile(r"^(?:/\S+/)?(?:ba|da|z)?sh: .+"),
    re.compile(r"^\S*python[\d.]*: (?:can't open file|Error while finding module|No module named) .+"),
    re.compile(r"^Fatal Python error: .+"),
    re.compile(r"^terminate called after throwing .+|^\s+what\(\):\s+.+"),
    re.compile(r"^(?:\S+ )?F\d{4} \S+ .+|^F0000 .+"),  # absl's and TensorFlow's LOG(FATAL)
    re.compile(r"^(?:Illegal instruction|Segmentation fault|Bus error|Floating point exception|Aborted)\b.*"),
    re.compile(r"^.+: error: .+|^usage: .+"),  # argparse, of a wrong option
)
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_FOREIGN = re.compile(r"site-packages|dist-packages|/lib/python\d|<frozen |<string>|paceline_instrumentation")
#: TensorFlow 2 first shows where the operation was made, then its name, then what is wrong with it.
_MADE_AT = re.compile(r"^\s*Detected at node .+")
_NODE = re.compile(r"^\s*(?:Node:|\[\[\{\{node) ?.+")
_REMOTE = re.compile(r"^\s*(?:\(\d+\) )?From /job:\S+:?$|^From /job:\S+:$")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of the user's own code.

    Attributes:
        code: what stands there, as the traceback shows it; empty: it does not.
    """

    file: str
    line: int
    code: str = ""

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"{self.file}:{self.line}" + (f"  {self.code}" if self.code else "")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """What a script's output says of its failure.

    Attributes:
        line: the line that matters, whole.
        more: lines after it that belong to its message: the operation of TensorFlow, say.
        exception: the name of the exception, without its package; None: the line is no exception's.
        place: where in the user's code; None: no traceback says so.
    """

    line: str
    more: tuple[str, ...] = ()
    exception: str | None = None
    place: Place | None = None

    @property
    def text(self) -> str:
        """Return all of it, for patterns."""
        return "\n".join((self.line, *self.more))


def read(output: Sequence[str]) -> LastWords | None:
    """Return what the last lines of an output say of a failure; None: they say nothing that is known."""
    lines = [line.rstrip()[:CHARACTERS] for line in output[-LINES:]]
    at = _last(lines, lambda line: _EXCEPTION.match(line) is not None)
    if at is None:
        at = _last(lines, lambda line: any(each.match(line) for each in _OTHER))
        return None if at is None else LastWords(line=lines[at].strip())
    found = _EXCEPTION.match(lines[at])
    assert found is not None, "it was found by this"
    return LastWords(
        line=lines[at],
        more=tuple(_more(lines[at + 1 :], found["message"] or "")),
        exception=found["name"],
        place=_place(lines[:at]),
    )


def _last(lines: Sequence[str], wanted: object) -> int | None:
    assert callable(wanted)
    return next((at for at in reversed(range(len(lines))) if wanted(lines[at])), None)


def _more(after: Sequence[str], message: str) -> Iterator[str]:
    """Yield what belongs to the message of an exception: the operation, or what another process said."""
    told: list[str] = []
    follows = _REMOTE.match(message) is not None or not message
    is_within = False
    for line in after:
        is_frame = _FRAME.match(line) is not None
        if len(told) == _MORE_LINES or line.startswith("Traceback ") or (is_frame and not is_within):
            return
        if _MADE_AT.match(line):
            is_within = True
        elif _REMOTE.match(line):
            follows = True
        elif _NODE.match(line) or (follows and not is_within and line.strip()):
            if line.strip().startswith("Node:"):
                is_within, follows = False, True
            if line.strip() not in told:
                told.append(line.strip())
                yield told[-1]


def _place(before: Sequence[str]) -> Place | None:
    """Return the innermost line of the user's own code in the traceback that ends here."""
    for at in reversed(range(len(before))):
        if before[at].startswith("Traceback "):
            return None
        frame = _FRAME.match(before[at])
        if frame is not None and not _FOREIGN.search(frame["file"]):
            code = before[at + 1].strip() if at + 1 < len(before) and not _FRAME.match(before[at + 1]) else ""
            return Place(file=frame["file"], line=int(frame["line"]), code=code)
    return None
