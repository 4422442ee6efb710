"""The life of the command, from its start to the exit file."""

import contextlib
import fcntl
import math
import os
import select
import signal
import time
import traceback
from typing import Any, Dict, List, Optional, Tuple

from .cgroups import format_cpus
from .configs import Config, server_port
from .environments import command_environment, fill, placeholder_values
from .exits import ExitFile, exit_reason, launch_failure
from .launches import launch
from .logs import say
from .metrics import Metrics
from .pages import Pages
from .profiles import Profiles
from .reports import Reports
from .samples import Sampler, next_due, rise
from .servers import Server
from .spools import Spool

LEFT_SECONDS = 0.5  # a process that outlives its command by this long was left behind
SHOWN_COMMANDS = 3
NOTE_SECONDS = 60.0
LINGER_SLACK_SECONDS = 2.0  # beyond the grace period of a command that was asked to stop
LOOK_SECONDS = 10.0  # between checks of what a command does besides its work
UNSEEN_SECONDS = 30.0  # until the agent checks why a trainer reports nothing, and between checks


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
        self._status: Optional[int] = None
        self._stop_kind = ""
        self._grace_until = self._kill_at = math.inf
        self._supervised_at = time.monotonic()
        self._dropped = self._failed_samples = 0
        self._noted, self._note_due = (0, 0, 0), 0.0
        self._explain_due = self._supervised_at + UNSEEN_SECONDS
        self._oddities: Any = None
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
        if port is None:
            return ""
        from . import oddities

        holder = oddities.holder(port)
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
        from . import unseen

        reason = unseen.reason(os.path.abspath(folder), self._sampler.tree.refresh())
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
            from . import oddities

            self._oddities = oddities.Watch(self._config.reports, self._began, port=server_port(self._config))
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
        self._sampler.end_query()  # It is the agent's own, and nothing that the command has left.
        tree, until = self._sampler.tree, time.monotonic() + LEFT_SECONDS
        while not self._stop_kind:
            self._reap()
            left = tree.send(0)
            if not left:
                return
            if time.monotonic() >= until:
                from . import oddities

                commands = [
                    oddities.command(f"/proc/{pid}/cmdline", "a process") for pid in sorted(tree.refresh())
                ]
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
