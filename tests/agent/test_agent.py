"""The agent as a process, with small commands that really run."""

import ast
import contextlib
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from support import interpreters

AGENT = pathlib.Path(__file__).parents[2] / "src" / "paceline" / "agent" / "agent.py"
PYTHON = sys.executable
# Writes its process number once it is ready, so that a test never signals a shell that sets its traps yet.
SLEEPER = "echo $$ > ready.tmp; mv ready.tmp ready; while :; do sleep 0.05; done"


def is_alive(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text[text.rfind(")") + 2] != "Z"


# --- How it ends ---


@pytest.mark.parametrize(("code", "kind"), [(0, "completed"), (3, "error"), (255, "error")])
def test_exit_codes(replica, code, kind):
    one = replica("sh", "-c", f"exit {code}")
    assert one.run() == (code, "", "")
    reason = one.reason()
    assert (reason["kind"], reason["code"], reason["signal"]) == (kind, code, None)
    assert one.lines()[-1] == {"type": "exited", **reason}
    assert not (one.folder / "exit.tmp").exists()


@pytest.mark.parametrize(
    ("command", "said"), [("exit 1", True), ("exit 0", False), ("kill -9 $$", False)], ids=str
)
def test_a_command_that_fails_while_its_port_is_taken(replica, command, said):
    """A PS whose port another process took between two attempts: "code 1" alone says nothing of it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        cluster = {"ps": ["h0:2222"], "worker": ["h1:2222", f"127.0.0.1:{port}"]}
        one = replica("sh", "-c", command, cluster=cluster)
        one.run()
    assert (f"; its port {port} is taken by process {os.getpid()} (" in one.reason()["message"]) is said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_from_elsewhere(replica, number):
    one = replica("sh", "-c", f"kill -{int(number)} $$")
    assert one.run()[0] == 128 + number
    reason = one.reason()
    assert (reason["kind"], reason["code"], reason["signal"]) == ("signal", 128 + number, number)


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["/no/such/program"], 127, "not found"),
        (["echo hello; echo world"], 127, '["sh", "-c"'),
        (["/"], 126, "cannot be run"),
        (["{run_dir}/train"], 127, "'/runs/7/train'"),
        (["a\0b"], 126, "null"),
    ],
)
def test_launch_failures(replica, command, code, says):
    one = replica(*command)
    found, output, errors = one.run()
    assert (found, output) == (code, "")
    assert errors.startswith("paceline-agent: ")
    assert says in errors
    reason = one.reason()
    assert (reason["kind"], reason["code"]) == ("launch-failed", code)
    assert says in reason["message"]
    assert [line["type"] for line in one.lines()] == ["exited"]


def test_an_exit_reason_of_an_earlier_attempt_does_not_stay(replica):
    one = replica("sh", "-c", SLEEPER)
    one.exit.write_text("{}")
    one.start()
    one.number_in("ready")
    assert not one.exit.exists()


@pytest.mark.parametrize("arguments", [[], ["/no/such/config"], ["a", "b"]])
def test_without_a_config(arguments):
    done = subprocess.run(
        [PYTHON, str(AGENT), *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("paceline-agent: ")


def test_output_is_the_command_s_own(replica):
    one = replica("sh", "-c", "echo out; echo err >&2; cat")
    process = one.start()
    output, errors = process.communicate(timeout=240)
    assert (output, errors) == ("out\n", "err\n")


def test_the_command_shares_session_and_process_group(replica):
    script = "import os; print(os.getsid(0), os.getpgrp())"
    one = replica(PYTHON, "-c", script)
    process = one.start()
    process.communicate(timeout=240)
    one = replica(PYTHON, "-c", script)
    assert one.run()[1] == f"{os.getsid(0)} {os.getpgrp()}\n"


# --- Signals, strays, orphans ---


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_reaches_the_command(replica, number):
    one = replica("sh", "-c", "trap 'echo saved; exit 7' TERM; " + SLEEPER)
    process = one.start()
    one.number_in("ready")
    process.send_signal(number)
    code, output, errors = one.finish()
    assert (code, output) == (7, "saved\n")
    assert "ending the command" in errors
    assert one.reason()["kind"] == "error"


def test_after_the_grace_period_everything_is_killed(replica):
    script = "trap '' TERM; (" + SLEEPER.replace("$$", "$(sh -c 'echo $PPID')") + ") & wait; sleep 60"
    one = replica("sh", "-c", script, grace_seconds=0.3)
    process = one.start()
    child = one.number_in("ready")
    process.terminate()
    assert one.finish()[0] == 128 + signal.SIGKILL
    assert one.reason()["kind"] == "signal"
    assert not is_alive(child)


DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for fd in (0, 1, 2):
            os.close(fd)
        with open("daemon.tmp", "w") as file:
            file.write(str(os.getpid()))
        os.rename("daemon.tmp", "daemon")
        time.sleep(60)
    os._exit(0)
os.wait()
while not os.path.exists("daemon"):
    time.sleep(0.01)
"""


def test_a_daemon_does_not_outlive_the_command(replica):
    one = replica(PYTHON, "-c", DAEMON)
    assert one.run()[0] == 0
    assert not is_alive(one.number_in("daemon"))
    assert one.reason()["kind"] == "completed"
    (left,) = one.lines("left")
    assert left["message"].startswith("1 process still ran when the command ended, and was ended with it: ")
    assert "python" in left["message"]


def test_a_command_in_the_background_of_a_shell_is_said_to_have_been_left(replica):
    one = replica("sh", "-c", "sleep 600 > /dev/null 2>&1 &")
    assert one.run()[0] == 0
    assert [line["message"].rpartition(": ")[2] for line in one.lines("left")] == ["sleep 600"]


def test_what_ends_before_its_command_is_not_left(replica):
    one = replica("sh", "-c", "true & wait")
    assert one.run()[0] == 0
    assert one.lines("left") == []


def test_what_a_stopped_command_leaves_behind_may_end_in_good_order(replica):
    # The shell dies of SIGTERM at once and its child, the real program, would be left without a word.
    child = "trap 'sleep 0.2; echo saved > saved; exit' TERM; " + SLEEPER.replace("$$", "$PPID")
    one = replica("sh", "-c", f"sh -c {json.dumps(child).replace('$', chr(92) + '$')}; true")
    process = one.start()
    one.number_in("ready")
    process.terminate()
    assert one.finish()[0] == 128 + signal.SIGTERM
    assert (one.folder / "saved").read_text() == "saved\n"


def test_the_command_dies_with_a_killed_agent(replica):
    one = replica("sh", "-c", SLEEPER)
    process = one.start()
    command = one.number_in("ready")
    process.kill()
    process.communicate(timeout=240)
    one.wait_until(lambda: not is_alive(command))
    assert not one.exit.exists()


def test_an_orphan_ends(replica, tmp_path):
    lock = tmp_path / "lock"
    lock.touch()
    one = replica("sh", "-c", SLEEPER, supervisor_lock=str(lock), orphan_seconds=0.4)
    with lock.open("w") as supervisor:
        fcntl.flock(supervisor, fcntl.LOCK_EX)
        one.start()
        one.number_in("ready")
        one.wait_until(lambda: len(one.lines("sample")) > 15)
        assert one.process.poll() is None, "a supervisor was there"
    code, _, errors = one.finish()
    assert code == 128 + signal.SIGTERM
    assert one.reason()["kind"] == "orphaned"
    assert "no supervisor" in errors


def test_a_supervisor_that_comes_back_finds_its_replica(replica, tmp_path):
    lock = tmp_path / "lock"
    lock.touch()
    one = replica("sh", "-c", SLEEPER, supervisor_lock=str(lock), orphan_seconds=30.0)
    one.start()
    one.number_in("ready")
    one.wait_until(lambda: len(one.lines("sample")) > 3)
    assert one.process.poll() is None


# --- Samples and reports ---

FIELDS = {
    "type",
    "at",
    "interval_seconds",
    "cpu_cores",
    "cpu_limit_cores",
    "throttled_seconds",
    "memory_bytes",
    "memory_limit_bytes",
    "network_received_bytes",
    "network_sent_bytes",
    "voluntary_switches",
    "involuntary_switches",
    "threads",
    "neighbours_cpu_cores",
    "gpu_utilization",
    "gpu_memory_bytes",
    "sent_segments",
    "retransmitted_segments",
    "run_delay_seconds",
    "allowed_cpus",
    "stolen_cpu_cores",
    "cpu_pressure_seconds",
    "memory_pressure_seconds",
    "io_pressure_seconds",
}


#: Ends a script: waits for a sample that has seen all it did, then says what CPU time it has counted.
TELL_CPU_TIME = """
import os, resource, time
def samples():
    with open("spool") as file:
        return file.read().count('"type": "sample"')
def counted():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
worked, begun = counted(), samples()
while samples() < begun + 2:
    time.sleep(0.02)
print(worked, counted(), flush=True)
os._exit(0)
"""


#: The kernel shows what a process has used in these.
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


def assert_cpu_time(one, output, processes=1):
    """What the samples say together is what processes have counted, but for ticks and the last moments."""
    worked, all_in_all = map(float, output.split())
    used = sum(sample["cpu_cores"] * sample["interval_seconds"] for sample in one.lines("sample"))
    ticks = 2 * TICK_SECONDS * processes  # cut off of user and of system time, of each process
    assert worked - ticks - 0.1 < used < all_in_all + 0.25


def test_samples_of_a_busy_process_with_threads(replica):
    script = """
        import threading, time
        held = b"x" * 50_000_000
        for _ in range(9):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        end = time.process_time() + 1.0
        while time.process_time() < end:
            pass
    """
    one = replica(PYTHON, "-c", textwrap.dedent(script) + TELL_CPU_TIME)
    code, output, errors = one.run()
    assert (code, errors) == (0, "")
    samples = one.lines("sample")
    assert all(set(sample) == FIELDS for sample in samples)
    assert_cpu_time(one, output)
    assert max(sample["threads"] for sample in samples) == 10
    assert max(sample["memory_bytes"] for sample in samples) > 50_000_000
    assert all(sample["neighbours_cpu_cores"] >= 0 for sample in samples)
    assert all(sample["stolen_cpu_cores"] >= 0 for sample in samples)
    assert any(sample["voluntary_switches"] is not None for sample in samples)
    assert any((sample["run_delay_seconds"] or 0.0) > 0 for sample in samples)
    assert {sample["allowed_cpus"] for sample in samples} == {len(os.sched_getaffinity(0))}
    assert all(
        sample["throttled_seconds"] is None and sample["cpu_limit_cores"] is None for sample in samples
    )
    started = one.lines("started")[0]
    assert set(started) == {"type", "at", "pid", "threads", "cpu_limit_cores", "cpuset", "notes"}
    assert any("own_cgroup" in note for note in started["notes"])


def test_the_time_of_children_that_ended_counts_once(replica):
    burn = "import time; end = time.process_time() + 0.15\nwhile time.process_time() < end: pass"
    script = f"""
        import subprocess, sys
        for _ in range(4):
            subprocess.run([sys.executable, "-c", {burn!r}], check=True)
    """
    one = replica(PYTHON, "-c", textwrap.dedent(script) + TELL_CPU_TIME)
    code, output, errors = one.run()
    assert (code, errors) == (0, "")
    assert_cpu_time(one, output, processes=5)
    assert all(sample["cpu_cores"] >= 0 for sample in one.lines("sample"))


#: An agent that goes on only when its command has worked for a while, as on a machine that is busy.
LATE_AGENT = f"""
import os, sys, time
sys.path.insert(0, {str(AGENT.parent)!r})
from paceline_agent import agents, main
launch = agents.launch
def late(*arguments):
    process = launch(*arguments)
    while not os.path.exists("worked"):
        time.sleep(0.01)
    return process
agents.launch = late
sys.exit(main.main(sys.argv[1:]))
"""


def test_what_a_command_does_before_the_agent_goes_on_counts(replica):
    script = """
        import os, socket, time
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        server = socket.create_server(("127.0.0.1", 0))
        one = socket.create_connection(server.getsockname())
        other = server.accept()[0]
        for _ in range(50):
            one.sendall(b"x" * 1000)
            other.recv(1000)
        open("worked", "w").close()
        while not os.path.exists("spool"):
            time.sleep(0.01)
    """
    one = replica(PYTHON, "-c", textwrap.dedent(script) + TELL_CPU_TIME)
    done = subprocess.run(
        [PYTHON, "-c", LATE_AGENT, json.dumps(one.config)],
        cwd=one.folder, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert_cpu_time(one, done.stdout)
    samples = one.lines("sample")
    assert sum(each["network_sent_bytes"] for each in samples) >= 50_000
    assert sum(each["sent_segments"] for each in samples) >= 50


def test_reports_are_passed_on_and_bad_ones_counted(replica):
    at = time.time()
    lines = [
        f'{{"type": "step", "at": {at!r}, "step": 10, "steps": 10, "examples": 640, "loss": NaN}}',
        '{"type": "evaluation", "auc": 0.7, "extra": {"kept": [1]}}',
        "not json",
        "[1]",
        '{"type": "exited"}',
        "",
        '{"type": "step", "step": 11}',
    ]
    body = "\n".join(lines)  # the last line has no newline: the script has ended, so it counts
    one = replica(PYTHON, "-c", f"import os; open(os.environ['PACELINE_REPORT_FILE'], 'w').write({body!r})")
    assert one.run()[0] == 0
    steps = one.lines("step")
    assert steps[0] == {"type": "step", "at": at, "step": 10, "steps": 10, "examples": 640, "loss": None}
    assert steps[1]["step"] == 11
    assert steps[1]["at"] == pytest.approx(time.time(), abs=60)
    assert one.lines("evaluation")[0]["extra"] == {"kept": [1]}
    assert one.lines("note")[-1]["rejected_reports"] == 3
    assert one.lines()[-1]["type"] == "exited"


def test_a_report_is_passed_on_only_when_it_is_whole(replica):
    script = """
        import os, time
        file = open(os.environ["PACELINE_REPORT_FILE"], "a", buffering=1)
        file.write('{"type": "step", ')
        file.flush()
        time.sleep(0.3)
        file.write('"step": 1}\\n')
        os.truncate(file.name, 0)
        file.write('{"type": "step", "step": 2}\\n')
    """
    one = replica(PYTHON, "-c", textwrap.dedent(script))
    assert one.run() == (0, "", "")
    assert [line["step"] for line in one.lines("step")] in ([1, 2], [2])
    assert one.lines("note") == []


def test_reports_of_an_earlier_attempt_are_not_repeated(replica):
    one = replica("sh", "-c", 'echo \'{"type": "step", "step": 2}\' >> "$PACELINE_REPORT_FILE"')
    one.reports.write_text('{"type": "step", "step": 1}\n')
    assert one.run()[0] == 0
    assert [line["step"] for line in one.lines("step")] == [2]


# --- GPUs ---


def provide_nvidia_smi(folder, script):
    """Put a program in the place of the real one, which only machines with a GPU have."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_gpu_figures_come_with_one_sample(replica, tmp_path):
    environment = provide_nvidia_smi(tmp_path, 'echo "$*" > asked; echo "40, 512"; echo "60, 512"\n')
    one = replica("sh", "-c", SLEEPER, environment={"CUDA_VISIBLE_DEVICES": "0,1"})
    process = one.start(environment=environment)
    one.wait_until(lambda: any(sample["gpu_utilization"] is not None for sample in one.lines("sample")))
    one.wait_until(lambda: one.lines("sample")[-1]["gpu_utilization"] is None)
    process.terminate()
    one.finish()
    found = [sample for sample in one.lines("sample") if sample["gpu_utilization"] is not None]
    assert (found[0]["gpu_utilization"], found[0]["gpu_memory_bytes"]) == (0.5, 2**30)
    assert "--id=0,1" in (tmp_path / "asked").read_text()
    assert not any("GPU" in note for note in one.lines("started")[0]["notes"])


def test_a_hanging_nvidia_smi_delays_nothing(replica, tmp_path):
    one = replica("sleep", "600")
    process = one.start(environment=provide_nvidia_smi(tmp_path, "echo $$ > hanging; exec sleep 600\n"))
    one.wait_until(lambda: len(one.lines("sample")) >= 3)
    process.terminate()
    one.finish()
    assert not is_alive(one.number_in("hanging"))


# --- A full disk ---


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(path):
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while file.write(b"x" * 512):
            pass


def test_a_full_disk_costs_lines_and_nothing_else(small_disk, replica):
    files = {name: str(small_disk / name) for name in ("spool", "exit", "reports")}
    one = replica("sh", "-c", SLEEPER, **files)
    one.spool, one.exit = small_disk / "spool", small_disk / "exit"
    process = one.start()
    one.number_in("ready")
    one.wait_until(lambda: one.lines("sample"))
    filler = small_disk / "filler"
    fill_up(filler)

    def lines():
        parsed = []
        for line in one.spool.read_text().splitlines():
            with contextlib.suppress(ValueError):
                parsed.append(json.loads(line))
        return parsed

    def is_stuck():
        """The last line was cut off where its page ends, and no further page is to be had."""
        fill_up(filler)
        return one.spool.stat().st_size % os.sysconf("SC_PAGE_SIZE") == 0

    one.wait_until(is_stuck)
    before = len(lines())
    filler.unlink()
    one.wait_until(lambda: any(line["type"] == "note" for line in lines()))
    one.wait_until(lambda: len(lines()) > before + 2)
    note = next(line for line in lines() if line["type"] == "note")
    assert note["dropped_lines"] > 0
    torn = len(one.spool.read_text().splitlines()) - len(lines())
    assert torn <= 2, "a line that was cut off stands alone"
    fill_up(filler)
    process.terminate()
    code, _, errors = one.finish()
    assert code == 128 + signal.SIGTERM
    assert one.reason()["kind"] == "signal", "room for the exit reason was taken at the start"
    assert errors.count("cannot write the spool") == 1


def test_a_spool_that_cannot_be_opened(replica, tmp_path):
    one = replica("sh", "-c", "sleep 0.3", spool=str(tmp_path / "missing" / "spool"))
    code, _, errors = one.run()
    assert code == 0
    assert "cannot write the spool" in errors
    assert one.reason()["kind"] == "completed"


# --- Where it runs ---


@pytest.mark.parametrize(
    "path", [AGENT, *AGENT.with_name("paceline_agent").glob("*.py")], ids=lambda path: path.name
)
def test_it_needs_the_standard_library_of_python_3_6_alone(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    imported = {
        (name.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for name in node.names
    }
    assert imported <= {*sys.stdlib_module_names, "paceline_agent"}


OLD = sorted(str(path) for path in pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python"))


@pytest.mark.parametrize("python", OLD or [PYTHON])
def test_interpreters(replica, python):
    step = """echo '{"type": "step", "step": 1}' >> "$PACELINE_REPORT_FILE";"""
    one = replica("sh", "-c", step + "until [ -e sampled ]; do sleep 0.05; done; exit 5")
    one.start(python=python)
    one.wait_until(lambda: one.lines("sample"))
    (one.folder / "sampled").touch()
    assert one.finish() == (5, "", "")
    assert one.reason()["kind"] == "error"
    assert one.lines("sample")[0]["cpu_cores"] is not None
    assert [line["step"] for line in one.lines("step")] == [1]


OLDER = interpreters.of("2.7")


@pytest.mark.skipif(OLDER is None, reason="no Python 2.7 here")
def test_an_image_with_python_2_alone_is_told_what_to_do(tmp_path):
    """A pod that mounts the agent starts it with the Python of its command."""
    alone = {"PATH": str(tmp_path)}
    done = subprocess.run([OLDER, "-E", AGENT, "{}"], env=alone, capture_output=True, text=True, timeout=240)
    assert done.returncode == 127
    assert "the agent needs Python 3.6 or newer, and this image has only Python 2.7" in done.stderr
    (tmp_path / "python3").symlink_to(PYTHON)
    done = subprocess.run([OLDER, "-E", AGENT, "{}"], env=alone, capture_output=True, text=True, timeout=240)
    assert "command has to be a list of strings" in done.stderr, "with Python 3 beside it, it goes on"
