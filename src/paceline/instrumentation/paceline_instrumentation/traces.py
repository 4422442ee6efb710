"""Traces steps of a session, when that is asked for and now and then.

What TensorFlow gives of a step, a serialized ``RunMetadata``, is written as it is: the reader of the
trace has the means to make sense of it, and a training image need not.
"""

from __future__ import absolute_import

import json
import os
import re
import threading
import time
import zipfile

from . import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

#: All trainers trace at the same times of the clock, so that their traces of a moment stand side by side.
EVERY_SECONDS = 60.0
#: The first steps are not like the others.
WARM_UP_STEPS = 20
#: For so long TensorFlow's profiler looks at the servers that a coordinator trains with.
PROFILE_MILLISECONDS = 1000
#: Within that every agent has seen what it is asked for, which it looks for once a second.
LEAD_SECONDS = 2.0
#: So long the request stays; one that is older was left by a process that was killed.
ASKED_SECONDS, LEFT_SECONDS = 15.0, 60.0
#: So many traces of this trainer stay.
KEPT = 60
_FOLDER, _REQUEST = "traces", "request"
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$")
#: The field ``trace_level`` of a serialized ``RunOptions``, and the value ``FULL_TRACE`` (``config.proto``).
_LEVEL, _FULL_TRACE = b"\x08", b"\x08\x03"


class TraceWatch(object):
    """Says when a step is traced, traces it and writes what is found.

    Args:
        environment: of the process as it began.
    """

    def __init__(self, environment):
        # type: (Mapping[str, str]) -> None
        folder = environment.get("PACELINE_RUN_DIR")
        self._folder = os.path.join(folder, _FOLDER) if folder else None
        self._trainer = "%s-%s" % (environment.get("PACELINE_ROLE"), environment.get("PACELINE_INDEX"))
        self._attempt = environment.get("PACELINE_ATTEMPT", "1")
        self._file = "%s.%s.zip" % (self._trainer, self._attempt)
        self._every_seconds = every_seconds(environment)
        self._taken = self._answered = ""
        self._asked_until = None  # type: Optional[float]

    def due(self, steps):
        # type: (int) -> Optional[str]
        """Return the name of the trace to take now, once; None: none.

        Args:
            steps: how many this process has made.
        """
        if self._folder is None:
            return None
        asked = self._asked(self._folder)
        if asked is not None:
            return asked
        if self._every_seconds == 0 or steps < WARM_UP_STEPS:
            return None
        name = name_at(time.time() // self._every_seconds * self._every_seconds)
        if name == self._taken:
            return None
        self._taken = name
        return name

    def refuse(self):
        # type: () -> None
        """Say of a trace that is asked for that there is no session: then servers are profiled at once."""
        name = None if self._folder is None else self._asked(self._folder)
        if name is not None:
            self._write(name, None, {"error": "its steps are made without a session"})

    def ask_for_profiles(self, steps):
        # type: (int) -> None
        """Ask the agents to have their servers profiled, if it is time for a trace: a coordinator has none.

        They see that where all replicas have one folder, as on one machine; elsewhere the agent of this
        process passes it on.

        Args:
            steps: how many the workers have made.
        """
        if self._folder is None:
            return
        path = os.path.join(self._folder, _REQUEST)
        try:
            if self._asked_until is not None and time.time() > self._asked_until:
                self._asked_until = None
                os.unlink(path)
            name = None if _is_asked(path) else self.due(steps)
            if name is None:
                return
            os.makedirs(self._folder, exist_ok=True)
            with open(path + ".trainer", "w") as file:
                at = time.time() + LEAD_SECONDS
                file.write("%s profile %d %.3f everywhere\n" % (name, PROFILE_MILLISECONDS, at))
            os.rename(path + ".trainer", path)
            self._asked_until = time.time() + ASKED_SECONDS
        except OSError:
            pass  # As below.

    def _asked(self, folder):
        # type: (str) -> Optional[str]
        """Return the name of a trace that is asked for and was not taken yet; None: none is."""
        try:
            with open(os.path.join(folder, _REQUEST)) as file:
                name = (file.read(100).split() or [""])[0]  # Behind it stands what is asked of others.
        except (OSError, UnicodeDecodeError):
            return None
        if not is_name(name) or name == self._answered:
            return None
        self._answered = name
        return None if os.path.exists(os.path.join(folder, name, self._file)) else name

    def keep(self, name, metadata, context):
        # type: (str, bytes, Dict[str, Any]) -> None
        """Write a traced step, beside the training.

        Args:
            name: of the trace.
            metadata: what TensorFlow gave of the step.
            context: what else is known of it.
        """
        context.update({"trainer": self._trainer, "attempt": int(self._attempt)})
        threading.Thread(target=self._write, args=(name, metadata, context), name="traces").start()

    def _write(self, name, metadata, context):
        # type: (str, Optional[bytes], Dict[str, Any]) -> None
        assert self._folder is not None
        folder = os.path.join(self._folder, name)
        temporary = os.path.join(folder, ".%s.tmp" % self._file)
        try:
            os.makedirs(folder, exist_ok=True)
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("context.json", json.dumps(context))
                if metadata is not None:
                    archive.writestr("step.pb", metadata)
            os.replace(temporary, os.path.join(folder, self._file))
            self._prune(self._folder)
        except OSError:
            pass  # The disk is full or the folder is gone: then there is no trace.

    def _prune(self, traces):
        # type: (str) -> None
        """Remove this trainer's oldest traces, what it has left where it was killed, and folders that are
        empty then. Those of its earlier attempts count, too.
        """
        trainer = re.escape(self._trainer)
        taken, left = re.compile(r"%s\.\d+\.zip$" % trainer), re.compile(r"\.%s\.\d+\.zip\.tmp$" % trainer)
        names = sorted(each for each in os.listdir(traces) if is_name(each))
        folders = [(os.path.join(traces, each), os.listdir(os.path.join(traces, each))) for each in names]
        own = [folder for folder, files in folders if any(map(taken.match, files))]
        oldest = own[: max(0, len(own) - KEPT)]
        for folder, files in folders:
            removed = [each for each in files if left.match(each) or (folder in oldest and taken.match(each))]
            # Another trainer may be about to write into one that is new.
            is_old = time.time() - os.stat(folder).st_mtime > LEFT_SECONDS
            for each in removed:
                os.unlink(os.path.join(folder, each))
            if len(removed) == len(files) and (removed or is_old):
                os.rmdir(folder)


class Buffers(object):
    """What a traced run of a session is given in place of the script's own options and metadata.

    Args:
        tf_session: TensorFlow's module of that name, which has the buffers.
        options: a buffer of the script's own options, or None.

    Attributes:
        options: a buffer of these that asks for a trace, too.
        metadata: a buffer for what TensorFlow says of the run.
    """

    def __init__(self, tf_session, options):
        # type: (Any, Any) -> None
        given = b"" if options is None else bytes(tf_session.TF_GetBuffer(options))
        self._tf_session = tf_session
        self.options = tf_session.TF_NewBufferFromString(given + _FULL_TRACE)
        self.metadata = tf_session.TF_NewBuffer()

    def read(self):
        # type: () -> bytes
        """Return the serialized metadata."""
        return bytes(self._tf_session.TF_GetBuffer(self.metadata))

    def delete(self):
        # type: () -> None
        """Free both."""
        self._tf_session.TF_DeleteBuffer(self.options)
        self._tf_session.TF_DeleteBuffer(self.metadata)


def traces_itself(tf_session, options):
    # type: (Any, Any) -> bool
    """Whether a step has options by which the script traces it: that goes first."""
    return options is not None and bytes(tf_session.TF_GetBuffer(options)).startswith(_LEVEL)


def every_seconds(environment):
    # type: (Mapping[str, str]) -> float
    """Return how often the job file wants a trace; 0: never, unless one is asked for."""
    try:
        return float((settings.read(environment).get("trace") or {}).get("every_seconds", EVERY_SECONDS))
    except (AttributeError, TypeError, ValueError):
        return EVERY_SECONDS


def name_at(seconds):
    # type: (float) -> str
    """Return the name of a trace that is taken at a time (Unix seconds)."""
    milliseconds = int(seconds * 1000)
    moment = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(milliseconds // 1000))
    return "%s.%03dZ" % (moment, milliseconds % 1000)


def _is_asked(path):
    # type: (str) -> bool
    """Whether a trace is asked for; what was asked for by a process that was killed is taken back."""
    try:
        since = os.stat(path).st_mtime
    except OSError:
        return False
    if time.time() - since < LEFT_SECONDS:
        return True
    os.unlink(path)
    return False


def is_name(text):
    # type: (str) -> bool
    """Whether a text could be the name of a trace."""
    return _NAME.match(text) is not None
