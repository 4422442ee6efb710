"""Traces single steps of a session: on request, and at regular intervals.

TensorFlow's result for a step, a serialized ``RunMetadata``, is written unchanged: the reader of the trace
can parse it, and a training image need not be able to.
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

#: All trainers trace at the same clock times, so that their traces of a moment can be compared.
EVERY_SECONDS = 60.0
#: The first steps are not typical.
WARM_UP_STEPS = 20
#: How long TensorFlow's profiler profiles the servers that a coordinator trains with.
PROFILE_MILLISECONDS = 1000
#: Within this time every agent has seen a request: agents look for one once a second.
LEAD_SECONDS = 2.0
#: How long a request stays; a request older than the second time was left by a killed process.
ASKED_SECONDS, LEFT_SECONDS = 15.0, 60.0
#: How many traces of this trainer are kept.
KEPT = 60
_FOLDER, _REQUEST = "traces", "request"
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$")
#: The field ``trace_level`` of a serialized ``RunOptions``, and the value ``FULL_TRACE`` (``config.proto``).
_LEVEL, _FULL_TRACE = b"\x08", b"\x08\x03"


class TraceWatch(object):
    """Decides when a step is traced, and writes the trace.

    Args:
        environment: the environment with which the process began.
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
        """Return the name of the trace to make now, once; None: none is due.

        Args:
            steps: how many steps this process has made.
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
        """Answer a request for a trace with an error: the steps use no session.

        Then servers are profiled at once.
        """
        name = None if self._folder is None else self._asked(self._folder)
        if name is not None:
            self._write(name, None, {"error": "its steps are made without a session"})

    def ask_for_profiles(self, steps):
        # type: (int) -> None
        """Ask the agents to profile their servers if a trace is due: a coordinator cannot trace steps.

        The agents see the request if all replicas share one folder, as on one machine; elsewhere the agent of
        this process passes it on.

        Args:
            steps: how many steps the workers have made.
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
            pass  # As in `_write`: then there is no trace.

    def _asked(self, folder):
        # type: (str) -> Optional[str]
        """Return the name of a requested trace that was not made yet; None: there is no request."""
        try:
            with open(os.path.join(folder, _REQUEST)) as file:
                name = (file.read(100).split() or [""])[0]  # The rest is for others.
        except (OSError, UnicodeDecodeError):
            return None
        if not is_name(name) or name == self._answered:
            return None
        self._answered = name
        return None if os.path.exists(os.path.join(folder, name, self._file)) else name

    def keep(self, name, metadata, context):
        # type: (str, bytes, Dict[str, Any]) -> None
        """Write the trace of a step, in a thread beside the training.

        Args:
            name: the name of the trace.
            metadata: TensorFlow's metadata of the step.
            context: what else is known of the step.
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
            pass  # The disk is full or the folder is gone: there is no trace.

    def _prune(self, traces):
        # type: (str) -> None
        """Remove this trainer's oldest traces, its unfinished files, and folders that are empty then.

        Traces and files of the trainer's earlier attempts are included.
        """
        trainer = re.escape(self._trainer)
        taken, left = re.compile(r"%s\.\d+\.zip$" % trainer), re.compile(r"\.%s\.\d+\.zip\.tmp$" % trainer)
        names = sorted(each for each in os.listdir(traces) if is_name(each))
        folders = [(os.path.join(traces, each), os.listdir(os.path.join(traces, each))) for each in names]
        own = [folder for folder, files in folders if any(map(taken.match, files))]
        oldest = own[: max(0, len(own) - KEPT)]
        for folder, files in folders:
            removed = [each for each in files if left.match(each) or (folder in oldest and taken.match(each))]
            # Another trainer may be about to write into a new folder.
            is_old = time.time() - os.stat(folder).st_mtime > LEFT_SECONDS
            for each in removed:
                os.unlink(os.path.join(folder, each))
            if len(removed) == len(files) and (removed or is_old):
                os.rmdir(folder)


class Buffers(object):
    """The options and metadata of a traced run, in place of the script's own.

    Args:
        tf_session: TensorFlow's module of that name, which has the buffer functions.
        options: a buffer of the script's own options, or None.

    Attributes:
        options: a buffer of these options that also asks for a trace.
        metadata: a buffer for TensorFlow's metadata of the run.
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
        """Free both buffers."""
        self._tf_session.TF_DeleteBuffer(self.options)
        self._tf_session.TF_DeleteBuffer(self.metadata)


def traces_itself(tf_session, options):
    # type: (Any, Any) -> bool
    """Return whether a step's options make the script's own trace, which takes precedence."""
    return options is not None and bytes(tf_session.TF_GetBuffer(options)).startswith(_LEVEL)


def every_seconds(environment):
    # type: (Mapping[str, str]) -> float
    """Return the interval of traces from the job file; 0: traces are made only on request."""
    try:
        return float((settings.read(environment).get("trace") or {}).get("every_seconds", EVERY_SECONDS))
    except (AttributeError, TypeError, ValueError):
        return EVERY_SECONDS


def name_at(seconds):
    # type: (float) -> str
    """Return the name of a trace that is made at a time (Unix seconds)."""
    milliseconds = int(seconds * 1000)
    moment = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(milliseconds // 1000))
    return "%s.%03dZ" % (moment, milliseconds % 1000)


def _is_asked(path):
    # type: (str) -> bool
    """Return whether a trace is requested; remove the request of a killed process."""
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
    """Return whether a text could be the name of a trace."""
    return _NAME.match(text) is not None
