"""The line of a failed script's output that says why it failed, and the place in the user's own code.

Python writes a traceback and, as its last line, the name of the exception with its message. This last line
does not always matter most:

* TensorFlow's own errors have more lines, and one of them names the operation (``Node: 'MatMul'``). Errors
  from another process of the job begin with ``From /job:worker/...``, and the relevant line follows. An error
  within a ``tf.function`` is the last line of an indented block below ``ValueError: in user code:``.
* The log continues after the exception: objects raise while they are deleted ("Exception ignored in"),
  threads end with tracebacks of their own, the C++ runtime writes its last messages, and a launcher says only
  that its command failed.
* Launchers write a prefix in front of each line, and loggers write a whole traceback on one line. Some
  libraries draw a traceback in a box, or in a format of their own.

A command may also fail without any such line: ``sys.exit("no data")``, ``tar``. Then only its lines at the
level of an error and its last lines can be quoted; they need not be the reason.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator, Sequence

#: How many of the last lines are read, and how many characters of each: a log may be one line of gigabytes.
LINES, CHARACTERS = 500, 2000
#: The number of further lines that are kept of a message with several lines.
_MORE_LINES = 3
_HEADER = "Traceback (most recent call last)"
_MESSAGE = r"(?::(?:\s+(?P<message>.*))?)?$"
_EXCEPTION = re.compile(
    r"(?:\w+\.)*(?P<name>[A-Za-z_]\w*"
    r"(?:Error|Exception|ExceptionGroup|Warning|Interrupt|Exit|Iteration|NotFound|Timeout))" + _MESSAGE
)
#: Any exception at the end of a traceback: queue.Empty, socket.timeout, subprocess.TimeoutExpired.
_ANY_EXCEPTION = re.compile(r"(?:\w+\.)*(?P<name>[A-Za-z_]\w*)" + _MESSAGE)
#: The last line of a process that ends without an exception; lines that say more about the reason come first.
_FATAL = (
    re.compile(
        r"(?:\S+ )?F\d{4} \S+ .+"  # absl's and TensorFlow's LOG(FATAL)
        r"|\d{4}-\d\d-\d\d \S+ F \S+ .+"  # LOG(FATAL) of TensorFlow 1.4 and later
        r"|\s+what\(\):\s+.+"
    ),
    re.compile(r"terminate called after throwing .+"),
    re.compile(r"Fatal Python error: .+"),
    re.compile(r"(?:Illegal instruction|Segmentation fault|Bus error|Floating point exception|Aborted)\b.*"),
)
#: Messages of shells, loaders and runtimes, for output without an exception.
_OTHER = (
    re.compile(r"(?:\S+: )?line \d+: .+"),  # a shell: train.sh: line 3: foo: command not found
    re.compile(r"(?:/\S+/)?(?:ba|da|z)?sh: .+"),
    re.compile(r"\S*python[\d.]*: (?:can't open file|Error while finding module|No module named) .+"),
    re.compile(r".+: error: .+|usage: .+"),  # argparse, for a wrong option
    re.compile(r"(?:FATAL Flags parsing error:)?\s+(?:Unknown command line flag|flag --\w+=).+"),  # absl
    re.compile(r"(?:Error|ERROR): .+"),  # click, pip
    re.compile(r"(?:/\S+/)?(?:env|exec|nohup|timeout): .+"),  # for a missing program
    re.compile(r"(?:Exception in thread \S+|Caused by:) (?:\w+\.)+\w+(?:Exception|Error)\b.*"),  # Java's
    re.compile(r"panic: .+|thread '.*' panicked at .+"),  # Go's, Rust's
)
#: A line at the level of an error, as loggers write it. Lines of TensorFlow's C++ code do not count: it logs
#: many harmless messages at this level, such as those about CUDA.
_LOGGED_ERROR = re.compile(
    r"(?:.{,80}[\s\[|:-])?(?:ERROR|CRITICAL|FATAL|SEVERE)\b"
    r"|.{,80}\[(?:error|critical|fatal)\s*\]"
    r"|.{,400}\blevel(?:name)?\"?[=:]\s*\"?(?:error|critical|fatal|ERROR|CRITICAL|FATAL)\b"
    r"|E\d{4} \S+ +\d+ \S+\.py:\d+\] "  # absl for Python
    r"|(?:fatal|error): "
)
_FRAME = re.compile(
    r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in .+)?$'
    # In "user code" blocks before TensorFlow 2.5, and within the box that rich draws.
    r"|\s+(?P<short_file>/\S+\.py):(?P<short_line>\d+) \w+.*$"
    r"|File (?P<cell_file>[^\s:]+):(?P<cell_line>\d+), in .+$"  # IPython
)
#: The prefixes of the groups of a frame.
_FORMS = ("", "short_", "cell_")
_FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib/python\d|<frozen |<string>|paceline_instrumentation"
    r"|__autograph_generated|\.p(?:yx|xd|xi)$"  # the last is Cython
)
#: TensorFlow 2 first shows where the operation was created, then its name, then the error.
_MADE_AT = re.compile(r"\s*Detected at node .+")
_NODE = re.compile(r"\s*(?:Node:|\[\[\{\{node) ?.+")
_REMOTE = re.compile(r"\s*(?:\(\d+\) )?From /job:\S+:?$")
#: Lines that only introduce a message.
_INTRODUCTION = re.compile(
    r"|Exception encountered when calling .+|\d+ validation errors? for .+|.+:|" + _REMOTE.pattern
)
_IN_USER_CODE = ("in user code:", "in converted code:")
#: Exceptions of a launcher whose command failed; the command itself says why.
_LAUNCHERS = ("CalledProcessError", "ChildFailedError", "ProcessExitedException")
#: The first characters of the line above an exception: a frame's line of code, or an empty line of IPython.
_BELOW_FRAMES = ("", " ", "\t")
_AFTERTHOUGHT = re.compile(r"Exception ignored in|Error in (?:atexit\._run_exitfuncs|sys\.excepthook)")
#: Colours, and the bars beside the exceptions of an exception group.
_ORNAMENT = re.compile(r"\x1b\[[\d;]*[A-Za-z]|^\s+[|+] ")
#: The sides of a box that rich draws around a traceback.
_EDGES = ("╭", "╰", "├", "┌", "└", "┏", "┗")
_SIDES = re.compile(r"^[│┃](?=\s)|\s*[│┃]$")
#: A string in a JSON log line that contains a traceback.
_JSON_TEXT = re.compile(rf'"((?:[^"\\]|\\.)*{re.escape(_HEADER)}:?\\n(?:[^"\\]|\\.)*)')
_ESCAPE, _ESCAPED = re.compile(r"\\(.)"), {"n": "\n", "t": "\t"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """A line of the user's own code.

    Attributes:
        file: the path of the file.
        line: the number of the line.
        code: the line as the traceback shows it; empty: the traceback does not show it.
    """

    file: str
    line: int
    code: str = ""

    def __str__(self) -> str:
        """Return the line in a form for people."""
        return f"{self.file}:{self.line}" + (f"  {self.code}" if self.code else "")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """What a script's output says about its failure.

    Attributes:
        line: the whole line that matters, without the prefix of a launcher.
        more: later lines that belong to its message, such as TensorFlow's operation.
        exception: the name of the exception, without its package; None: the line is not an exception.
        place: the place in the user's code; None: no traceback shows it.
        is_reason: whether the line says why the script failed; if not, it is only part of the last output.
    """

    line: str
    more: tuple[str, ...] = ()
    exception: str | None = None
    place: CodeLine | None = None
    is_reason: bool = True

    @property
    def text(self) -> str:
        """All lines as one text, for matching patterns."""
        return "\n".join((self.line, *self.more))


class _Weight(enum.IntEnum):
    """How much an exception says about why a process ended."""

    AFTERTHOUGHT = 0
    LAUNCHER = 1
    THREAD = 2
    MAIN = 3


@dataclasses.dataclass(frozen=True, slots=True)
class _Raised:
    """An exception in an output: the index of its line, its name and message, and its weight."""

    at: int
    name: str
    message: str
    weight: _Weight


def read(output: Sequence[str]) -> LastWords | None:
    """Return what the last lines of an output say about a failure; None: no known form was found."""
    lines = list(_plain(output[-LINES:]))
    raised = max(_raised(lines), key=lambda each: (each.weight, each.at), default=None)
    after = lines if raised is None else lines[raised.at + 1 :]
    fatal = next((line for each in _FATAL if (line := _last(after, each)) is not None), None)
    if fatal is not None:
        return LastWords(line=fatal, place=_fault(after))
    if raised is None:
        other = _last(lines, *_OTHER)
        return None if other is None else LastWords(line=other)
    if raised.message in _IN_USER_CODE:
        within = _in_user_code(lines, raised)
        if within is not None:
            return within
    return LastWords(
        line=lines[raised.at],
        more=tuple(_more(lines[raised.at + 1 :], raised.message)),
        exception=raised.name,
        # An exception of another process is raised again here: its first traceback has the place.
        place=_place(lines[: lines.index(lines[raised.at])]) or _place(lines[: raised.at]),
    )


def closing(output: Sequence[str]) -> LastWords | None:
    """Return the last line that was logged as an error, and the last lines; None: nothing was written.

    It is for an output in which ``read`` finds nothing.
    """
    lines = [text for line in _plain(output[-LINES:]) if (text := line.strip())]
    if not lines:
        return None
    logged = next((line for line in reversed(lines) if _LOGGED_ERROR.match(line)), None)
    last = lines[-_MORE_LINES:]
    line, *more = last if logged is None else [logged, *(each for each in last if each != logged)]
    return LastWords(line=line, more=tuple(more), is_reason=False)


def _plain(output: Sequence[str]) -> Iterator[str]:
    """Yield the lines without colours, bars, boxes, and the prefix that a launcher writes on each line."""
    lines = [part for line in output for part in _parts(line[:CHARACTERS])]
    lines = [_without_box(_ORNAMENT.sub("", line).rstrip()) for line in lines[-LINES:]]
    prefix = next((found for line in reversed(lines) if (found := _prefix(line))), None)
    for line in lines:
        written = prefix.match(line) if prefix else None
        yield line[written.end() :] if written else line


def _parts(line: str) -> Sequence[str]:
    """Return the lines that a logger wrote as one line: in JSON, or as Python's repr of a string."""
    found = _JSON_TEXT.search(line)
    if found:
        return _ESCAPE.sub(lambda each: _ESCAPED.get(each[1], each[1]), found[1]).split("\n")
    return line.split("\\n") if f"{_HEADER}:\\n" in line else [line]


def _without_box(line: str) -> str:
    """Return a line without its box; of an edge, only the title of a traceback remains."""
    if line.startswith(_EDGES):
        return _HEADER if _HEADER in line else " "
    return _SIDES.sub("", line)


def _prefix(line: str) -> re.Pattern[str] | None:
    """Return a pattern for the launcher's prefix of a traceback's first line, with any numbers in it."""
    before, header, _ = line.partition(_HEADER)
    # IPython's header has the name of the exception in front, and no colon.
    if not header or not before.strip() or not line.endswith(":") or before.endswith("Exception Group "):
        return None
    return re.compile(re.sub(r"\d+", lambda _: r"\d+", re.escape(before)))


def _is_header(line: str) -> bool:
    return line.rstrip(":").endswith(_HEADER)


def _raised(lines: Sequence[str]) -> Iterator[_Raised]:
    """Yield the exceptions of an output, in order."""
    weight, is_open = _Weight.MAIN, False
    for at, line in enumerate(lines):
        if _is_header(line):
            weight, is_open = _weight(lines[at - 1] if at else ""), True
            continue
        found = _EXCEPTION.match(line)
        # The line below the frames is the exception, whatever its name is.
        if found is None and is_open and lines[at - 1][:1] in _BELOW_FRAMES and not _REMOTE.match(line):
            found = _ANY_EXCEPTION.match(line)
        if found is None:
            continue
        is_launcher = weight is _Weight.MAIN and found["name"] in _LAUNCHERS
        yield _Raised(
            at, found["name"], (found["message"] or "").strip(), _Weight.LAUNCHER if is_launcher else weight
        )
        weight, is_open = _Weight.MAIN, False


def _weight(before: str) -> _Weight:
    """Return the weight of a traceback, from the line before it."""
    if _AFTERTHOUGHT.match(before):
        return _Weight.AFTERTHOUGHT
    return _Weight.THREAD if before.startswith("Exception in thread ") else _Weight.MAIN


def _last(lines: Sequence[str], *patterns: re.Pattern[str]) -> str | None:
    """Return the last line that matches any of some patterns."""
    return next(
        (line.strip() for line in reversed(lines) if any(each.match(line) for each in patterns)), None
    )


def _in_user_code(lines: Sequence[str], raised: _Raised) -> LastWords | None:
    """Return the error within a tf.function, which the indented block below the exception shows."""
    end = raised.at + 1
    while end < len(lines) and (not lines[end] or lines[end][0].isspace()):
        end += 1
    block = lines[raised.at + 1 : end]
    # The lines after the exception show the call and its arguments, and are not exceptions.
    named = [(at, found) for at, line in enumerate(block) if (found := _EXCEPTION.match(line.lstrip()))]
    if not named:
        return None
    at, found = named[-1]
    return LastWords(
        line=block[at].strip(),
        more=tuple(_more(block[at + 1 :], found["message"] or "")),
        exception=found["name"],
        place=_place(block[:at]) or _place(lines[: raised.at]),
    )


def _more(after: Sequence[str], message: str) -> Iterator[str]:
    """Yield further lines of an exception's message: the operation, or the message of another process."""
    lines: list[str] = []
    follows = _INTRODUCTION.fullmatch(message) is not None
    is_within, is_indented = False, True
    for line in after:
        is_frame = _FRAME.match(line) is not None
        if len(lines) == _MORE_LINES or line.startswith("Traceback ") or (is_frame and not is_within):
            return
        # Indented lines right below an exception are part of its message.
        is_indented = is_indented and line[:1].isspace()
        if _MADE_AT.match(line):
            is_within, is_indented = True, False
        elif _REMOTE.match(line):
            follows = True
        elif _NODE.match(line) or ((follows or is_indented) and not is_within and line.strip()):
            if line.strip().startswith("Node:"):
                is_within, follows = False, True
            if line.strip() not in lines:
                lines.append(line.strip())
                yield lines[-1]


def _place(before: Sequence[str]) -> CodeLine | None:
    """Return the innermost line of the user's own code in the traceback that ends here."""
    for at in reversed(range(len(before))):
        if _is_header(before[at]):
            return None
        place = _user_frame(before, at)
        if place is not None:
            return place
    return None


def _fault(lines: Sequence[str]) -> CodeLine | None:
    """Return the innermost line of the user's own code from Python's fault handler, which writes it first."""
    begin = next((at for at, line in enumerate(lines) if line.startswith("Current thread ")), len(lines))
    for at in range(begin + 1, len(lines)):
        if not lines[at][:1].isspace():
            return None
        place = _user_frame(lines, at)
        if place is not None:
            return place
    return None


def _user_frame(lines: Sequence[str], at: int) -> CodeLine | None:
    """Return the place that a line of a traceback names; None: it names none, or none in the user's code."""
    found = _FRAME.match(lines[at])
    if found is None:
        return None
    file, line = next((found[f"{form}file"], found[f"{form}line"]) for form in _FORMS if found[f"{form}file"])
    if _FOREIGN.search(file):
        return None
    # IPython also shows the lines around it, so the next line is not the code.
    below = lines[at + 1] if at + 1 < len(lines) and not found["cell_file"] else ""
    code = below.strip() if below[:1].isspace() and not _FRAME.match(below) else ""
    return CodeLine(file=file, line=int(line), code=code)
