"""Finds out which task of a cluster a process is, from the server that its script starts."""

from __future__ import absolute_import

import json
import re

from . import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, Iterator, List, Mapping, MutableMapping, Optional, Tuple

    from .guarding import Guard

_BEGIN = ("self", "server_or_cluster_def", "job_name", "task_index")
_FAIL_FAST, _FAIL_FAST_SINCE = "GRPC_FAIL_FAST", (2, 4)


def fail_fast(version, environment):
    # type: (str, MutableMapping[str, str]) -> None
    """Make calls to a server that has ended fail, if this TensorFlow can: by default they wait forever.

    A version that knows the variable but not this value would end the process, so it does not get it.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found.group(1)), int(found.group(2))) >= _FAIL_FAST_SINCE:
        environment.setdefault(_FAIL_FAST, "use_caller")


#: Start of the message that a script uses other addresses than the job's; rules match it.
NOT_THE_JOBS = "its cluster is not the job's: "
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "")


def given_addresses(environment):
    # type: (Mapping[str, str]) -> List[str]
    """Return the addresses of the job; empty if it gives its replicas none."""
    try:
        cluster = json.loads(environment.get("TF_CONFIG") or "{}").get("cluster") or {}
        found = [str(address) for addresses in cluster.values() for address in addresses]
    except (AttributeError, TypeError, ValueError):
        return []
    spare = environment.get("PACELINE_SPARE_WORKERS") or ""
    return found + [each for each in spare.split(",") if each and found]


def foreign(own, given):
    # type: (Mapping[str, str], List[str]) -> Dict[str, str]
    """Return the tasks of a script's cluster whose addresses do not belong to the job.

    A host has several names, so only two things count: the port, and whether other hosts can reach the host
    at all. A server that is alone may take any port: 0.

    Args:
        own: the address of each task.
        given: the addresses of the job.
    """
    known = [_split(each) for each in given]
    found = {}
    for task, address in own.items():
        host, port = _split(address)
        same = [other for other, other_port in known if other_port == port]
        is_near = host in _LOOPBACK
        if port not in ("", "0") and not any(not is_near or other in _LOOPBACK for other in same):
            found[task] = address
    return found if known else {}


def _split(address):
    # type: (str) -> Tuple[str, str]
    host, _, port = address.rpartition(":")
    return host.strip("[]").lower(), port


def _tasks(definition):
    # type: (Any) -> Iterator[Tuple[str, str]]
    """Yield TensorFlow's name of each task of a cluster, with its address."""
    for job in definition.cluster.job:
        for index, address in sorted(job.tasks.items()):
            yield "/job:%s/task:%d" % (job.name, index), address


class ServerWatch(object):
    """Wraps ``tf.train.Server``.

    Args:
        guard: shields the script from errors.
        say: takes messages about the script.
        environment: the environment with which the process began.

    Attributes:
        task: TensorFlow's name of this process, such as ``/job:worker/task:0``; None: it started no server.
    """

    def __init__(self, guard, say, environment):
        # type: (Guard, Callable[[str], None], Mapping[str, str]) -> None
        self._guard = guard
        self._say = say
        self._given = given_addresses(environment)
        self.task = None  # type: Optional[str]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the servers of ``tensorflow.python.training.server_lib``."""
        server = module.Server
        original = server.__init__
        signatures.check(original, _BEGIN)

        @signatures.wraps(original)
        def __init__(own, server_or_cluster_def, job_name=None, task_index=None, *arguments, **named):
            # type: (Any, Any, Any, Any, *Any, **Any) -> None
            original(own, server_or_cluster_def, job_name, task_index, *arguments, **named)
            self._guard(self._note, own)

        server.__init__ = __init__

    def _note(self, server):
        # type: (Any) -> None
        definition = server.server_def
        self.task = "/job:%s/task:%d" % (definition.job_name, definition.task_index)
        others = foreign(dict(_tasks(definition)), self._given)
        if others:
            named = ", ".join("%s is %s" % each for each in sorted(others.items()))
            self._say("%s%s, and no replica of the job has that address" % (NOT_THE_JOBS, named))
