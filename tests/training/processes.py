"""Real clusters of processes over loopback, each ended by its own process id."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support import ports

ROOT = Path(__file__).parents[2]


class Processes:
    """The replicas of one job as processes: started, killed and awaited one by one."""

    def __init__(self, folder, command, training, roles, fork_server=None):
        """With a `fork_server` the command is a script, and processes are forked by it."""
        self.fork_server = fork_server
        self.folder = folder
        self.command = command
        self.training = training
        addresses = ports.addresses(sum(count for role, count in roles.items() if role != "evaluator"))
        self.roles = roles
        self.cluster = {
            role: [addresses.pop() for _ in range(count)]
            for role, count in roles.items()
            if role != "evaluator"
        }
        self.checkpoint_dir = folder / "checkpoints"
        self.environment = {}
        self.running = {}

    def start_all(self):
        for role, count in self.roles.items():
            for index in range(count):
                self.start(role, index)

    def start(self, role, index, attempt=1, **training):
        environment = dict(
            os.environ,
            PYTHONPATH=f"{ROOT / 'src'}:{ROOT}",
            TF_CPP_MIN_LOG_LEVEL="2",
            TF_CONFIG=json.dumps({"cluster": self.cluster, "task": {"type": role, "index": index}}),
            PYTHONFAULTHANDLER="1",
            TF_NUM_INTRAOP_THREADS="1",
            TF_NUM_INTEROP_THREADS="2",
            PACELINE_ATTEMPT=str(attempt),
            PACELINE_TRAINING=json.dumps({**self.training, **training}),
            PACELINE_REPORT_FILE=str(self.folder / f"{role}-{index}.jsonl"),
            PACELINE_CHECKPOINT_DIR=str(self.checkpoint_dir),
            **self.environment,
        )
        self.running[role, index] = self._started(environment, self.folder / f"{role}-{index}.log")

    def _started(self, environment, log):
        if self.fork_server is not None:
            return self.fork_server.start(self.command, environment=environment, folder=ROOT, log=log)
        with open(log, "ab") as output:
            return subprocess.Popen(
                [sys.executable, *self.command], env=environment, cwd=ROOT, stdout=output, stderr=output
            )

    def kill(self, role, index, number=signal.SIGKILL):
        process = self.running.pop((role, index))
        process.send_signal(number)
        return process.wait(timeout=240)

    def wait(self, role, index, timeout=600.0):
        try:
            code = self.running[role, index].wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{role} {index} hangs:\n{self.stacks()}") from None
        assert code == 0, self.log(role, index)
        del self.running[role, index]

    def stacks(self):
        """Ends all that runs; returns what each has logged, and where each of its threads stood."""
        texts = []
        for (role, index), process in sorted(self.running.items()):
            ended = process.poll()
            if ended is None:
                process.send_signal(signal.SIGABRT)  # Python's fault handler then writes its threads
                process.wait(timeout=240)
            state = "still ran" if ended is None else f"had ended with {ended}"
            texts.append(f"--- {role} {index} {state}:\n{self.log(role, index)}")
        return "\n".join(texts)

    def log(self, role, index):
        return (self.folder / f"{role}-{index}.log").read_text()

    def reports(self, role, index, kind):
        path = self.folder / f"{role}-{index}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [report for report in map(json.loads, lines) if report["type"] == kind]

    def await_that(self, condition, what, timeout=600.0):
        end = time.monotonic() + timeout
        while not condition():
            dead = {key: p.returncode for key, p in self.running.items() if p.poll() not in (None, 0)}
            assert not dead, f"{dead} while waiting for {what}:\n{self.log(*next(iter(dead)))}"
            assert time.monotonic() < end, f"{what} did not happen:\n{self.log('worker', 0)}"
            time.sleep(0.1)

    def await_step(self, step, role="worker", index=0):
        def reached():
            return any(report["step"] >= step for report in self.reports(role, index, "step"))

        self.await_that(reached, f"step {step} of {role} {index}")

    def await_checkpoint(self):
        self.await_that(lambda: (self.checkpoint_dir / "checkpoint").exists(), "a checkpoint")

    def end(self):
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self.running.clear()
