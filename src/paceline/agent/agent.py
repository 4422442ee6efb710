"""The replica agent: it runs beside the user's command, in any image, with the standard library alone.

It starts the command, samples once a second what the replica uses, forwards the training script's reports and
records why the command ended (``docs/agent-protocol.md``). It communicates through plain files alone, so
nothing is lost when the engine, the agent or the script dies. A failed measurement never ends a training: the
agent writes null for what it cannot measure. In containers, where no engine can read its files, it also
serves them over HTTP. All code is in this file, except for rarely needed parts, which are beside it in
`profiler.py`, `unseen.py`, `oddities.py` and `passing.py`.

Pure functions (text -> values) parse the kernel's text files. Descriptors stay open between samples: opening
a file below ``/proc`` costs as much as reading it. The agent runs under Python 3.6 and later, hence the
old-fashioned syntax. "proc.rst", "cgroup-v1/" and "cgroup-v2.rst" name documents of the kernel.
"""

import contextlib
import errno
import fcntl
import importlib.util
import io
import itertools
import json
import math
import os
import re
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

ROLES = ("ps", "worker", "chief", "evaluator")
TF_THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
CODE_CREDENTIALS = ("PACELINE_CODE_USER", "PACELINE_CODE_PASSWORD")  # only for the code fetcher
PROXY_VARIABLES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
SEEN_TYPES = ("instrumentation", "fact", "cure")  # about the script; they stay true while it runs
REPORT_TYPES = ("step", "evaluation", "standing", *SEEN_TYPES)
REPORT_NUMBERS = {
    "step": (
        "step", "steps", "examples", "loss", "interval_seconds", "input_wait_seconds", "total_steps",
        "input_cpu_seconds", "all_reduce_seconds",
    ),
    "evaluation": ("step", "examples", "auc", "log_loss", "accuracy"),
}  # fmt: skip
QUALITIES = ("loss", "auc", "log_loss", "accuracy")  # may be negative
MOST_QUALITY = 1e100  # so that no sum of losses is infinite
MOST_FAULTS = 20  # kinds of faulty reports that are reported
LONGEST_NUMBER = 40  # characters
DAY_SECONDS = 86400.0
UNLIMITED = 2**62  # cgroup v1 writes "no limit" as the largest multiple of a page below 2**63
MAX_CPUS = 8192
KEPT_FILES = 400
REPORT_CHUNK_BYTES = 1 << 20
EXIT_FILE_BYTES = 4096
LEFT_SECONDS = 0.5  # a process that outlives its command by this long was left behind
SHOWN_COMMANDS = 3
SWITCHES_BUDGET = 0.0015  # cores that reading context switches may cost on average
GPU_SECONDS = 5.0
NOTE_SECONDS = 60.0
SERVER_THREADS = 4
REQUEST_BYTES, REQUEST_SECONDS = 8192, 10.0
PAUSE_SECONDS = 0.05  # per thread after each answer; a flood of requests costs a few hundredths of a core
PIECE_BYTES = 1 << 16  # of a file held in memory at a time
SLOWEST_BYTES = 1 << 20  # bytes per second; a client that reads more slowly does not get the whole file
PAGE_BYTES = 1 << 20  # of the spool in one answer
FILE_BYTES = 1 << 26
MOST_NAMES = 10_000  # of trace files in one answer
TOKEN_BYTES = 1000
LINGER_SECONDS = 60.0  # at most, after the command, for a reader that promised to return
LINGER_SLACK_SECONDS = 2.0  # beyond the grace period of a command that was asked to stop
TRACE_REQUEST_SECONDS = 60.0
LOOK_SECONDS = 10.0  # between checks of what a command does besides its work
MOST_SEEN = 80  # messages and facts seen about a script
UNSEEN_SECONDS = 30.0  # until the agent checks why a trainer reports nothing, and between checks
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


# --- The config from the engine -----------------------------------------------------------------------


class Config:
    """The engine's config for this replica; ``docs/agent-protocol.md`` explains each field."""

    def __init__(self, values: Dict[str, Any]) -> None:
        """Take the known fields of the values; KeyError if a required field is missing."""
        self.job: str = values["job"]
        self.role: str = values["role"]
        self.index: int = values["index"]
        self.attempt: int = values["attempt"]
        self.command: List[str] = values["command"]
        self.cluster: Dict[str, List[str]] = values["cluster"]
        self.framework: str = values.get("framework", "tensorflow")
        self.spool: str = values["spool"]
        self.exit: str = values["exit"]
        self.reports: str = values["reports"]
        self.threads: Optional[int] = values.get("threads")
        self.cpu_cores: Optional[float] = values.get("cpu_cores")
        self.spare_workers: List[str] = values.get("spare_workers") or []
        self.placeholders: Dict[str, str] = values.get("placeholders") or {}
        self.environment: Dict[str, str] = values.get("environment") or {}
        self.sample_seconds: float = values.get("sample_seconds", 1.0)
        self.grace_seconds: float = values.get("grace_seconds", 30.0)
        self.interface: Optional[str] = values.get("interface")
        self.own_cgroup: bool = values.get("own_cgroup", False)
        self.supervisor_lock: Optional[str] = values.get("supervisor_lock")
        self.orphan_seconds: float = values.get("orphan_seconds", 600.0)
        self.metrics_port: Optional[int] = values.get("metrics_port")
        self.token_file: Optional[str] = values.get("token_file")
        self.instrumentation: Optional[str] = values.get("instrumentation")
        self.linger_seconds: float = values.get("linger_seconds", LINGER_SECONDS)


def parse_config(*texts: str) -> Config:
    """Parse the config from its parts; ValueError says what is wrong. Unknown fields are ignored."""
    values = {}  # type: Dict[str, Any]
    for text in texts:
        part = json.loads(text)
        if not isinstance(part, dict):
            raise ValueError("it is not a JSON object")
        values.update(part)
    command = values.get("command")
    if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
        raise ValueError("command has to be a list of strings, the program first")
    try:
        return Config(values)
    except KeyError as error:
        raise ValueError(f"field {error} is missing") from error


# --- What the command sees ----------------------------------------------------------------------------


def placeholder_values(config: Config, threads: int) -> Dict[str, str]:
    """Return the value of each placeholder by its name."""
    values = {name: str(getattr(config, name)) for name in ("job", "role", "index", "attempt")}
    values["threads"] = str(threads)
    for role in sorted(set(ROLES) | set(config.cluster)):
        addresses = config.cluster.get(role, [])
        values[role + "_hosts"] = ",".join(addresses)
        values["replicas." + role] = str(len(addresses))
    own = config.cluster.get(config.role, [])
    if config.index < len(own):
        values["address"] = own[config.index]
    values["cluster_spec"] = json.dumps(tf_cluster(config))
    values.update({name: str(value) for name, value in config.placeholders.items()})
    return values


def fill(text: str, values: Dict[str, str]) -> str:
    """Fill in ``{name}``; ``{{name}}`` becomes ``{name}``; other braces, also ``${name}``, stay unchanged."""
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    pattern = r"\{\{(%s)\}\}|(?<!\$)\{(%s)\}" % (names, names)
    return re.sub(pattern, lambda m: "{" + m.group(1) + "}" if m.group(1) else values[m.group(2)], text)


def tf_cluster(config: Config) -> Dict[str, List[str]]:
    """Return the addresses by role. By TensorFlow's rule only the evaluator sees the evaluator's address."""
    hidden = set() if config.role == "evaluator" else {"evaluator"}
    return {role: hosts for role, hosts in config.cluster.items() if hosts and role not in hidden}


def tf_config(config: Config) -> str:
    """Return ``TF_CONFIG``."""
    task = {"type": config.role, "index": config.index}
    return json.dumps({"cluster": tf_cluster(config), "task": task})


def torch_variables(config: Config) -> Dict[str, str]:
    """Return the variables that torchrun and Kubeflow set for PyTorch; rank 0 is the chief, else worker 0."""
    chiefs, workers = config.cluster.get("chief", []), config.cluster.get("worker", [])
    trainers = chiefs + workers
    if config.role not in ("chief", "worker") or not trainers:
        return {}
    rank = str(config.index + (len(chiefs) if config.role == "worker" else 0))
    address, _, port = trainers[0].rpartition(":")
    host = address.strip("[]")
    variables = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": rank, "RANK": rank}
    variables["WORLD_SIZE"] = variables["PET_NNODES"] = str(len(trainers))
    for name, value in (("MASTER_ADDR", host), ("MASTER_PORT", port), ("NODE_RANK", rank)):
        variables[name] = variables["PET_" + name] = value
    variables["PET_NPROC_PER_NODE"] = "1"
    return variables


def framework_variables(config: Config) -> Dict[str, str]:
    """Return the variables by which the replicas of a framework find each other."""
    if config.framework == "tensorflow":
        return {"TF_CONFIG": tf_config(config)}
    return torch_variables(config) if config.framework == "pytorch" else {}


def framework_defaults(config: Config, threads: int) -> Dict[str, str]:
    """Return the framework's default variables, which the image or the job file may override."""
    if config.framework == "plain":
        return {}
    environment = {name: str(threads) for name in THREAD_VARIABLES}
    if config.framework == "tensorflow":
        environment.update({name: str(threads) for name in TF_THREAD_VARIABLES})
        if config.role != "ps" and threads < 2:
            # With one inter-op thread, a worker of a ParameterServerStrategy waits for its input forever.
            environment["TF_NUM_INTEROP_THREADS"] = "2"
        # Put tables in huge pages, where the kernel allows it: rows are read at random across gigabytes.
        environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    return environment


def proxy_exceptions(config: Config, environment: Dict[str, str]) -> Dict[str, str]:
    """Return the variables that keep replicas from talking through a proxy; empty if no proxy is set.

    gRPC reads ``no_grpc_proxy``, or else ``no_proxy``, and matches its names against the ends of host names.
    Other programs read either spelling of ``no_proxy``, so both get the same value.
    """
    if not any(environment.get(name) or environment.get(name.upper()) for name in PROXY_VARIABLES):
        return {}
    hosts = {address.rpartition(":")[0].strip("[]") for role in config.cluster.values() for address in role}
    # A job may have thousands of pods: their common domain is enough.
    names = sorted(
        {host if host[-1:].isdigit() or "." not in host else host[host.index(".") :] for host in hosts}
    )
    found = {}
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        if name in environment or name != "no_grpc_proxy":
            given = environment.get(name) or environment.get("no_proxy") or environment.get("NO_PROXY") or ""
            found[name] = ",".join([each for each in given.split(",") if each.strip()] + names)
    return found


def command_environment(config: Config, threads: int, inherited: Dict[str, str]) -> Dict[str, str]:
    """Return the command's environment: inherited < the agent's < what the job file sets."""
    values = placeholder_values(config, threads)
    # Python writes to a file in blocks of 8 KiB; a killed process would lose its last block.
    environment = {"PYTHONUNBUFFERED": "1"}
    environment.update(framework_defaults(config, threads))
    environment.update(inherited)
    for name in ("TF_CONFIG", *CODE_CREDENTIALS):
        environment.pop(name, None)
    environment.update(framework_variables(config))
    environment["PACELINE_SPARE_WORKERS"] = ",".join(config.spare_workers)
    environment["PACELINE_REPORT_FILE"] = os.path.abspath(config.reports)
    for name in ("job", "role", "index", "attempt", "threads", "checkpoint_dir", "run_dir"):
        if name in values:
            environment["PACELINE_" + name.upper()] = values[name]
    environment.update({name: fill(str(value), values) for name, value in config.environment.items()})
    environment.update(proxy_exceptions(config, environment))
    if config.instrumentation and environment.get("PACELINE_INSTRUMENTATION") != "off":
        # Python imports the first ``sitecustomize`` on its path; ours then imports the next one.
        others = environment.get("PYTHONPATH")
        folder = os.path.abspath(config.instrumentation)
        environment["PYTHONPATH"] = folder + os.pathsep + others if others else folder
    return environment


def thread_count(config: Config, quota: Optional[float], allowed: int, online: int) -> int:
    """Return the thread count that suits this replica: by its own limits, else by what the job file asks for.

    A cpuset that holds every CPU of the host limits nothing. The limits of a cgroup shared with other
    replicas apply to all of them together, so they only cap the count.
    """
    if config.threads:
        return config.threads
    limits = [] if quota is None else [math.ceil(quota)]
    restricted = bool(limits) or allowed < online
    if config.cpu_cores and not (config.own_cgroup and restricted):
        limits.append(math.ceil(config.cpu_cores))
    return max(1, min([*limits, allowed]))


# --- Parsers: text -> values, never raising ----------------------------------------------------------


def parse_integer(text: str) -> Optional[int]:
    """Parse one integer; None for anything else, including "max"."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if abs(value) < 2**64 else None


def parse_keyed(text: str, key: str) -> Optional[int]:
    """Read one key of a flat-keyed file: cpu.stat, memory.stat, memory.events (cgroup-v2.rst, cgroup-v1/)."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == key:
            return parse_integer(words[1])
    return None


def parse_quota(quota: str, period: str) -> Optional[float]:
    """Cores of cpu.max (cgroup-v2.rst) or cpu.cfs_quota_us, cpu.cfs_period_us (scheduler/sched-bwc.rst)."""
    quota_us, period_us = parse_integer(quota), parse_integer(period)
    if quota_us is None or period_us is None or quota_us <= 0 or period_us <= 0:
        return None
    return quota_us / period_us


def parse_limit(text: str) -> Optional[int]:
    """Bytes of memory.max or memory.limit_in_bytes (cgroup-v2.rst, cgroup-v1/memory.rst); None: no limit."""
    limit = parse_integer(text)
    return None if limit is None or not 0 <= limit < UNLIMITED else limit


def parse_cpus(text: str) -> FrozenSet[int]:
    """Parse the kernel's list format, ``0-3,8`` (cgroup-v2.rst, cpuset.cpus); empty for anything else."""
    cpus = set()  # type: Set[int]
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        low, high = parse_integer(first), parse_integer(last or first)
        if low is not None and high is not None and 0 <= low <= high < MAX_CPUS:
            cpus.update(range(low, high + 1))
    return frozenset(cpus)


def format_cpus(cpus: FrozenSet[int]) -> str:
    """Write CPUs in the kernel's list format."""
    spans = []  # type: List[List[int]]
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


class Mount(NamedTuple):
    """A line of /proc/self/mountinfo: which part of which file system is mounted where."""

    root: str
    point: str
    kind: str
    options: FrozenSet[str]


def parse_mounts(text: str) -> List[Mount]:
    """Read /proc/self/mountinfo (proc.rst, 3.5)."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(" "), right.split(" ")
        if len(words) >= 5 and len(kind) >= 3:
            root, point = (re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), w) for w in words[3:5])
            mounts.append(Mount(root, point, kind[0], frozenset(kind[2].split(","))))
    return mounts


def parse_cgroups(text: str) -> Dict[str, str]:
    """Parse /proc/self/cgroup: paths by controller; version 2's path is under "" (cgroup-v1/cgroups.rst)."""
    paths = {}
    for line in text.splitlines():
        words = line.split(":", 2)
        if len(words) == 3:
            paths.update({controller: words[2] for controller in words[1].split(",")})
    return paths


class Group(NamedTuple):
    """A cgroup's directory, and the topmost directory above it that is visible."""

    version: int
    directory: str
    top: str


def locate(controller: str, paths: Dict[str, str], mounts: List[Mount]) -> Optional[Group]:
    """Find the directory of our cgroup: in version 1 if it has the controller, else in version 2.

    In a container the mount shows only part of the tree, with the container's own cgroup at the mount point
    (cgroup-v2.rst, "Namespace"). Then our path does not lie below the mount's root, or is that root.
    """
    version = 1 if controller in paths else 2
    path = paths.get(controller if version == 1 else "")
    if path is None:
        return None
    below = Group(version, "", "")
    for mount in mounts:
        if not (
            mount.kind == "cgroup2"
            if version == 2
            else mount.kind == "cgroup" and controller in mount.options
        ):
            continue
        root = mount.root.rstrip("/")
        if ".." not in path and (path == root or path.startswith(root + "/")):
            return Group(version, (mount.point + path[len(root) :]).rstrip("/"), mount.point)
        below = Group(version, mount.point, mount.point)
    return below if below.top else None


def ancestry(group: Group) -> List[str]:
    """Return the cgroup's directory and its visible ancestors: a limit on any of them applies."""
    directories = [group.directory]
    while directories[-1] != group.top and directories[-1].startswith(group.top + "/"):
        directories.append(os.path.dirname(directories[-1]))
    return directories


class ProcessStat(NamedTuple):
    """Fields of one /proc/PID/stat."""

    parent: int
    cpu_ticks: int
    threads: int
    pages: int


def parse_process(text: str) -> Optional[ProcessStat]:
    """Parse /proc/PID/stat (proc.rst, table 1-4); cpu_ticks include children that it has reaped."""
    fields = text[text.rfind(")") + 1 :].split()[:22]
    values = [parse_integer(field) for field in fields[1:]]
    if len(values) < 21:
        return None
    parent, threads, pages = values[0], values[16], values[20]
    ticks = [value for value in values[10:14] if value is not None]
    if parent is None or threads is None or pages is None or len(ticks) < 4:
        return None
    return ProcessStat(parent, sum(ticks), threads, pages)


def parse_switches(text: str) -> Optional[Tuple[int, int]]:
    """Parse voluntary and involuntary switches from /proc/PID/task/TID/status (proc.rst, table 1-2)."""
    match = re.search(
        r"\nvoluntary_ctxt_switches:\t([0-9]{1,20})\nnonvoluntary_ctxt_switches:\t([0-9]{1,20})", text
    )
    return (int(match.group(1)), int(match.group(2))) if match else None


def parse_run_delay(text: str) -> Optional[float]:
    """Parse the seconds a thread waited for a core from /proc/PID/task/TID/schedstat (sched-stats.rst)."""
    words = [parse_integer(word) for word in text.split()]
    return words[1] * 1e-9 if len(words) >= 3 and words[1] is not None else None


def parse_network(text: str, interface: str) -> Optional[Tuple[int, int]]:
    """Parse the bytes that one interface received and sent from /proc/net/dev (proc.rst, 1.4)."""
    for line in text.splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == interface:
            words = [parse_integer(word) for word in counters.split()]
            if len(words) >= 9 and words[0] is not None and words[8] is not None:
                return words[0], words[8]
    return None


def parse_segments(text: str) -> Optional[Tuple[int, int]]:
    """Parse TCP segments from /proc/net/snmp: sent for the first time, and retransmitted (RFC 4022)."""
    values = _counters(text, "Tcp:")
    sent, again = (parse_integer(values.get(name, "")) for name in ("OutSegs", "RetransSegs"))
    return None if sent is None or again is None else (sent, again)


def parse_needless(text: str) -> Optional[int]:
    """Parse from /proc/net/netstat how many segments were retransmitted although the original had arrived.

    Receivers report it (DSACK, RFC 2883); before Linux 5.9 the kernel counts their reports, not segments.
    """
    values = _counters(text, "TcpExt:")
    return parse_integer(values.get("TCPDSACKRecvSegs", values.get("TCPDSACKRecv", "")))


def _counters(text: str, protocol: str) -> Dict[str, str]:
    """Parse a line of names and the line of their values; empty unless there are exactly these two lines."""
    rows = [line.split() for line in text.splitlines() if line.startswith(protocol)]
    return dict(zip(*rows)) if len(rows) == 2 else {}  # noqa: B905 - 3.6


def parse_busy(text: str, cpus: FrozenSet[int]) -> Optional[Tuple[int, int]]:
    """Sum the busy and stolen ticks of the CPUs in /proc/stat (proc.rst, 1.7); None if one CPU is missing.

    Stolen ticks are those in which the hypervisor ran something else although this machine had work to do.
    """
    names = {f"cpu{cpu}" for cpu in cpus}
    busy = stolen = 0
    for line in text.splitlines():
        words = line.split()
        if not words or not words[0].startswith("cpu"):
            break
        if words[0] in names:
            ticks = [parse_integer(words[i]) for i in (1, 2, 3, 6, 7) if i < len(words)]
            names.discard(words[0])
            busy += sum(tick for tick in ticks if tick is not None)
            stolen += (parse_integer(words[8]) if len(words) > 8 else None) or 0
    return (busy, stolen) if cpus and not names else None


def parse_gpus(text: str) -> Tuple[Optional[float], Optional[int]]:
    """Parse ``nvidia-smi``'s "percent, MiB" lines: mean utilization (0 to 1) and total bytes."""
    rows = [line.split(",") for line in text.splitlines() if line.count(",") == 1]
    shares = [share for share in (parse_integer(row[0]) for row in rows) if share is not None]
    sizes = [size for size in (parse_integer(row[1]) for row in rows) if size is not None]
    return (
        sum(shares) / len(shares) / 100 if shares else None,
        sum(sizes) * 2**20 if sizes else None,
    )


def visible_gpus(environment: Dict[str, str]) -> Optional[str]:
    """Return the GPUs that the command may use, in the form of ``nvidia-smi --id``; "": all; None: none."""
    value = environment.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return ""
    if value.strip() in ("", "-1", "NoDevFiles"):
        return None
    return value if re.match(r"^(\d+|GPU-[0-9a-f-]+)(,(\d+|GPU-[0-9a-f-]+))*$", value) else ""


def parse_report(line: bytes) -> Optional[Dict[str, Any]]:
    """Parse a line from the training script; None if it is no report. NaN becomes null: JSON has no NaN."""
    try:
        report = json.loads(
            line.decode("utf-8"), parse_constant=lambda _: None, parse_float=_finite, parse_int=_whole
        )
        json.dumps(report, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("type") not in REPORT_TYPES:
        return None
    return report


def _finite(text: str) -> Any:
    """Return a float, or the text itself if the value is not finite."""
    value = float(text)
    return value if math.isfinite(value) else text


def _whole(text: str) -> Any:
    """Return an integer, or the text itself if it is longer than any sensible number."""
    return int(text) if len(text) <= LONGEST_NUMBER else text


def mend_report(report: Dict[str, Any], now: float) -> List[str]:
    """Remove invalid numbers from a report; return what was wrong, one sentence each.

    A number written as text is converted. A time that is missing, invalid or more than a day off becomes the
    time of arrival.
    """
    faults = []
    number_fields = REPORT_NUMBERS.get(report["type"], ())
    for name in number_fields:
        if report.get(name) is not None:
            value = report[name]
            number = _number(value)
            if number is None or not (name in QUALITIES or 0 <= number < UNLIMITED):
                del report[name]
                faults.append("%s is no number that it can be: %s" % (name, _shown(value)))
            elif isinstance(value, str):
                report[name] = number
                faults.append("%s is a text, and read as a number: %s" % (name, _shown(value)))
    at = report.get("at")
    if at is not None and (_number(at) is None or isinstance(at, str) or abs(at - now) > DAY_SECONDS):
        faults.append("at is no time in Unix seconds: %s" % _shown(at))
        at = None
    report["at"] = now if at is None else at
    if number_fields and not any(name in report for name in number_fields):
        others = sorted(set(report) - {"type", "at", "source", "replica"})
        faults.append("%s: no field of it is known, only %s" % (report["type"], _shown(", ".join(others))))
    return faults


def _number(value: Any) -> Any:
    """Return a plausible number, also from text; None for anything else."""
    if isinstance(value, str):
        if len(value) > LONGEST_NUMBER:
            return None
        try:
            value = float(value) if re.search("[.eE]", value) else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value if abs(value) < MOST_QUALITY else None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:80] + "..."


# --- Reading the kernel's files -----------------------------------------------------------------------


class KeptFiles:
    """Reads files repeatedly through descriptors that stay open; one that fails is closed and forgotten."""

    def __init__(self) -> None:
        self._descriptors = {}  # type: Dict[str, int]
        self._room = min(KEPT_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    def read(self, path: str) -> Optional[str]:
        """Return the whole text, or None if it cannot be read (any more)."""
        descriptor = self._descriptors.get(path)
        try:
            if descriptor is None:
                descriptor = self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            chunks = [os.pread(descriptor, 1 << 16, 0)]
            length = len(chunks[0])
            while chunks[-1]:
                chunks.append(os.pread(descriptor, 1 << 16, length))
                length += len(chunks[-1])
        except OSError:
            self.forget(path)
            return None
        if len(self._descriptors) > self._room:
            self.forget(path)
        return b"".join(chunks).decode("utf-8", "surrogateescape")

    def forget(self, path: str) -> None:
        """Close the file if it is open."""
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


class CgroupReader:
    """Limits and counters of the agent's own cgroup, version 1 or 2; None for values that are missing."""

    def __init__(self, files: KeptFiles, paths: Dict[str, str], mounts: List[Mount]) -> None:
        self._files = files
        self._groups = {}  # type: Dict[str, Group]
        for controller in ("cpu", "cpuacct", "cpuset", "memory"):
            group = locate(controller, paths, mounts)
            if group is not None:
                found = group.directory if os.path.isdir(group.directory) else group.top
                self._groups[controller] = group._replace(directory=found)

    def _read(self, controller: str, first: str, second: str) -> Tuple[int, str]:
        group = self._groups.get(controller)
        if group is None:
            return 0, ""
        name = first if group.version == 1 else second
        return group.version, self._files.read(group.directory + "/" + name) or ""

    def _read_along(self, controller: str, first: str, second: str) -> List[str]:
        group = self._groups.get(controller)
        if group is None:
            return []
        name = first if group.version == 1 else second
        return [self._files.read(directory + "/" + name) or "" for directory in ancestry(group)]

    def cpu_limit(self) -> Optional[float]:
        """Return the limit in cores: the lowest quota along the path."""
        quotas = [text.split() for text in self._read_along("cpu", "cpu.cfs_quota_us", "cpu.max")]
        periods = [text.split() for text in self._read_along("cpu", "cpu.cfs_period_us", "cpu.max")]
        cores = [parse_quota(q[0], p[-1]) for q, p in zip(quotas, periods) if q and p]  # noqa: B905 - 3.6
        return min((limit for limit in cores if limit is not None), default=None)

    def cpus(self) -> FrozenSet[int]:
        """Return the CPUs that the cpuset allows; empty if unknown."""
        cpus = parse_cpus(self._read("cpuset", "cpuset.effective_cpus", "cpuset.cpus.effective")[1])
        return cpus or parse_cpus(self._read("cpuset", "cpuset.cpus", "cpuset.cpus")[1])

    def cpu_seconds(self) -> Optional[float]:
        """Return the CPU time used so far."""
        version, text = self._read("cpuacct", "cpuacct.usage", "cpu.stat")
        used = parse_integer(text) if version == 1 else parse_keyed(text, "usage_usec")
        return None if used is None else used / (1e9 if version == 1 else 1e6)

    def throttled_seconds(self) -> Optional[float]:
        """Return the time throttled so far."""
        version, text = self._read("cpu", "cpu.stat", "cpu.stat")
        time_ = parse_keyed(text, "throttled_time" if version == 1 else "throttled_usec")
        return None if time_ is None else time_ / (1e9 if version == 1 else 1e6)

    def memory_bytes(self) -> Optional[int]:
        """Return the working set: the memory used, minus page cache that can be dropped at once."""
        usage = parse_integer(self._read("memory", "memory.usage_in_bytes", "memory.current")[1])
        version, text = self._read("memory", "memory.stat", "memory.stat")
        cache = parse_keyed(text, "total_inactive_file" if version == 1 else "inactive_file")
        return None if usage is None else max(0, usage - (cache or 0))

    def memory_limit(self) -> Optional[int]:
        """Return the limit in bytes: the lowest limit along the path."""
        texts = self._read_along("memory", "memory.limit_in_bytes", "memory.max")
        return min((limit for limit in map(parse_limit, texts) if limit is not None), default=None)

    def oom_kills(self) -> Optional[int]:
        """Return how many processes of the cgroup the kernel has killed for memory."""
        return parse_keyed(self._read("memory", "memory.oom_control", "memory.events")[1], "oom_kill")


class ProcessTree:
    """The agent's descendants. The agent is their subreaper: they remain descendants if their parent ends."""

    def __init__(self, files: KeptFiles, root: int) -> None:
        self._files, self._root = files, root
        self._members = {}  # type: Dict[int, str]
        self._strangers = set()  # type: Set[int]
        self.ignored = set()  # type: Set[int]
        self.ended_seconds = 0.0

    def refresh(self) -> Dict[int, ProcessStat]:
        """Return the current descendants; parents are read first, so that no CPU time counts twice."""
        present = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
        self._strangers &= present
        unknown = {}  # type: Dict[int, int]
        for pid in sorted(present - self._strangers - set(self._members) - self.ignored - {self._root}):
            process = parse_process(self._files.read(f"/proc/{pid}/stat") or "")
            self._files.forget(f"/proc/{pid}/stat")
            if process is not None:
                unknown[pid] = process.parent
        size = -1
        while size != len(unknown):
            size = len(unknown)
            for pid, parent in list(unknown.items()):
                if parent == self._root or parent in self._members:
                    self._members[pid] = f"/proc/{pid}/stat"
                    del unknown[pid]
                elif parent == 0 or parent in self._strangers:
                    self._strangers.add(pid)
                    del unknown[pid]
        while True:
            size, found = len(self._members), {}
            for pid, path in list(self._members.items()):
                process = parse_process(self._files.read(path) or "")
                if process is None:
                    del self._members[pid]
                else:
                    found[pid] = process
            if len(found) == size:  # else one was reaped: its parent now has its time, so all are read again
                return found

    def send(self, number: int) -> int:
        """Send a signal to every descendant; return how many there were."""
        self._strangers.clear()
        self.ignored.clear()
        processes = self.refresh()
        for pid in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return len(processes)


class Scheduling(NamedTuple):
    """What the scheduler did with threads: context switches, and seconds they waited for a core."""

    voluntary: int
    involuntary: int
    run_delay_seconds: Optional[float]

    def since(self, before: "Scheduling") -> "Scheduling":
        """Return the rise since an earlier reading; the whole count if that reading was of another thread."""
        another = self.voluntary < before.voluntary or self.involuntary < before.involuntary
        old = _UNSCHEDULED if another else before
        delay = None
        if self.run_delay_seconds is not None:
            delay = max(0.0, self.run_delay_seconds - (old.run_delay_seconds or 0.0))
        return Scheduling(self.voluntary - old.voluntary, self.involuntary - old.involuntary, delay)


_UNSCHEDULED = Scheduling(0, 0, 0.0)


def total_scheduling(rises: List[Scheduling]) -> Scheduling:
    """Add up the rises of all threads; the wait is unknown only if it is unknown for every thread."""
    delays = [rise.run_delay_seconds for rise in rises]
    known = [delay for delay in delays if delay is not None]
    return Scheduling(
        sum(rise.voluntary for rise in rises),
        sum(rise.involuntary for rise in rises),
        round(sum(known), 6) if known else None,
    )


class SchedulingCounter:
    """Counts what the scheduler did with all threads between two readings.

    Each thread means reading two files. If that costs more than the budget, only one interval in several is
    measured, from end to end, and the others are None: a count is never extrapolated to unmeasured time. A
    thread counts from when it is first seen, which may be after it began.
    """

    def __init__(self, files: KeptFiles) -> None:
        self._files = files
        self._paths = {}  # type: Dict[int, List[str]]
        self._totals = None  # type: Optional[Dict[str, Scheduling]]
        self._resume_at = 0.0

    def _list(self, pid: int, count: int) -> List[str]:
        known = self._paths.get(pid, [])
        if len(known) != count:
            paths = []  # type: List[str]
            with contextlib.suppress(OSError):
                if count:
                    paths = [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
            for path in set(known) - set(paths):
                self._forget(path)
            self._paths[pid] = paths
        return list(self._paths[pid])

    def _forget(self, path: str) -> None:
        for name in ("status", "schedstat"):
            self._files.forget(f"{path}/{name}")

    def _read(self, path: str) -> Optional[Scheduling]:
        switches = parse_switches(self._files.read(f"{path}/status") or "")
        if switches is None:
            return None
        return Scheduling(*switches, parse_run_delay(self._files.read(f"{path}/schedstat") or ""))

    def count(self, processes: Dict[int, ProcessStat], now: float, interval: float) -> Optional[Scheduling]:
        """Return what the scheduler did since the last call, or None if that was not measured."""
        if now < self._resume_at:
            return None
        started = time.process_time()
        for pid in set(self._paths) - set(processes):
            self._list(pid, 0)
            del self._paths[pid]
        before, totals, rises = self._totals, {}, []
        for pid, process in processes.items():
            for path in self._list(pid, process.threads):
                found = self._read(path)
                if found is None:  # the thread has ended; its counts since the last reading are lost
                    self._paths[pid].remove(path)
                    continue
                totals[path] = found
                if before is not None and path in before:
                    rises.append(found.since(before[path]))
        cost = time.process_time() - started
        self._totals = totals
        if before is not None and cost > SWITCHES_BUDGET * interval:
            self._totals, self._resume_at = None, now + 2 * cost / SWITCHES_BUDGET - interval
        return None if before is None else total_scheduling(rises)


class GpuWatch:
    """Runs ``nvidia-smi`` from time to time, without ever waiting for it."""

    def __init__(self, environment: Dict[str, str]) -> None:
        program, gpus = shutil.which("nvidia-smi"), visible_gpus(environment)
        self._command = []  # type: List[str]
        if program and gpus is not None:
            query = "--query-gpu=utilization.gpu,memory.used"
            self._command = [
                program,
                query,
                "--format=csv,noheader,nounits",
                *(["--id=" + gpus] if gpus else []),
            ]
        self._process = None  # type: Optional[subprocess.Popen[bytes]]
        self._due, self._failures = 0.0, 0
        self._result = (None, None)  # type: Tuple[Optional[float], Optional[int]]

    @property
    def measures(self) -> bool:
        """Whether there is a GPU to query."""
        return bool(self._command)

    @property
    def pids(self) -> Set[int]:
        """The process of the running query, if any."""
        return set() if self._process is None else {self._process.pid}

    def poll(self, now: float) -> Tuple[Optional[float], Optional[int]]:
        """Return a result that arrived since the last call, once; start the next query when it is due."""
        if self._process is not None and now > self._due + 5 * GPU_SECONDS:
            os.kill(self._process.pid, signal.SIGKILL)
        elif self._process is None and self._command and now >= self._due and self._failures < 3:
            self._due = now + GPU_SECONDS
            try:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
            except OSError:
                self._failures = 3
        result, self._result = self._result, (None, None)
        return result

    def ended(self, pid: int) -> bool:
        """Take the result if this process was the query; it fits into the pipe, so reading does not block."""
        if self._process is None or self._process.pid != pid or self._process.stdout is None:
            return False
        self._result = parse_gpus(self._process.stdout.read().decode("utf-8", "replace"))
        self._failures = 0 if self._result != (None, None) else self._failures + 1
        self._process.stdout.close()
        self._process.returncode, self._process = 0, None
        return True


class Reading(NamedTuple):
    """Counters at one moment (monotonic and Unix seconds); a sample is the difference of two readings."""

    at: float
    time: float
    cpu_seconds: Optional[float]
    throttled_seconds: Optional[float]
    network: Optional[Tuple[int, int]]
    segments: Optional[Tuple[int, int]]
    needless_segments: Optional[int]
    cpus: FrozenSet[int]
    busy_ticks: Optional[int]
    stolen_ticks: Optional[int]


def next_due(due: float, now: float, interval: float) -> float:
    """Return when the next sample is due: on the grid of the last one, skipping samples that were missed."""
    return due + interval * (1 + max(0.0, (now - due) // interval))


def rise(before: Optional[float], after: Optional[float]) -> Optional[float]:
    """Return how much a counter rose; None if it fell or either reading is missing."""
    return None if before is None or after is None or after < before else after - before


class Sampler:
    """Measures what the replica uses, starting when this object is created: before the command starts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._files = KeptFiles()
        mounts = parse_mounts(self._files.read("/proc/self/mountinfo") or "")
        paths = parse_cgroups(self._files.read("/proc/self/cgroup") or "")
        self._faked_stat = any(mount.point == "/proc/stat" for mount in mounts)
        self._tick = os.sysconf("SC_CLK_TCK")
        self._scheduling = SchedulingCounter(self._files)
        self._gpus = None  # type: Optional[GpuWatch]
        self.cgroup = CgroupReader(self._files, paths, mounts)
        self.tree = ProcessTree(self._files, os.getpid())
        self.uses_cgroup = config.own_cgroup and self.cgroup.cpu_seconds() is not None
        self._last = self._read({})

    def threads(self) -> int:
        """Return the thread count for the command."""
        online = parse_cpus(self._files.read("/sys/devices/system/cpu/online") or "")
        return thread_count(self._config, self.cgroup.cpu_limit(), len(self.cpus()), len(online))

    def cpus(self) -> FrozenSet[int]:
        """Return the CPUs that this replica may use."""
        allowed = frozenset(os.sched_getaffinity(0))
        return allowed & self.cgroup.cpus() or allowed

    def cpu_limit(self) -> Optional[float]:
        """Return the CPU quota of this replica alone."""
        return self.cgroup.cpu_limit() if self._config.own_cgroup else None

    def begin(self, environment: Dict[str, str]) -> None:
        """Take the first reading of threads as soon as there are any: the command has just started."""
        self._gpus = GpuWatch(environment)
        self._scheduling.count(self.tree.refresh(), time.monotonic(), 0.0)

    def gpu_ended(self, pid: int) -> bool:
        """Return whether the ended process was the sampler's own GPU query."""
        return self._gpus is not None and self._gpus.ended(pid)

    def notes(self) -> List[str]:
        """Return what is not measured, and why."""
        own, limited = self._config.own_cgroup, self.cpu_limit() is not None
        reasons = [
            (not own, "throttling and limits: the cgroup is shared with others (own_cgroup is false)"),
            (
                own and not self.uses_cgroup,
                "cgroup: its files cannot be read; CPU and memory are the processes' sums",
            ),
            (own and not limited, "CPU limit: the cgroup sets none"),
            (self._config.interface is None, "network: no interface belongs to this replica alone"),
            (self._faked_stat, "neighbours: /proc/stat is not the host's"),
            (self._gpus is None or not self._gpus.measures, "GPU: no nvidia-smi, or no GPU is visible"),
        ]
        return [reason for applies, reason in reasons if applies]

    def _read(self, processes: Dict[int, ProcessStat]) -> Reading:
        if self.uses_cgroup:
            cpu_seconds = self.cgroup.cpu_seconds()
        else:
            ticks = sum(process.cpu_ticks for process in processes.values())
            cpu_seconds = self.tree.ended_seconds + ticks / self._tick
        cpus = self.cpus()
        stat = "" if self._faked_stat else self._files.read("/proc/stat") or ""
        busy_ticks, stolen_ticks = parse_busy(stat, cpus) or (None, None)
        interface = self._config.interface
        network = parse_network(self._files.read("/proc/net/dev") or "", interface) if interface else None
        snmp, netstat = (
            (self._files.read(f"/proc/net/{name}") if network else None) or "" for name in ("snmp", "netstat")
        )
        return Reading(
            at=time.monotonic(),
            time=time.time(),
            cpu_seconds=cpu_seconds,
            throttled_seconds=self.cgroup.throttled_seconds() if self._config.own_cgroup else None,
            network=network,
            segments=parse_segments(snmp),
            needless_segments=parse_needless(netstat),
            cpus=cpus,
            busy_ticks=busy_ticks,
            stolen_ticks=stolen_ticks,
        )

    def sample(self) -> Dict[str, Any]:
        """Return one sample line for the spool."""
        before, processes = self._last, self.tree.refresh()
        after = self._last = self._read(processes)
        scheduled = self._scheduling.count(processes, after.at, self._config.sample_seconds)
        interval = max(after.at - before.at, 1e-6)
        used = rise(before.cpu_seconds, after.cpu_seconds)
        counted = bool(before.busy_ticks) and before.cpus == after.cpus
        busy = rise(before.busy_ticks, after.busy_ticks) if counted else None
        stolen = rise(before.stolen_ticks, after.stolen_ticks) if counted else None
        neighbours = None if busy is None or used is None else max(0.0, (busy / self._tick - used) / interval)
        old, new = before.network or (None, None), after.network or (None, None)
        sent_before, again_before = before.segments or (None, None)
        sent, again = after.segments or (None, None)
        repeated = rise(again_before, again)
        needless = rise(before.needless_segments, after.needless_segments)
        utilization, gpu_memory = self._gpus.poll(after.at) if self._gpus else (None, None)
        self.tree.ignored = self._gpus.pids if self._gpus else set()
        pages = sum(process.pages for process in processes.values())
        return {
            "type": "sample",
            "at": after.time,
            "interval_seconds": round(interval, 6),
            "cpu_cores": None if used is None else round(used / interval, 6),
            "cpu_limit_cores": self.cpu_limit(),
            "throttled_seconds": rise(before.throttled_seconds, after.throttled_seconds),
            "memory_bytes": self.cgroup.memory_bytes()
            if self.uses_cgroup
            else pages * os.sysconf("SC_PAGE_SIZE"),
            "memory_limit_bytes": self.cgroup.memory_limit() if self._config.own_cgroup else None,
            "network_received_bytes": rise(old[0], new[0]),
            "network_sent_bytes": rise(old[1], new[1]),
            "sent_segments": rise(sent_before, sent),
            "retransmitted_segments": None if repeated is None else max(0, repeated - (needless or 0)),
            "voluntary_switches": scheduled.voluntary if scheduled else None,
            "involuntary_switches": scheduled.involuntary if scheduled else None,
            "run_delay_seconds": scheduled.run_delay_seconds if scheduled else None,
            "allowed_cpus": len(after.cpus),
            "threads": sum(process.threads for process in processes.values()),
            "neighbours_cpu_cores": None if neighbours is None else round(neighbours, 6),
            "stolen_cpu_cores": None if stolen is None else round(stolen / self._tick / interval, 6),
            "gpu_utilization": utilization,
            "gpu_memory_bytes": gpu_memory,
        }


# --- Files that the agent writes ----------------------------------------------------------------------


class Spool:
    """Appends JSON lines; after a line that was cut off, the next one begins on a new line.

    Attributes:
        error: why the last line could not be written.
        seen: the lines about the script itself, which stay true as long as it runs.
    """

    def __init__(self, path: str) -> None:
        self._path, self._descriptor, self._torn = path, -1, False
        self.error = ""
        self.seen = []  # type: List[bytes]

    def append(self, line: Dict[str, Any]) -> bool:
        """Write one line with one call; return False if it could not be written, and set ``error``."""
        data = b"\n" * self._torn + json.dumps(line, allow_nan=False).encode("ascii") + b"\n"
        try:
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o644)
            written = os.write(self._descriptor, data)
        except OSError as error:
            self.error = str(error)
            return False
        self._torn = written < len(data) and (written > 0 or self._torn)
        if written < len(data):
            self.error = "the disk is full"
        elif line["type"] in SEEN_TYPES and len(self.seen) < MOST_SEEN:
            self.seen.append(data.lstrip(b"\n"))
        return written == len(data)


class Reports:
    """Follows the training script's report file, from its end at the time the agent started.

    A script may itself report what the instrumentation also sees: then the script's own reports count.
    """

    def __init__(self, path: str, passed: Callable[[Dict[str, Any]], None]) -> None:
        self._path, self._offset, self._inode, self.rejected = path, 0, 0, 0
        self._passed = passed
        self._said = set()  # type: Set[str]  # what the script reports by itself
        self._faults = {}  # type: Dict[str, int]  # what was wrong with reports, and how often
        self.is_script_seen = False
        with contextlib.suppress(OSError):
            status = os.stat(path)
            self._offset, self._inode = status.st_size, status.st_ino

    def forward(self, spool: Spool, final: bool) -> None:
        """Forward new lines. Lines that the spool cannot take are left for the next call."""
        try:
            status = os.stat(self._path)
            if status.st_ino != self._inode or status.st_size < self._offset:
                self._offset, self._inode = 0, status.st_ino
            if status.st_size == self._offset:
                return
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read(REPORT_CHUNK_BYTES)
        except OSError:
            return
        for line in re.findall(rb"[^\n]*\n|[^\n]+", data):
            if not (line.endswith(b"\n") or final or len(line) == REPORT_CHUNK_BYTES):
                return
            now = time.time()
            report = parse_report(line)
            self.is_script_seen = self.is_script_seen or report is not None
            faults = [] if report is None else mend_report(report, now)
            if report is not None and not self._is_said(report):
                if not spool.append(report):
                    return
                self._passed(report)
            self._offset += len(line)
            if report is None and line.strip():
                self.rejected += 1
                faults.append(
                    "a line is no report: %s" % _shown(line[:200].decode("utf-8", "replace").strip())
                )
            self._tell(spool, faults, now)

    def _tell(self, spool: Spool, faults: List[str], now: float) -> None:
        """Report what is wrong with reports: the first, tenth, hundredth ... fault of each kind."""
        for fault in faults:
            kind = fault.partition(": ")[0]
            if kind in self._faults or len(self._faults) < MOST_FAULTS:
                count = self._faults[kind] = self._faults.get(kind, 0) + 1
                if re.match("10*$", str(count)):
                    often = "" if count == 1 else " (%d times so far)" % count
                    spool.append({"type": "misread", "at": now, "message": fault + often})

    def _is_said(self, report: Dict[str, Any]) -> bool:
        """Return whether the script itself reports what the instrumentation has seen."""
        if report.get("source") != "instrumentation":
            self._said.add(report["type"])
            return False
        return report["type"] in self._said


class ExitFile:
    """Writes the exit reason whole or not at all. Its space is reserved early: the disk may fill up."""

    def __init__(self, path: str) -> None:
        self._path, self._temporary = path, path + ".tmp"
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            self._write(b" " * EXIT_FILE_BYTES)

    def _write(self, data: bytes) -> None:
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError("the disk is full")
            os.ftruncate(descriptor, len(data))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write(self, reason: Dict[str, Any]) -> None:
        """Put the reason in its place; OSError if that fails."""
        data = json.dumps(reason).encode("ascii") + b"\n"
        if os.path.exists(self._path):  # it could not be removed: a container has mounted the file there
            with open(self._path, "wb") as file:
                file.write(data)
            return
        self._write(data)
        os.rename(self._temporary, self._path)


# --- What the agent answers to clients ----------------------------------------------------------------


class Metric(NamedTuple):
    """A Prometheus metric, and the fields of spool lines that it is made of, by additional labels."""

    name: str
    kind: str
    about: str
    fields: Dict[str, str]


#: By the type of the spool line. Counters add up the lines' values per interval, gauges keep the last value;
#: notes carry totals so far.
METRICS = {
    "sample": (
        Metric("paceline_replica_cpu_seconds", "counter", "CPU time used.", {"": "cpu_seconds"}),
        Metric("paceline_replica_cpu_limit_cores", "gauge", "CPU quota.", {"": "cpu_limit_cores"}),
        Metric("paceline_replica_throttled_seconds", "counter", "Time throttled.", {"": "throttled_seconds"}),
        Metric("paceline_replica_memory_bytes", "gauge", "Working set.", {"": "memory_bytes"}),
        Metric("paceline_replica_memory_limit_bytes", "gauge", "Memory limit.", {"": "memory_limit_bytes"}),
        Metric(
            "paceline_replica_network_receive_bytes",
            "counter",
            "Bytes received.",
            {"": "network_received_bytes"},
        ),
        Metric(
            "paceline_replica_network_transmit_bytes", "counter", "Bytes sent.", {"": "network_sent_bytes"}
        ),
        Metric("paceline_replica_sent_segments", "counter", "TCP segments sent anew.", {"": "sent_segments"}),
        Metric(
            "paceline_replica_retransmitted_segments",
            "counter",
            "TCP segments sent again.",
            {"": "retransmitted_segments"},
        ),
        Metric(
            "paceline_replica_context_switches",
            "counter",
            "Context switches while they were counted.",
            {'kind="voluntary"': "voluntary_switches", 'kind="involuntary"': "involuntary_switches"},
        ),
        Metric(
            "paceline_replica_run_delay_seconds",
            "counter",
            "Time for which threads waited for a core, while it was measured.",
            {"": "run_delay_seconds"},
        ),
        Metric("paceline_replica_threads", "gauge", "Threads of all processes.", {"": "threads"}),
        Metric(
            "paceline_replica_neighbours_cpu_cores",
            "gauge",
            "CPU that others used on the CPUs that this replica may use.",
            {"": "neighbours_cpu_cores"},
        ),
        Metric(
            "paceline_replica_stolen_cpu_cores",
            "gauge",
            "What the hypervisor gave to others of the CPUs that this replica may use, though they had work.",
            {"": "stolen_cpu_cores"},
        ),
        Metric(
            "paceline_replica_gpu_utilization_ratio", "gauge", "GPU load, 0 to 1.", {"": "gpu_utilization"}
        ),
        Metric("paceline_replica_gpu_memory_bytes", "gauge", "GPU memory used.", {"": "gpu_memory_bytes"}),
        Metric("paceline_replica_sampled_timestamp_seconds", "gauge", "When it was measured.", {"": "at"}),
    ),
    "step": (
        Metric("paceline_training_steps", "counter", "Steps of this replica.", {"": "steps"}),
        Metric("paceline_training_examples", "counter", "Examples of this replica.", {"": "examples"}),
        Metric(
            "paceline_training_input_wait_seconds",
            "counter",
            "Time waited for input.",
            {"": "input_wait_seconds"},
        ),
        Metric(
            "paceline_training_input_cpu_seconds",
            "counter",
            "CPU time of the threads that read and decode input.",
            {"": "input_cpu_seconds"},
        ),
        Metric(
            "paceline_training_all_reduce_seconds",
            "counter",
            "Time waited for the gradients of other ranks.",
            {"": "all_reduce_seconds"},
        ),
        Metric("paceline_training_global_step", "gauge", "Step of the whole job.", {"": "step"}),
        Metric("paceline_training_planned_steps", "gauge", "Steps that there will be.", {"": "total_steps"}),
        Metric("paceline_training_loss", "gauge", "Loss as last reported.", {"": "loss"}),
        Metric("paceline_training_reported_timestamp_seconds", "gauge", "When it reported.", {"": "at"}),
    ),
    "evaluation": (
        Metric("paceline_training_evaluated_step", "gauge", "Step of the evaluation.", {"": "step"}),
        Metric("paceline_training_auc", "gauge", "AUC as last evaluated.", {"": "auc"}),
        Metric("paceline_training_log_loss", "gauge", "Log loss as last evaluated.", {"": "log_loss"}),
        Metric("paceline_training_accuracy", "gauge", "Accuracy as last evaluated.", {"": "accuracy"}),
    ),
    "note": (
        Metric("paceline_agent_dropped_lines", "counter", "Lines not written.", {"": "dropped_lines"}),
        Metric("paceline_agent_rejected_reports", "counter", "Reports rejected.", {"": "rejected_reports"}),
        Metric("paceline_agent_failed_samples", "counter", "Samples failed.", {"": "failed_samples"}),
    ),
}  # type: Dict[str, Tuple[Metric, ...]]


def measured(value: Any) -> Optional[float]:
    """Return a finite number for exposition, or None: scripts may report anything."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Metrics:
    """What spool lines have said so far, in Prometheus format.

    Names follow https://prometheus.io/docs/practices/naming, the text follows exposition format 0.0.4. A
    metric that was never measured is left out.
    """

    def __init__(self, config: Config) -> None:
        owner = (config.job, config.role, config.index, config.attempt)
        pairs = zip(("job", "role", "index", "attempt"), owner)  # noqa: B905 - 3.6
        self._labels = ",".join(
            f"{name}={json.dumps(str(value), ensure_ascii=False)}" for name, value in pairs
        )
        self._values = {}  # type: Dict[Tuple[str, str], float]
        self.take({"type": "note", "dropped_lines": 0, "rejected_reports": 0, "failed_samples": 0})

    def take(self, line: Dict[str, Any]) -> None:
        """Add what a line says."""
        fields = dict(line)
        used, interval = measured(line.get("cpu_cores")), measured(line.get("interval_seconds"))
        if used is not None and interval is not None:
            fields["cpu_seconds"] = used * interval
        values = dict(self._values)  # replaced as a whole, since another thread reads it
        for metric in METRICS.get(line["type"], ()):
            for labels, field in metric.fields.items():
                value = measured(fields.get(field))
                if value is None:
                    continue
                if metric.kind == "counter" and line["type"] != "note":
                    value = values.get((metric.name, labels), 0.0) + max(0.0, value)
                values[metric.name, labels] = value
        self._values = values

    def text(self) -> str:
        """Return all metrics as text."""
        values, lines = self._values, []
        for metric in (metric for metrics in METRICS.values() for metric in metrics):
            name = metric.name + "_total" * (metric.kind == "counter")
            found = [labels for labels in metric.fields if (metric.name, labels) in values]
            if found:
                lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}"]
            for labels in found:
                every = ",".join(filter(None, (self._labels, labels)))
                lines.append("%s{%s} %r" % (name, every, values[metric.name, labels]))
        return "\n".join(lines) + "\n"


class Request(NamedTuple):
    """An HTTP request of a client."""

    method: str
    path: str
    query: Dict[str, str]
    token: str = ""

    def number(self, name: str) -> Optional[int]:
        """Return a non-negative integer of the query; None if it has none by this name."""
        value = self.query.get(name, "")
        return int(value) if re.match(r"^[0-9]{1,18}$", value) else None

    def promised_seconds(self) -> Optional[float]:
        """Return within how many seconds a reader of the spool promises to ask again; None: no promise."""
        again = self.number("again")
        if self.path != "/spool" or again is None or self.number("offset") is None:
            return None
        return float(again)


def parse_request(data: bytes) -> Optional[Request]:
    """Parse the request line of HTTP/1 (RFC 9112, 3) and the token; None if it is no HTTP."""
    match = re.match(rb"^([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[0-9]\r?\n", data)
    if match is None:
        return None
    path, _, query = match.group(2).decode("ascii").partition("?")
    given = TOKEN_HEADER.search(data)
    token = "" if given is None else given.group(1).decode("ascii")
    return Request(match.group(1).decode("ascii"), path, dict(urllib.parse.parse_qsl(query)), token)


#: Kubernetes' API server uses ``Authorization`` itself, so requests proxied by it have another header.
TOKEN_HEADER = re.compile(
    rb"(?im)^(?:authorization:[ \t]*bearer[ \t]|paceline-token:)[ \t]*([!-~]+)[ \t]*\r?$"
)


class Stretch:
    """A section of a file, sent piece by piece after a head."""

    def __init__(self, head: bytes, file: Any, length: int) -> None:
        self._head, self._file, self._length = head, file, length

    def __len__(self) -> int:
        return len(self._head) + self._length

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it; less than its length if the file has become shorter meanwhile."""
        yield self._head
        left = self._length
        while left > 0:
            piece = self._file.read(min(left, PIECE_BYTES))
            if not piece:
                return
            left -= len(piece)
            yield piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()


Answer = Tuple[int, str, Union[bytes, Stretch]]
STATUSES = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 413: "Content Too Large",
}  # fmt: skip
NOTHING = (404, "text/plain", b"there is no such thing\n")  # type: Answer
NOT_ALLOWED = (401, "text/plain", b"the token of the job is needed (docs/agent-protocol.md)\n")  # type: Answer


def read_token(path: Optional[str]) -> Optional[str]:
    """Return the token that clients need; None: none is needed; empty: unreadable, so no client has it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return file.read(TOKEN_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        say("%s cannot be read (%s): nothing but metrics is answered" % (path, error))
        return ""


def is_same(one: str, other: str) -> bool:
    """Compare two secrets without the time showing where they differ; importing hmac would load OpenSSL."""
    first, second = one.encode("utf-8"), other.encode("utf-8")
    difference = len(first) ^ len(second)
    for mine, theirs in zip(first, second):  # noqa: B905 - 3.6
        difference |= mine ^ theirs
    return not difference


def open_file(path: str) -> Tuple[Any, int]:
    """Open a regular file and return it and its size; no pipe or device that a script put in its place."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file")
    return os.fdopen(descriptor, "rb"), status.st_size


TRACE_NAME = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z"
TRACE_PATH = re.compile(r"^/traces(?:/(%s)(?:/([a-z]+-\d+\.\d+\.(?:parquet|zip|profile)))?)?$" % TRACE_NAME)
#: Content of the request file: the name of a trace, for how many milliseconds servers are to be profiled for
#: it, and the start time (Unix seconds). All servers start at the same time, so that their profiles show the
#: same steps.
TRACE_REQUEST = re.compile(
    r"^(%s) profile (\d{1,5})(?: (\d{1,12}(?:\.\d{1,3})?))?( everywhere)?\s*$" % TRACE_NAME
)
LONGEST_LEAD_SECONDS = 10.0


def own_port(config: Config) -> Optional[int]:
    """Return the port at which others look for this replica; None: it has none."""
    own = config.cluster.get(config.role, [])
    port = own[config.index].rpartition(":")[2] if config.index < len(own) else ""
    return int(port) if port.isdigit() else None


def server_port(config: Config) -> Optional[int]:
    """Return that port if a TensorFlow server has to listen there; None: a coordinator has no such server."""
    serves = config.framework == "tensorflow" and config.role in ("ps", "worker")
    return own_port(config) if serves and any(config.cluster.get("ps", [])) else None


class Profiles:
    """Profiles this replica's server on request, in a thread of its own.

    A coordinator asks for profiles ``everywhere``. Agents that are reached over the network do not see the
    folder in which it asks, so the coordinator's agent passes the request on to them.
    """

    def __init__(self, config: Config) -> None:
        run = config.placeholders.get("run_dir", "")
        self._traces = os.path.join(run, "traces") if run else None
        self._port = own_port(config)
        self._replica = "%s-%d.%d" % (config.role, config.index, config.attempt)
        self._asked, self._thread = (), None  # type: Tuple[Any, ...], Optional[threading.Thread]
        self._problems, self._problem = set(), None  # type: Set[str], Optional[str]
        self._pages_port = config.metrics_port if config.role == "chief" else None
        self._token_file = config.token_file
        self._others = [
            address.rpartition(":")[0]
            for role, addresses in sorted(config.cluster.items())
            for index, address in enumerate(addresses)
            if (role, index) != (config.role, config.index) and role != "evaluator"
        ]

    def tick(self) -> Optional[str]:
        """Look for a request; return what has gone wrong since the last call, each kind of problem once."""
        if self._traces is not None and self._port is not None:
            self._begin(self._traces, self._port)
        problem, self._problem = self._problem, None
        if problem is None or problem in self._problems:
            return None
        self._problems.add(problem)
        return problem

    def _begin(self, traces: str, port: int) -> None:
        try:
            with open(os.path.join(traces, "request")) as file:
                text = file.read(100)
        except (OSError, UnicodeDecodeError):
            return
        request = TRACE_REQUEST.match(text)
        if request is None or (self._thread and self._thread.is_alive()):
            return
        name, milliseconds, at, everywhere = request.groups()
        if (name, milliseconds, at) == self._asked:
            return
        self._asked = name, milliseconds, at
        if everywhere and self._pages_port is not None:
            path = "/traces/{}?profile={}&at={}".format(name, milliseconds, at or "0")
            arguments = (self._others, self._pages_port, path, read_token(self._token_file))
            threading.Thread(target=self._pass_on, args=arguments, daemon=True).start()
        wait = max(0.0, min(float(at or 0) - time.time(), LONGEST_LEAD_SECONDS))
        taken = (wait, port, traces, name, self._replica, int(milliseconds))
        self._thread = threading.Thread(target=self._take, args=taken, daemon=True)
        self._thread.start()

    def _pass_on(self, *arguments: Any) -> None:
        """Ask the other agents; report once if some cannot be asked."""
        self._problem = load("passing").ask(*arguments) or self._problem

    def _take(self, wait: float, *arguments: Any) -> None:
        profiler = load("profiler")
        time.sleep(wait)
        try:
            profiler.keep(*arguments)
        except profiler.ProfilerError as error:
            self._problem = str(error)


def load(name: str) -> Any:
    """Load a rarely needed module from beside this file; it is on no module path."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("paceline_" + name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Pages:
    """The answers to clients: metrics for all; spool, traces and variables for those with the job's token.

    A request for only the end of the spool also gets the earlier lines about the script (``seen``), in front.
    """

    def __init__(self, config: Config, metrics: Metrics, seen: Sequence[bytes] = ()) -> None:
        self._metrics, self._spool, self._seen = metrics, config.spool, seen
        self._run = config.placeholders.get("run_dir", "")
        self._linger_seconds = config.linger_seconds
        self._token = read_token(config.token_file) if config.metrics_port is not None else None
        self._read_to, self._expected_until = 0, -math.inf
        self._last_came, self._hearing = -math.inf, threading.Lock()
        self._request_until = self._left_until()

    def _left_until(self) -> float:
        """Return when to remove a request that already exists; never if there is none.

        An earlier agent of this replica may have left it. Or it is new: a trace may be requested while an
        agent starts, and on one machine all replicas share the folder.
        """
        try:
            left = os.stat(os.path.join(self._run, "traces", "request")).st_mtime
        except OSError:
            return math.inf
        return time.monotonic() + left + TRACE_REQUEST_SECONDS - time.time()

    def answer(self, request: Request) -> Answer:
        """Return status, content type and body."""
        if request.path == "/metrics" and request.method == "GET":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.text().encode("utf-8")
        if not self.admits(request):
            return NOT_ALLOWED
        trace = TRACE_PATH.match(request.path)
        if request.method == "POST" and trace and trace.group(1) and not trace.group(2):
            wanted = trace.group(1)
            if request.number("profile") is not None:
                wanted += " profile {} {}".format(request.query["profile"], request.query.get("at", "0"))
            return self._ask(wanted)
        if request.method != "GET":
            return 405, "text/plain", b"only GET, and POST /traces/NAME\n"
        if request.path == "/spool":
            return self._page(request)
        if request.path == "/variables.json":
            return self._file("variables.json")
        if trace and trace.group(2):
            return self._file(os.path.join("traces", trace.group(1), trace.group(2)))
        if trace:
            return self._names(os.path.join("traces", trace.group(1) or ""))
        return NOTHING

    def admits(self, request: Request) -> bool:
        """Return whether a request has the job's token; a job without one admits all who reach the port."""
        return self._token is None or (bool(self._token) and is_same(request.token, self._token))

    def _page(self, request: Request) -> Answer:
        """Return a section of the spool after a line that says where it begins."""
        offset, last = request.number("offset") or 0, request.number("last")
        promised = request.promised_seconds()
        if promised is not None:  # set now: this answer may be the last event before the command ends
            self._expected_until = time.monotonic() + min(promised, self._linger_seconds)
        try:
            file, size = open_file(self._spool)
        except FileNotFoundError:
            return 200, "application/x-ndjson", page_head(offset, 0)
        if last is None:
            file.seek(offset)
            stretch = Stretch(page_head(offset, size), file, max(0, min(PAGE_BYTES, size - offset)))
            return 200, "application/x-ndjson", stretch
        with file:
            if last < size:
                offset = file.seek(size - last - 1)
                offset += len(file.readline(PAGE_BYTES))
            file.seek(offset)
            data = file.read(PAGE_BYTES)
        before = b"".join(line for line in tuple(self._seen) if line not in data)
        return 200, "application/x-ndjson", page_head(offset - len(before), size) + before + data

    def _file(self, name: str) -> Answer:
        try:
            file, size = open_file(os.path.join(self._run, name))
        except OSError:
            return NOTHING
        if size > FILE_BYTES:
            file.close()
            return 413, "text/plain", b"the file is too large\n"
        return 200, "application/octet-stream", Stretch(b"", file, size)

    def _names(self, folder: str) -> Answer:
        try:
            with os.scandir(os.path.join(self._run, folder)) as entries:
                names = sorted(each.name for each in itertools.islice(entries, MOST_NAMES))
            names = [name for name in names if name[:1] != "."]
        except OSError:
            names = []
        return 200, "application/json", json.dumps(names).encode("ascii")

    def _ask(self, wanted: str) -> Answer:
        """Write a request for a trace where trainers and `Profiles` look for it."""
        path = os.path.join(self._run, "traces", "request")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".agent", "w") as file:
                file.write(wanted + "\n")
            os.rename(path + ".agent", path)
        except OSError as error:
            return 400, "text/plain", f"{path} cannot be written: {error}\n".encode("utf-8", "replace")
        self._request_until = time.monotonic() + TRACE_REQUEST_SECONDS
        return 202, "application/json", b"{}"

    def tidy(self, now: float) -> None:
        """Remove a request for a trace after a time by which every trainer has seen it.

        The request is not meant for trainers that start later.
        """
        if now >= self._request_until:
            self._request_until = math.inf
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._run, "traces", "request"))

    def heard(self, request: Request, came: float) -> None:
        """Note that an answer has arrived: a reader that asks from an offset has everything before it.

        Of two answers to one reader the later may be noted first, by another thread: the request that came
        last counts.
        """
        with self._hearing:
            if request.promised_seconds() is not None and came >= self._last_came:
                self._last_came, self._read_to = came, request.number("offset") or 0

    def is_awaited(self, now: float) -> bool:
        """Return whether a reader that promised to return has not yet read the whole spool."""
        try:
            return now < self._expected_until and self._read_to < os.path.getsize(self._spool)
        except OSError:
            return False


def page_head(offset: int, size: int) -> bytes:
    """Return the line that says where a section of the spool begins."""
    head = {"type": "page", "at": time.time(), "offset": offset, "size": size}
    return json.dumps(head).encode("ascii") + b"\n"


class Server:
    """Answers on a port, in a few threads that each handle one request at a time.

    The standard library's ``http.server`` would take 7 MB and 60 ms in each replica. The cost of clients is
    bounded by: the number of threads, the bytes of a request, the time until its answer is sent, how much of
    the answer is in memory, and the answers per second.
    """

    def __init__(self, port: int, pages: Pages) -> None:
        """Listen; OSError if that fails."""
        self._pages = pages
        try:
            self._socket = socket.socket(socket.AF_INET6)
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self._listen("::", port)
        except OSError:
            self._socket = socket.socket(socket.AF_INET)
            self._listen("", port)

    def _listen(self, host: str, port: int) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            self._socket.listen(16)
        except OSError:
            self._socket.close()
            raise

    def start(self) -> None:
        """Start the threads that answer."""
        for _ in range(SERVER_THREADS):
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                connection, _ = self._socket.accept()
                with contextlib.closing(connection):
                    self._converse(connection)
            time.sleep(PAUSE_SECONDS)

    def _converse(self, connection: socket.socket) -> None:
        came, data = time.monotonic(), b""
        until = came + REQUEST_SECONDS
        while b"\r\n\r\n" not in data and len(data) < REQUEST_BYTES:
            connection.settimeout(max(0.01, until - time.monotonic()))
            chunk = connection.recv(REQUEST_BYTES)
            if not chunk or time.monotonic() >= until:
                return
            data += chunk
        request = parse_request(data)
        status, kind, body = self._pages.answer(request) if request else (400, "text/plain", b"no HTTP\n")
        head = (
            f"HTTP/1.1 {status} {STATUSES[status]}\r\nContent-Type: {kind}\r\n"
            + ("WWW-Authenticate: Bearer\r\n" if status == 401 else "")
            + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        until += len(body) / SLOWEST_BYTES
        stretch = Stretch(body, io.BytesIO(), 0) if isinstance(body, bytes) else body
        with contextlib.closing(stretch):
            for piece in itertools.chain([head.encode("ascii")], stretch.pieces()):
                connection.settimeout(max(0.01, until - time.monotonic()))
                connection.sendall(piece)
        if request and status == 200:
            self._pages.heard(request, came)


# --- The life of the command --------------------------------------------------------------------------


def say(message: str) -> None:
    """Write a message to the replica's log."""
    with contextlib.suppress(OSError):
        os.write(2, f"paceline-agent: {message}\n".encode("utf-8", "backslashreplace"))


def load_prctl() -> Optional[Callable[[int, int], int]]:
    """Return Linux's prctl(2), or None if the C library cannot be reached."""
    try:
        import ctypes

        prctl, zero = ctypes.CDLL(None).prctl, ctypes.c_ulong(0)
    except (ImportError, OSError, AttributeError):
        return None
    return lambda option, argument: int(prctl(option, ctypes.c_ulong(argument), zero, zero, zero))


def launch(command: List[str], environment: Dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start the command so that it dies with the agent; OSError if it cannot be run."""
    prctl, agent = load_prctl(), os.getpid()

    def tie() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != agent:
            os._exit(1)

    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    return subprocess.Popen(command, env=environment, preexec_fn=tie)


def launch_failure(command: List[str], error: OSError) -> Tuple[int, str]:
    """Return the exit code that a shell would use, and a message that says what to do."""
    program = command[0]
    if isinstance(error, FileNotFoundError):
        reason = "not found (or the interpreter that its first line names is not)"
    else:
        reason = f"cannot be run ({error.strerror})"
    hint = ""
    if error.errno == errno.E2BIG:
        hint = ". A word or a variable has 128 KiB or more, or all together are too long: use a file"
    elif len(command) == 1 and " " in program.strip():
        hint = '. It is one word with spaces in it and no shell runs it: give a list, or ["sh", "-c", "..."]'
    return 127 if isinstance(error, FileNotFoundError) else 126, f"{program!r} {reason}{hint}"


def exit_reason(code: int, number: Optional[int], orphaned: bool, out_of_memory: bool) -> Tuple[str, str]:
    """Return the kind and the message for a command that ran."""
    how = f"the command ended with code {code}" if number is None else f"signal {number} ended the command"
    if orphaned:
        return "orphaned", "no supervisor was there for too long; " + how
    if code == 0:
        return "completed", how
    if out_of_memory:
        return "out-of-memory", "the kernel killed a process of this replica for memory; " + how
    return ("error" if number is None else "signal"), how


def has_no_supervisor(lock: str) -> bool:
    """Return whether no process holds the lock. A missing file counts as held: it shows nothing."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


class Signals:
    """Turns signals into numbers that can be waited for."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float) -> bytes:
        """Return the signals that came, after at most this many seconds."""
        select.select([self._reader], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            return os.read(self._reader, 4096)
        return b""


class Agent:
    """Runs the command once, from its start to the exit file."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._signals = Signals()
        self._metrics = Metrics(config)
        self._spool, self._reports = Spool(config.spool), Reports(config.reports, self._metrics.take)
        self._pages = Pages(config, self._metrics, self._spool.seen)
        self._profiles = Profiles(config)
        self._exit_file = ExitFile(config.exit)
        self._sampler = Sampler(config)
        self._oom_kills = self._sampler.cgroup.oom_kills()
        self._pid = 0
        self._status = None  # type: Optional[int]
        self._stop_kind = ""
        self._grace_until = self._kill_at = math.inf
        self._supervised_at = time.monotonic()
        self._dropped = self._failed_samples = 0
        self._noted, self._note_due = (0, 0, 0), 0.0
        self._explain_due = self._supervised_at + UNSEEN_SECONDS
        self._oddities = None  # type: Any
        self._began, self._look_due = self._supervised_at, self._supervised_at + LOOK_SECONDS

    def run(self) -> int:
        """Run the command and return the agent's own exit code."""
        threads = self._sampler.threads()
        environment = command_environment(self._config, threads, dict(os.environ))
        values = placeholder_values(self._config, threads)
        command = [fill(word, values) for word in self._config.command]
        server, notes = self._listen()
        try:
            process = launch(command, environment)
        except (OSError, ValueError) as error:
            failure = error if isinstance(error, OSError) else OSError(0, str(error))
            code, message = launch_failure(command, failure)
            say(message)
            return self._finish("launch-failed", code, None, message)
        self._pid = process.pid
        self._sampler.begin(environment)
        self._write(self._started(threads, notes))
        if server is not None:  # only now: a process with threads must not fork
            server.start()
        self._watch()
        status = self._status or 0
        process.returncode = status
        self._end_strays()
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if number is None else 128 + number
        kind, message = exit_reason(code, number, self._stop_kind == "orphaned", self._out_of_memory(code))
        return self._finish(kind, code, number, message + (self._taken_port() if kind == "error" else ""))

    def _taken_port(self) -> str:
        """Return text that names another process on the replica's port, if any: no server can start there."""
        port = server_port(self._config)
        holder = None if port is None else load("oddities").holder(port)
        return "" if holder is None else f"; its port {port} is taken by {holder}"

    def _listen(self) -> Tuple[Optional[Server], List[str]]:
        port = self._config.metrics_port
        if port is None:
            return None, []
        try:
            return Server(port, self._pages), []
        except (OSError, OverflowError) as error:
            return None, [f"metrics: nothing answers on port {port} ({error})"]

    def _started(self, threads: int, notes: List[str]) -> Dict[str, Any]:
        return {
            "type": "started",
            "at": time.time(),
            "pid": self._pid,
            "threads": threads,
            "cpu_limit_cores": self._sampler.cpu_limit(),
            "cpuset": format_cpus(self._sampler.cpus()),
            "notes": self._sampler.notes() + notes,
        }

    def _watch(self) -> None:
        interval = max(0.02, self._config.sample_seconds)
        due = time.monotonic() + interval
        while self._status is None:
            now = time.monotonic()
            if now >= self._kill_at:
                self._sampler.tree.send(signal.SIGKILL)
                self._kill_at = now + 1.0
            if now >= due:
                self._tick(now)
                due = next_due(due, now, interval)
            for number in self._signals.wait(min(due, self._kill_at) - time.monotonic()):
                if number in (signal.SIGTERM, signal.SIGINT):
                    self._stop("signal", f"signal {number}: ending the command")
            self._reap()

    def _tick(self, now: float) -> None:
        lock = self._config.supervisor_lock
        if lock is None or not has_no_supervisor(lock):
            self._supervised_at = now
        elif now - self._supervised_at >= self._config.orphan_seconds:
            self._stop("orphaned", f"no supervisor for {now - self._supervised_at:.0f} s: ending the command")
        try:
            self._write(self._sampler.sample())
            self._reports.forward(self._spool, final=False)
            self._note(now)
            self._pages.tidy(now)
            self._profile()
            self._explain(now)
            self._look(now)
        except Exception:  # noqa: BLE001 - a failed measurement must not end a training
            self._failed_samples += 1
            if self._failed_samples == 1:
                say("a sample failed; further failures are only counted\n" + traceback.format_exc())

    def _profile(self) -> None:
        """Have the server profiled if that was requested, and report why it cannot be."""
        problem = self._profiles.tick()
        if problem is not None:
            message = "its profiler: " + problem
            self._write({"type": "instrumentation", "at": time.time(), "message": message})

    def _explain(self, now: float) -> None:
        """Report why the instrumentation sees nothing of a trainer, if a reason can be found."""
        folder = self._config.instrumentation
        if folder is None or self._config.role not in ("chief", "worker") or self._reports.is_script_seen:
            return
        if now < self._explain_due:
            return
        self._explain_due = now + UNSEEN_SECONDS
        reason = load("unseen").reason(os.path.abspath(folder), self._sampler.tree.refresh())
        if reason is not None:
            self._explain_due = math.inf
            message = "its steps are not seen: " + reason
            self._write({"type": "instrumentation", "at": time.time(), "message": message})

    def _look(self, now: float) -> None:
        """Report what the command does that its exit code will not show."""
        if now < self._look_due:
            return
        self._look_due = now + LOOK_SECONDS
        if self._oddities is None:
            self._oddities = load("oddities").Watch(
                self._config.reports, self._began, port=server_port(self._config)
            )
        for line in self._oddities.look(now, self._sampler.tree.refresh):
            self._write(line)

    def _stop(self, kind: str, message: str) -> None:
        if self._stop_kind:
            return
        say(message)
        self._stop_kind = kind
        self._grace_until = self._kill_at = time.monotonic() + self._config.grace_seconds
        os.kill(self._pid, signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status
            if not self._sampler.gpu_ended(pid):
                self._sampler.tree.ended_seconds += usage.ru_utime + usage.ru_stime

    def _say_left(self) -> None:
        """Report processes still running after the command ended by itself; helpers get a moment to end."""
        tree, until = self._sampler.tree, time.monotonic() + LEFT_SECONDS
        while not self._stop_kind:
            self._reap()
            left = tree.send(0)
            if not left:
                return
            if time.monotonic() >= until:
                shown = load("oddities").command
                commands = [shown(f"/proc/{pid}/cmdline", "a process") for pid in sorted(tree.refresh())]
                some = ", ".join(commands[:SHOWN_COMMANDS]) + (", ..." if left > SHOWN_COMMANDS else "")
                message = "%d process%s still ran when the command ended, and %s ended with it: %s" % (
                    left,
                    "" if left == 1 else "es",
                    "was" if left == 1 else "were",
                    some,
                )
                say(message)
                self._write({"type": "left", "at": time.time(), "message": message})
                return
            self._signals.wait(0.05)

    def _end_strays(self) -> None:
        """End the processes that the command left: at once, or within the grace period if asked to stop."""
        self._say_left()
        tree, asked = self._sampler.tree, False
        give_up = max(time.monotonic(), self._grace_until if self._stop_kind else 0.0) + 5.0
        while time.monotonic() < give_up:
            self._reap()
            gentle = bool(self._stop_kind) and time.monotonic() < self._grace_until
            number = signal.SIGKILL if not gentle else 0 if asked else signal.SIGTERM
            if not tree.send(number):
                return
            asked = True
            self._signals.wait(0.05)
        say("some processes of the command could not be ended")

    def _out_of_memory(self, code: int) -> bool:
        kills = self._sampler.cgroup.oom_kills()
        if not rise(self._oom_kills, kills) or self._kill_at > self._grace_until:
            return False
        return self._config.own_cgroup or code == 128 + signal.SIGKILL

    def _write(self, line: Dict[str, Any]) -> None:
        self._metrics.take(line)
        if self._spool.append(line):
            return
        self._dropped += 1
        if self._dropped == 1:
            say(f"cannot write the spool ({self._spool.error}); the command goes on, lines are counted")

    def _note(self, now: float) -> None:
        """Report what was lost: at once for the agent's own lines, otherwise from time to time."""
        counts = (self._dropped, self._reports.rejected, self._failed_samples)
        if counts == self._noted or (counts[0] == self._noted[0] and now < self._note_due):
            return
        note = {
            "type": "note",
            "at": time.time(),
            "message": "%d lines dropped, %d reports rejected, %d samples failed" % counts,
            "dropped_lines": counts[0],
            "rejected_reports": counts[1],
            "failed_samples": counts[2],
        }
        if self._spool.append(note):
            self._noted, self._note_due = counts, now + NOTE_SECONDS
            self._metrics.take(note)

    def _finish(self, kind: str, code: int, number: Optional[int], message: str) -> int:
        self._reports.forward(self._spool, final=True)
        self._note(math.inf)
        reason = {"kind": kind, "code": code, "signal": number, "message": message, "at": time.time()}
        self._write(dict({"type": "exited"}, **reason))
        try:
            self._exit_file.write(reason)
        except OSError as error:
            say(f"cannot write {self._config.exit}: {error}; the exit reason is: {message}")
        self._linger()
        return code

    def _linger(self) -> None:
        """Let a reader that promised to return read the last lines, which vanish with the container.

        The wait is bounded, however often readers promise to return.
        """
        until = time.monotonic() + self._config.linger_seconds
        until = min(until, self._grace_until + LINGER_SLACK_SECONDS)
        while self._pages.is_awaited(time.monotonic()) and time.monotonic() < until:
            self._signals.wait(0.02)


def read_argument(argument: str) -> str:
    """Return one part of the config: the argument itself if it is JSON, else the content of its file."""
    if argument.startswith("{"):
        return argument
    with open(argument, encoding="utf-8") as file:
        return file.read()


def main(arguments: List[str]) -> int:
    """Run the agent as ``agent.py CONFIG...``; later configs override earlier ones, field by field."""
    if not arguments:
        say("usage: agent.py CONFIG...")
        return 2
    try:
        config = parse_config(*map(read_argument, arguments))
    except (OSError, ValueError) as error:
        say(f"cannot use the config {' '.join(arguments)}: {error}")
        return 2
    return Agent(config).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
