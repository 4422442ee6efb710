"""What is done to a job while it trains; each is taken back at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.diagnosis import sites
from benchmarks.diagnosis.sites import Site
from paceline.engines.local import cgroups
from paceline.model.roles import ReplicaId

Act = Callable[[Site], contextlib.AbstractContextManager[None]]
_BUSY = "while True: pass"
#: Busy for so many seconds, then as many as the next argument says not.
_PARTLY_BUSY = """
import sys, time
busy, rest = map(float, sys.argv[1:])
while True:
    until = time.perf_counter() + busy
    while time.perf_counter() < until:
        pass
    time.sleep(rest)
"""
_PERIOD_SECONDS = 0.02
_BLKIO = Path("/sys/fs/cgroup/blkio")
_FORGET_SECONDS = 0.25
#: Of the classic BPF (``linux/filter.h``): a random word, whether it is at least k, return k.
_LOAD_RANDOM, _AT_LEAST, _RETURN = "32 0 0 4294963256", "53 0 1", "6 0 0"


def together(*several: Act) -> Act:
    """Do several things at once."""

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in several:
                stack.enter_context(each(site))
            yield

    return act


def neighbours(share: float) -> Act:
    """Take a share of each of the machine's cores away from the job, and from all others.

    By processes that go before others (SCHED_RR): between groups of equals, a kernel may favour replicas that
    sleep and wake often far beyond their weight.
    """

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        busy, rest = _PERIOD_SECONDS * share, _PERIOD_SECONDS * (1 - share)
        command = [sys.executable, "-S", "-c", _PARTLY_BUSY, str(busy), str(rest)]
        cores = sorted(os.sched_getaffinity(0))
        with _started(command, len(cores)) as processes:
            for process, core in zip(processes, cores, strict=True):
                os.sched_setaffinity(process.pid, {core})
                os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
            yield

    return act


def neighbours_on(replica: str, *, burners: int) -> Act:
    """Burn the cores of a replica's host, which is limited, in cgroups as heavy as the replica's."""

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        host = site.host_group(site.host_of(ReplicaId.parse(replica)))
        with contextlib.ExitStack() as stack:
            for number in range(burners):
                group = f"{host}/neighbour-{number}"
                site.groups.create(group, cgroups.CgroupLimits())
                stack.callback(site.groups.remove, group)
                stack.enter_context(_burning(site, group))
            yield

    return act


@contextlib.contextmanager
def _burning(site: Site, group: str) -> Iterator[None]:
    """Have a busy process in a group."""
    with _started([sys.executable, "-S", "-c", _BUSY], 1) as (process,):
        for folder in site.groups.folders(group):
            (folder / "cgroup.procs").write_text(str(process.pid))
        yield


@contextlib.contextmanager
def _started(command: Sequence[str], count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Have so many processes of a command."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            process = subprocess.Popen(command)
            stack.callback(process.wait)
            stack.callback(process.kill)
            found.append(process)
        yield found


def slow_disk(replicas: Sequence[str], data: Path, bytes_per_second: float) -> Act:
    """Have some replicas read from their disk at so many bytes a second each, and nothing from memory."""

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        device = os.stat(data).st_dev
        rule = f"{os.major(device)}:{os.minor(device)} {int(bytes_per_second)}"
        over = threading.Event()
        forgetting = threading.Thread(target=_forget, args=(data, over))
        groups = [_BLKIO / f"{site.folder.token}-{name}" for name in replicas]
        try:
            for name, group in zip(replicas, groups, strict=True):
                group.mkdir()
                (group / "blkio.throttle.read_bps_device").write_text(rule)
                _move(site, ReplicaId.parse(name), group)
            forgetting.start()
            yield
        finally:
            over.set()
            forgetting.join()
            for group in groups:
                _leave(group)

    return act


def _move(site: Site, replica: ReplicaId, group: Path) -> None:
    for process in site.command(replica):
        (group / "cgroup.procs").write_text(str(process.pid))


def _leave(group: Path) -> None:
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (_BLKIO / "cgroup.procs").write_text(pid)
    group.rmdir()


def _forget(data: Path, over: threading.Event) -> None:
    """Keep the files of a folder out of the page cache, as if they were larger than the memory."""
    paths = sorted(data.glob("train-*"))
    while not over.wait(_FORGET_SECONDS):
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def lossy(replicas: Sequence[str], share: float) -> Act:
    """Lose a share of the packets on their way to some replicas.

    Where they arrive: TCP takes what is dropped where it is sent for a full queue, and does not call it lost.
    By a filter of classic BPF, for not every kernel has netem.
    """
    bound = int(share * 2**32)
    # 0 lets a packet pass, 2 drops it (``linux/pkt_cls.h``).
    program = f"4,{_LOAD_RANDOM},{_AT_LEAST} {bound},{_RETURN} 0,{_RETURN} 2"

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        for name in replicas:
            namespace = site.namespace(ReplicaId.parse(name))
            sites.in_namespace(namespace, f"tc qdisc add dev {sites.INTERFACE} clsact")
            sites.tc_filter(namespace, program)
        yield  # It goes with the namespaces.

    return act


def cut_off(replicas: Sequence[str], after_seconds: float) -> Act:
    """Take the links of some replicas down after a while."""

    def cut(site: Site) -> None:
        for name in replicas:
            sites.in_namespace(site.namespace(ReplicaId.parse(name)), f"ip link set {sites.INTERFACE} down")

    return later(after_seconds, cut)


def frozen(replicas: Sequence[str], after_seconds: float) -> Act:
    """Stop the commands of some replicas after a while."""

    def stop(site: Site) -> None:
        for name in replicas:
            site.signal(ReplicaId.parse(name), signal.SIGSTOP)

    def go_on(site: Site) -> None:
        for name in replicas:
            site.signal(ReplicaId.parse(name), signal.SIGCONT)

    return later(after_seconds, stop, go_on)


def killed(replicas: Sequence[str], after_seconds: float) -> Act:
    """Kill the commands of some replicas after a while."""

    def kill(site: Site) -> None:
        for name in replicas:
            site.signal(ReplicaId.parse(name), signal.SIGKILL)

    return later(after_seconds, kill)


def later(
    seconds: float, begin: Callable[[Site], None], end: Callable[[Site], None] = lambda site: None
) -> Act:
    """Do something after a while, and something else at the end."""

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        timer = threading.Timer(seconds, begin, (site,))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            end(site)

    return act
