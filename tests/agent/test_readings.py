"""What the agent reads of its cgroup, beside what a process did that counts for itself."""

import json
import signal
import sys

import pytest
from support import control_groups

from paceline.engines.local.cgroups import CgroupLimits

pytestmark = control_groups.CGROUPS
PYTHON = sys.executable
MIB = 1 << 20


@pytest.fixture
def group(request):
    with control_groups.made(request.param) as group:
        yield group


def limited(**limits):
    return pytest.mark.parametrize("group", [CgroupLimits(**limits)], indirect=True, ids=["limited"])


@pytest.fixture
def measured(replica, group):
    """Give a function that runs a Python script in the group until its samples are as they should be.

    Returns what the script printed, as JSON, and the samples.
    """

    def run(script, are_enough):
        one = replica(PYTHON, "-c", PRELUDE + script, own_cgroup=True)
        one.start(before=group.enter)
        one.wait_until(lambda: are_enough(one.lines("sample")))
        (one.folder / "seen").touch()
        code, output, errors = one.finish()
        assert (code, errors) == (0, "")
        return json.loads(output), one.lines("sample")

    return run


PRELUDE = """
import json, os, pathlib, time
seen = pathlib.Path("seen").exists
"""
BURN = """
while not seen(): pass
print(time.process_time())
"""


@limited(cpu_cores=0.25)
def test_cores_limit_and_throttling(measured, group):
    burned, samples = measured(
        BURN, lambda samples: sum(each["throttled_seconds"] or 0 for each in samples) > 0.5
    )
    # The group has the agent's own time, too, and what a command uses after the last sample is in none.
    total = groups_seconds(group)
    used = sum((each["cpu_cores"] or 0) * each["interval_seconds"] for each in samples)
    assert 0.5 * burned < used <= total
    throttled = sum(each["throttled_seconds"] or 0 for each in samples)
    assert throttled <= groups_throttled_seconds(group)
    assert {each["cpu_limit_cores"] for each in samples} == {0.25}


def groups_seconds(group):
    """Return the CPU time that the kernel counted for a group, from its first moment on."""
    if group.hierarchy.version == 1:
        return int(group.read("cpuacct", "cpuacct.usage", "")) / 1e9
    return keyed(group.read("cpu", "", "cpu.stat"), "usage_usec") / 1e6


def groups_throttled_seconds(group):
    text = group.read("cpu", "cpu.stat", "cpu.stat")
    if group.hierarchy.version == 1:
        return keyed(text, "throttled_time") / 1e9
    return keyed(text, "throttled_usec") / 1e6


def keyed(text, name):
    return int(dict(line.split() for line in text.splitlines())[name])


@limited(cores=(0,))
def test_how_long_threads_wait_for_a_core(measured, group):
    """Two processes want the one core that they may use, so at least one waits nearly all the time."""
    if not group_has_pressures(group):
        pytest.skip("the kernel counts no pressures here")
    _, samples = measured(
        "import subprocess, sys\n"
        "one = subprocess.Popen([sys.executable, '-c', 'while True: pass'])\n"
        + BURN
        + "one.kill()\none.wait()\n",
        lambda samples: sum(each["cpu_pressure_seconds"] or 0 for each in samples) > 0.5,
    )
    waited = sum(each["cpu_pressure_seconds"] or 0 for each in samples)
    total_us = keyed_equal(group.read("cpu", "", "cpu.pressure"), "total")
    assert waited <= total_us / 1e6
    assert all(
        each[f"{resource}_pressure_seconds"] is not None for each in samples for resource in ("memory", "io")
    )


def group_has_pressures(group):
    try:
        return group.hierarchy.version == 2 and bool(group.read("cpu", "", "cpu.pressure"))
    except OSError:
        return False


def keyed_equal(text, name):
    """Return a value of the first line of a file of pressures, which has the pairs of "some"."""
    return int(dict(word.split("=") for word in text.splitlines()[0].split()[1:])[name])


WAIT = """
print(json.dumps(sorted(os.sched_getaffinity(0))))
while not seen(): time.sleep(0.02)
"""


@limited(cores=(0,))
def test_the_cores_that_it_may_use(measured):
    allowed, samples = measured(WAIT, bool)
    assert allowed == [0]
    assert {each["allowed_cpus"] for each in samples} == {1}


ALLOCATE = f"""
held = bytearray(b"x") * {64 * MIB}
while not seen(): time.sleep(0.02)
print(len(held))
"""


@limited(memory_bytes=256 * MIB)
def test_memory_that_is_held_counts_and_the_limit_is_known(measured):
    held, samples = measured(
        ALLOCATE, lambda samples: any((each["memory_bytes"] or 0) > 64 * MIB for each in samples)
    )
    assert held == 64 * MIB
    assert {each["memory_limit_bytes"] for each in samples} == {256 * MIB}
    assert max(each["memory_bytes"] for each in samples) < 256 * MIB


READ = f"""
path = pathlib.Path("large")
with path.open("wb") as file:
    for _ in range(96): file.write(bytes({MIB}))
with path.open("rb") as file:
    while file.read({MIB}): pass
print("true", flush=True)
while not seen(): time.sleep(0.02)
"""


@limited(memory_bytes=256 * MIB)
def test_files_that_were_read_can_be_dropped_and_do_not_count(measured, group):
    taken = 0

    def is_cached(samples):
        nonlocal taken
        taken = int(group.read("memory", "memory.usage_in_bytes", "memory.current"))
        return taken > 96 * MIB and samples

    _, samples = measured(READ, is_cached)
    assert max(each["memory_bytes"] for each in samples) < taken - 48 * MIB


EAT = "held = bytearray(b'x') * (200 << 20)"


@limited(memory_bytes=48 * MIB)
@pytest.mark.parametrize(
    ("script", "code", "kind"),
    [
        (EAT, 128 + signal.SIGKILL, "out-of-memory"),
        (f"import subprocess as s, sys; sys.exit(s.run([sys.executable, '-c', {EAT!r}]).returncode and 1)", 1,
         "out-of-memory"),
        ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL, "signal"),
        ("raise MemoryError", 1, "error"),
        ("raise SystemExit(137)", 137, "error"),
    ],
    ids=["itself", "a child of it", "killed", "its own error", "a code like that of a kill"],
)  # fmt: skip
def test_what_the_kernel_kills_for_memory_is_told_from_others(replica, group, script, code, kind):
    one = replica(PYTHON, "-c", script, own_cgroup=True)
    assert one.run(before=group.enter)[0] == code
    assert one.reason()["kind"] == kind
