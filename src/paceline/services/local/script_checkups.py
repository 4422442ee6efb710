"""Predicts what Paceline would observe of a training script, from its text and from the Python that runs it.

What a script really does shows only when it runs, but its text names the parts of TensorFlow that it uses. So
the checks here say what the text promises.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InvalidInput
from paceline.model.explanations.checkups import Check, CheckState
from paceline.services.local.checkups import Run

PYTHON_SECONDS = 30.0
#: A longer file is not a script.
MAX_BYTES = 4 << 20
#: The first TensorFlow version whose servers have a profiler.
_PROFILED_SINCE = (2, 4)
#: The packages that a script imports if it trains with TensorFlow.
_LIBRARIES = frozenset({"tensorflow", "keras", "tf_keras", "paceline"})
#: Prints the versions of Python and, without importing it, of TensorFlow.
_VERSIONS = """
import sys, os
version = ""
for folder in sys.path:
    if os.path.isdir(folder):
        for name in sorted(os.listdir(folder)):
            parts = name.split("-")
            known = ("tensorflow", "tensorflow_cpu", "tensorflow_gpu", "intel_tensorflow")
            if parts[0] in known and name.endswith((".dist-info", ".egg-info")) and len(parts) > 1:
                version = version or parts[1].rsplit(".", 1)[0]
print("%d.%d.%d %s" % (sys.version_info[:3] + (version or "-",)))
"""


@dataclass(frozen=True)
class TrainingStyle:
    """A way to train, and the names by which a script shows that it uses it.

    Attributes:
        name: what the check's answer calls it.
        names: its classes and functions; one of them is enough.
        steps: how its steps are observed.
        has_session: whether a step can be traced within the training process.
    """

    name: str
    names: frozenset[str]
    steps: str
    has_session: bool = False


#: In the order in which they are reported; a script may use several.
STYLES = (
    TrainingStyle(
        "the training library", frozenset({"paceline"}), "it reports its steps itself", has_session=True
    ),
    TrainingStyle(
        "a session",
        frozenset({
            "Session", "InteractiveSession", "MonitoredTrainingSession", "MonitoredSession", "Supervisor",
            "SingularMonitoredSession", "train_and_evaluate", "Estimator",
        }),
        "each run that updates variables by gradients counts",
        has_session=True,
    ),
    TrainingStyle(
        "a coordinator",
        frozenset({"ClusterCoordinator", "ParameterServerStrategy", "ParameterServerStrategyV2"}),
        "as its optimizer counts them, shared out to the workers that made them",
    ),
    TrainingStyle("Model.fit", frozenset({"fit"}), "as its optimizer counts them, once a second"),
    TrainingStyle(
        "a loop around a gradient tape", frozenset({"GradientTape", "apply_gradients"}),
        "as its optimizer counts them, once a second",
    ),
)  # fmt: skip


def checks(script: Path, python: str, run: Run) -> Iterator[Check]:
    """Yield what would be observed, one check at a time.

    Args:
        script: the file.
        python: the program that runs it.
        run: runs a program for at most the given number of seconds and returns what it printed, or None if it
            failed.

    Raises:
        InvalidInput: the script cannot be read.
    """
    names = _names(_text(script))
    # Other libraries, too, have sessions and a `fit`.
    is_known = names is not None and bool(names & _LIBRARIES)
    styles = [style for style in STYLES if is_known and names is not None and style.names & names]
    interpreter, version = _interpreter(python, run)
    yield interpreter
    yield _style(script, names, styles)
    if not styles:
        return
    yield Check(name="Steps", state=CheckState.OK, detail=styles[0].steps)
    yield _loss(styles)
    yield Check(
        name="Variables",
        state=CheckState.OK,
        detail="shape, type, PS and slots of each, and what updates it",
    )
    yield _traces(styles, version)


def _text(script: Path) -> bytes:
    try:
        with script.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{script} cannot be read: {error.strerror or error}") from error
    if len(text) > MAX_BYTES:
        raise InvalidInput(f"{script} has more than {MAX_BYTES >> 20} MiB: it is no script")
    return text


def _names(text: bytes) -> set[str] | None:
    """Return all names and attributes that a script uses; None: this Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                found.add(name)
            case ast.ImportFrom(module=module, names=imported):
                found |= {(module or "").partition(".")[0], *(each.name for each in imported)}
            case ast.Import(names=imported):
                found |= {each.name.partition(".")[0] for each in imported}
    return found


def _interpreter(python: str, run: Run) -> tuple[Check, tuple[int, ...] | None]:
    """Return the check of the script's Python, and its version of TensorFlow; None: it has none."""
    name, printed = "Python", run([python, "-c", _VERSIONS], PYTHON_SECONDS)
    version_match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+) (\S+)", printed or "")
    if version_match is None:
        advice = "name the program that runs the script: --python"
        return Check(
            name=name, state=CheckState.MISSING, detail=f"{python} does not run", advice=advice
        ), None
    release = ".".join(version_match.groups()[:3])
    if (int(version_match[1]), int(version_match[2])) < (3, 5):
        detail, advice = (
            f"{release}: scripts of Python before 3.5 are not seen",
            "CPU, memory and network are",
        )
        return Check(name=name, state=CheckState.MISSING, detail=detail, advice=advice), None
    if version_match[4] == "-":
        advice = "where the job runs it may be there: an image, say"
        detail = f"{release}, without TensorFlow ({python})"
        return Check(name=name, state=CheckState.MISSING, detail=detail, advice=advice), None
    version = tuple(int(number) for number in re.findall(r"\d+", version_match[4])[:3])
    return Check(
        name=name, state=CheckState.OK, detail=f"{release} with TensorFlow {version_match[4]} ({python})"
    ), version


def _style(script: Path, names: set[str] | None, found: list[TrainingStyle]) -> Check:
    if names is None:
        return Check(
            name="Script", state=CheckState.MISSING, detail=f"{script} is no Python that can be parsed here",
            advice="what is seen of it shows when it runs: paceline describe",
        )  # fmt: skip
    if not found:
        return Check(
            name="Script", state=CheckState.MISSING, detail=f"{script} names no way to train that is known",
            advice="it may import one; what is seen of it shows when it runs: paceline describe",
        )  # fmt: skip
    return Check(
        name="Script",
        state=CheckState.OK,
        detail=f"it trains by {' and '.join(style.name for style in found)}",
    )


def _loss(found: list[TrainingStyle]) -> Check:
    if any(style.has_session or style.name == "Model.fit" for style in found):
        return Check(name="Loss", state=CheckState.OK, detail="once a second")
    return Check(
        name="Loss",
        state=CheckState.MISSING,
        detail="only where a scheduled function or a callback gives it",
        advice='a line of your own to $PACELINE_REPORT_FILE has it: {"type": "step", "loss": ...}',
    )


def _traces(found: list[TrainingStyle], version: tuple[int, ...] | None) -> Check:
    name = "Traces"
    if any(style.has_session for style in found):
        detail = "a step of the session: bytes and time by variable and PS"
        return Check(name=name, state=CheckState.OK, detail=detail)
    if version is None or version >= _PROFILED_SINCE:
        detail = "by the profiler of its servers, from TensorFlow 2.4 on: time, and bytes by shapes"
        return Check(name=name, state=CheckState.OK, detail=detail)
    return Check(
        name=name, state=CheckState.MISSING,
        detail="it has no session, and TensorFlow before 2.4 has no profiler",
        advice="a newer TensorFlow has one",
    )  # fmt: skip
