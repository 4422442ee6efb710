import dataclasses
import itertools
import json
import pathlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.agent.paceline_agent import (
    cgroups,
    configs,
    gpus,
    kernel_files,
    networks,
    processes,
    reports,
    samples,
    scheduling,
)
from paceline.model.measures.samples import EvaluationReport, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.sources import spools

WORKER = ReplicaId(Role.WORKER, 0)
GOLDEN = pathlib.Path(__file__).parent / "golden"


def golden(name):
    return (GOLDEN / name).read_text()


@pytest.mark.parametrize(
    ("case", "controller", "version", "directory", "top"),
    [
        ("v1", "memory", 1, "/sys/fs/cgroup/memory/user.slice/job", "/sys/fs/cgroup/memory"),
        ("v1", "cpuacct", 1, "/sys/fs/cgroup/cpu,cpuacct/user.slice/job", "/sys/fs/cgroup/cpu,cpuacct"),
        ("v1", "cpuset", 1, "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/cpuset"),
        ("v2", "cpu", 2, "/sys/fs/cgroup/user.slice/user-1000.slice/job.scope", "/sys/fs/cgroup"),
        ("v2-container", "memory", 2, "/sys/fs/cgroup", "/sys/fs/cgroup"),
        ("v1-container", "cpu", 1, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
        ("v1-container", "cpuset", 1, "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/cpuset"),
    ],
)
def test_locates_the_cgroup(case, controller, version, directory, top):
    paths = cgroups.parse_cgroups(golden(case + ".cgroup"))
    mounts = cgroups.parse_mounts(golden(case + ".mountinfo"))
    assert cgroups.locate(controller, paths, mounts) == cgroups.Group(version, directory, top)


def test_a_cgroup_outside_of_the_namespace_is_taken_for_the_mount_point():
    mounts = cgroups.parse_mounts(golden("v2-container.mountinfo"))
    found = cgroups.locate("cpu", {"": "/../../other"}, mounts)
    assert found == cgroups.Group(2, "/sys/fs/cgroup", "/sys/fs/cgroup")


def test_no_cgroup_without_a_mount():
    assert cgroups.locate("cpu", {"": "/"}, []) is None
    assert cgroups.locate("cpu", {}, cgroups.parse_mounts(golden("v2.mountinfo"))) is None


def test_mount_points_are_unescaped():
    assert cgroups.parse_mounts(golden("v2.mountinfo"))[-1].point == "/mnt/my disk"


def test_ancestry_ends_at_the_mount_point():
    group = cgroups.Group(2, "/sys/fs/cgroup/a/b", "/sys/fs/cgroup")
    assert cgroups.ancestry(group) == ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [
        ("150000", "100000", 1.5),
        ("max", "100000", None),
        ("-1", "100000", None),
        ("1", "0", None),
        ("", "", None),
    ],
)
def test_quota(quota, period, cores):
    assert cgroups.parse_quota(quota, period) == cores


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("2147483648\n", 2147483648),
        ("max\n", None),
        ("9223372036854771712\n", None),
        ("9223372036854710272", None),
    ],
)
def test_memory_limit(text, limit):
    assert cgroups.parse_limit(text) == limit


@pytest.mark.parametrize(
    ("text", "cpus", "again"),
    [
        ("0-3,8\n", {0, 1, 2, 3, 8}, "0-3,8"),
        ("5", {5}, "5"),
        ("\n", set(), ""),
        ("0-999999999999", set(), ""),
    ],
)
def test_cpu_lists(text, cpus, again):
    assert cgroups.parse_cpus(text) == cpus
    assert cgroups.format_cpus(cgroups.parse_cpus(text)) == again


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("v2.cpu.stat", "usage_usec", 81250417),
        ("v2.cpu.stat", "throttled_usec", 4031567),
        ("v1.cpu.stat", "throttled_time", 4031567123),
        ("v2.memory.stat", "inactive_file", 3145728),
        ("v1.memory.stat", "total_inactive_file", 2097152),
        ("v2.memory.events", "oom_kill", 1),
        ("v1.memory.oom_control", "oom_kill", 3),
        ("v1.cpu.stat", "usage_usec", None),
    ],
)
def test_keyed_files(name, key, value):
    assert kernel_files.parse_keyed(golden(name), key) == value


def test_process_stat_with_brackets_in_its_name():
    assert processes.parse_process(golden("process.stat")) == processes.ProcessStat(
        4200, 812 + 97 + 41 + 5, 53, 51200
    )


def test_thread_status():
    assert scheduling.parse_switches(golden("thread.status")) == (1234, 56)


def test_thread_schedstat():
    assert scheduling.parse_run_delay("56189338 1035928049 40\n") == pytest.approx(1.035928049)
    assert scheduling.parse_run_delay("") is None
    assert scheduling.parse_run_delay("1 x 2") is None


def test_a_thread_under_the_number_of_another_begins_at_nothing():
    before = scheduling.Scheduling(100, 10, 3.0)
    assert scheduling.Scheduling(120, 11, 3.5).since(before) == (20, 1, 0.5)
    assert scheduling.Scheduling(7, 1, 0.25).since(before) == (7, 1, 0.25)
    assert scheduling.Scheduling(120, 11, None).since(before) == (20, 1, None)
    assert scheduling.total_scheduling(
        [scheduling.Scheduling(1, 2, 0.5), scheduling.Scheduling(1, 2, None)]
    ) == (2, 4, 0.5)
    assert scheduling.total_scheduling([scheduling.Scheduling(1, 2, None)]) == (1, 2, None)


def test_network():
    assert networks.parse_network(golden("net.dev"), "eth0") == (1651373040, 1802174)
    assert networks.parse_network(golden("net.dev"), "eth1") is None


def test_segments():
    assert networks.parse_segments(golden("net.snmp")) == (1042877, 3191)
    assert networks.parse_segments(golden("net.dev")) is None
    assert networks.parse_segments("Tcp: OutSegs\nTcp: 7\n") is None
    assert networks.parse_segments("Tcp: RetransSegs OutSegs\nTcp: 1 x\n") is None


def test_segments_that_had_arrived_were_sent_again_needlessly():
    assert networks.parse_needless(golden("net.netstat")) == 580
    assert networks.parse_needless("TcpExt: A TCPDSACKRecv\nTcpExt: 1 14\n") == 14, "older kernels"
    assert networks.parse_needless("TcpExt: A\nTcpExt: 1\n") is None
    assert networks.parse_needless(golden("net.snmp")) is None


def test_segments_are_counted_where_an_interface_is_the_replica_s_own(monkeypatch):
    held = {"/proc/net/dev": golden("net.dev"), "/proc/net/snmp": golden("net.snmp")}
    monkeypatch.setattr(kernel_files.KeptFiles, "read", lambda _self, path: held.get(path))
    fields = {"sent_segments", "retransmitted_segments", "network_sent_bytes"}
    found = {}
    for interface in ("eth0", "eth7", None):
        held["/proc/net/snmp"] = golden("net.snmp")
        sampler = samples.Sampler(config(interface))
        held["/proc/net/snmp"] = held["/proc/net/snmp"].replace("1042877 3191", "1042977 3193")
        line = sampler.sample()
        found[interface] = {name: line[name] for name in fields}
    assert found["eth0"] == {"sent_segments": 100, "retransmitted_segments": 2, "network_sent_bytes": 0}
    assert found["eth7"] == found[None] == dict.fromkeys(fields)


def test_what_was_sent_again_needlessly_is_not_lost(monkeypatch):
    held = {f"/proc/net/{name}": golden(f"net.{name}") for name in ("dev", "snmp", "netstat")}
    monkeypatch.setattr(kernel_files.KeptFiles, "read", lambda _self, path: held.get(path))
    sampler = samples.Sampler(config("eth0"))
    for again, needless, lost in ((3201, 588, 2), (3202, 590, 0)):
        held["/proc/net/snmp"] = golden("net.snmp").replace(" 3191 ", f" {again} ")
        held["/proc/net/netstat"] = golden("net.netstat").replace(" 580\n", f" {needless}\n")
        assert sampler.sample()["retransmitted_segments"] == lost


def test_samples_have_the_moment_of_their_reading_and_leave_no_time_out(monkeypatch):
    """On a machine that is busy it takes a while from the reading to the end of a sample."""
    now = [1000.0]

    def later(seconds):
        now[0] += 0.125
        return now[0] + seconds

    monkeypatch.setattr(time, "monotonic", lambda: later(0.0))
    monkeypatch.setattr(time, "time", lambda: later(5e8))
    monkeypatch.setattr(time, "process_time", lambda: later(0.0))
    sampler = samples.Sampler(config("eth0"))
    sampler.begin({})
    lines = [sampler.sample() for _ in range(5)]
    for before, after in itertools.pairwise(lines):
        assert after["at"] - before["at"] == after["interval_seconds"]


@given(
    st.floats(0, 1e6),
    st.one_of(st.just(0.0), st.floats(0, 5), st.floats(0, 1e5)),
    st.sampled_from([0.02, 0.1, 1, 7.5]),
)
def test_samples_keep_to_the_grid_and_leave_out_what_was_missed(due, late, interval):
    following = samples.next_due(due, due + late, interval)
    assert due + late < following + 1e-6
    assert following <= due + late + interval + 1e-6
    assert (following - due) / interval == pytest.approx(round((following - due) / interval), abs=1e-6)


def config(interface):
    known = {"job": "clicks", "role": "ps", "index": 0, "attempt": 1, "command": ["x"], "cluster": {}}
    files = dict.fromkeys(("spool", "exit", "reports"), "/x")
    return configs.Config({**known, **files, "interface": interface, "own_cgroup": False})


def test_busy_cpus():
    assert samples.parse_busy(golden("proc.stat"), frozenset({1})) == (250 + 25 + 120 + 2 + 3, 5)
    short = "cpu0 250 25 120 9000 40 2 3\n"
    assert samples.parse_busy(short, frozenset({0})) == (400, 0)
    assert samples.parse_busy(golden("proc.stat"), frozenset({0, 7})) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("35, 1024\n", (0.35, 2**30)),
        ("50, 10\n100, 30\n", (0.75, 40 * 2**20)),
        ("[N/A], 10\n", (None, 10 * 2**20)),
        ("NVIDIA-SMI has failed, because\nno driver\n", (None, None)),
    ],
)
def test_gpus(text, expected):
    assert gpus.parse_gpus(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ""), ("", None), ("-1", None), ("0,2", "0,2"), ("GPU-8f3a-1", "GPU-8f3a-1"), ("MIG-1", "")],
)
def test_visible_gpus(value, expected):
    assert gpus.visible_gpus({} if value is None else {"CUDA_VISIBLE_DEVICES": value}) == expected


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "full avg10=0.00 total=5\n",
        "some\n",
        "some total=\n",
        "some avg10=1 total=-1\n",
        "some total=1.5\n",
    ],
)
def test_a_pressure_that_is_not_counted(text):
    assert cgroups.parse_pressure(text) is None


def test_reads_version_2_from_files(tmp_path):
    files = {
        "cpu.max": "max 100000\n",
        "pod/cpu.max": "200000 100000\n",
        "pod/one/cpu.max": "max 100000\n",
        "pod/one/cpu.stat": golden("v2.cpu.stat"),
        "pod/one/cpuset.cpus.effective": "2-3\n",
        "pod/one/memory.current": "8388608\n",
        "pod/one/memory.stat": golden("v2.memory.stat"),
        "pod/one/memory.max": "max\n",
        "pod/one/memory.events": golden("v2.memory.events"),
        "pod/memory.max": "1073741824\n",
        "pod/one/cpu.pressure": golden("v2.cpu.pressure"),
        "pod/one/memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    }
    write(tmp_path, files)
    mounts = [cgroups.Mount("/", str(tmp_path), "cgroup2", frozenset())]
    reader = cgroups.CgroupReader(kernel_files.KeptFiles(), {"": "/pod/one"}, mounts)
    assert reader.cpu_limit() == 2.0
    assert reader.cpus() == {2, 3}
    assert reader.cpu_seconds() == pytest.approx(81.250417)
    assert reader.throttled_seconds() == pytest.approx(4.031567)
    assert reader.memory_bytes() == 8388608 - 3145728
    assert reader.memory_limit() == 1073741824
    assert reader.oom_kills() == 1
    assert reader.pressures() == (pytest.approx(152.370913), 0.0, None)
    write(tmp_path, {"pod/one/cpu.max": "50000 100000\n"})
    assert reader.cpu_limit() == 0.5, "a limit that changes while the replica runs is seen"


def test_reads_version_1_from_files(tmp_path):
    files = {
        "cpu/cpu.cfs_quota_us": "-1\n",
        "cpu/cpu.cfs_period_us": "100000\n",
        "cpu/job/cpu.cfs_quota_us": "350000\n",
        "cpu/job/cpu.cfs_period_us": "100000\n",
        "cpu/job/cpu.stat": golden("v1.cpu.stat"),
        "cpu/job/cpuacct.usage": "2500000000\n",
        "cpuset/cpuset.cpus": "0-7\n",
        "memory/job/memory.usage_in_bytes": "8388608\n",
        "memory/job/memory.stat": golden("v1.memory.stat"),
        "memory/job/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/job/memory.oom_control": golden("v1.memory.oom_control"),
    }
    write(tmp_path, files)
    parts = {"cpu": "cpu,cpuacct", "cpuset": "cpuset", "memory": "memory"}
    mounts = [
        cgroups.Mount("/", str(tmp_path / name), "cgroup", frozenset(options.split(",")))
        for name, options in parts.items()
    ]
    paths = {"cpu": "/job", "cpuacct": "/job", "cpuset": "/", "memory": "/job", "": "/"}
    reader = cgroups.CgroupReader(kernel_files.KeptFiles(), paths, mounts)
    assert reader.cpu_limit() == 3.5
    assert reader.cpus() == set(range(8))
    assert reader.cpu_seconds() == 2.5
    assert reader.throttled_seconds() == pytest.approx(4.031567123)
    assert reader.memory_bytes() == 8388608 - 2097152
    assert reader.memory_limit() is None
    assert reader.oom_kills() == 3
    assert reader.pressures() == (None, None, None)
    # Version 2 may be mounted beside version 1, without controllers.
    (tmp_path / "unified").mkdir()
    write(tmp_path, {"unified/io.pressure": golden("v2.cpu.pressure")})
    mounts.append(cgroups.Mount("/", str(tmp_path / "unified"), "cgroup2", frozenset()))
    reader = cgroups.CgroupReader(kernel_files.KeptFiles(), paths, mounts)
    assert reader.pressures() == (None, None, pytest.approx(152.370913))


def test_what_is_not_there_is_none():
    reader = cgroups.CgroupReader(kernel_files.KeptFiles(), {}, [])
    values = [reader.cpu_limit(), reader.cpu_seconds(), reader.throttled_seconds()]
    values += [reader.memory_bytes(), reader.memory_limit(), reader.oom_kills()]
    assert values == [None] * 6
    assert reader.pressures() == (None, None, None)
    assert reader.cpus() == frozenset()


SHAPED = st.text(alphabet="0123456789 -,.:/\n\t()maxcpu\\", max_size=200)
PARSERS = [
    cgroups.parse_pressure,
    kernel_files.parse_integer,
    cgroups.parse_limit,
    cgroups.parse_cpus,
    cgroups.parse_mounts,
    cgroups.parse_cgroups,
    processes.parse_process,
    scheduling.parse_switches,
    scheduling.parse_run_delay,
    networks.parse_segments,
    networks.parse_needless,
    gpus.parse_gpus,
    lambda text: kernel_files.parse_keyed(text, "usage_usec"),
    lambda text: cgroups.parse_quota(text, text),
    lambda text: networks.parse_network(text, "eth0"),
    lambda text: samples.parse_busy(text, frozenset({0})),
    lambda text: cgroups.locate("cpu", cgroups.parse_cgroups(text), cgroups.parse_mounts(text)),
    lambda text: gpus.visible_gpus({"CUDA_VISIBLE_DEVICES": text}),
]


@given(st.text() | SHAPED)
def test_parsers_take_any_text(text):
    for parse in PARSERS:
        parse(text)


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir()))
@given(data=st.data())
def test_parsers_take_any_cut_of_a_real_file(name, data):
    text = golden(name)
    cut = data.draw(st.integers(0, len(text)))
    for parse in PARSERS:
        parse(text[:cut] + "9" * data.draw(st.sampled_from([0, 3, 5000])) + text[cut:])


@given(st.binary() | st.recursive(st.floats() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()))
def test_reports_take_any_bytes(line):
    assert reports.parse_report(line) is None


@given(st.frozensets(st.integers(0, 500)))
def test_cpu_lists_round_trip(cpus):
    assert cgroups.parse_cpus(cgroups.format_cpus(cpus)) == cpus


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type": "step", "step": 3}', {"type": "step", "step": 3, "at": 5.0}),
        (b'{"type": "evaluation", "at": 2, "auc": NaN}\n', {"type": "evaluation", "at": 2, "auc": None}),
        (b'{"type": "step", "loss": 1e999, "steps": 1}', {"type": "step", "steps": 1, "at": 5.0}),
        (b'{"type": "step", "steps": %s}' % (b"9" * 1_000_000), {"type": "step", "at": 5.0}),
        (b'{"type": "exited"}', None),
        (b'{"type": ["step"]}', None),
        (b"[]", None),
        (b"[" * 100_000, None),
        (b"\xff", None),
    ],
)
def test_reports(line, expected):
    report = reports.parse_report(line)
    if report is not None:
        reports.mend_report(report, 5.0)
    assert report == expected


@pytest.mark.parametrize(
    ("given", "left", "faults"),
    [
        ({"step": 3, "loss": None}, {"step": 3, "loss": None}, []),
        ({"step": "12", "loss": "0.5"}, {"step": 12, "loss": 0.5}, [
            'step is a text, and read as a number: "12"', 'loss is a text, and read as a number: "0.5"']),
        ({"step": "12 of 99", "steps": 1}, {"steps": 1}, ['step is no number that it can be: "12 of 99"']),
        ({"step": True, "steps": [1]}, {}, [
            "step is no number that it can be: true", "steps is no number that it can be: [1]",
            'step: no field of it is known, only ""']),
        ({"global_step": 3, "Loss": 1}, {"global_step": 3, "Loss": 1}, [
            'step: no field of it is known, only "Loss, global_step"']),
        ({"step": 10**30, "steps": 1}, {"steps": 1}, [f"step is no number that it can be: {10**30}"]),
        ({"step": 1, "at": 1.8e12}, {"step": 1}, ["at is no time in Unix seconds: 1800000000000.0"]),
        ({"step": 1, "at": 12.5}, {"step": 1}, ["at is no time in Unix seconds: 12.5"]),
        ({"step": -1, "steps": 1, "loss": -2.5}, {"steps": 1, "loss": -2.5}, [
            "step is no number that it can be: -1"]),
        ({"loss": 1e200, "steps": 1}, {"steps": 1}, ["loss is no number that it can be: 1e+200"]),
        ({"step": 1, "at": "now"}, {"step": 1}, ['at is no time in Unix seconds: "now"']),
        ({"step": 1, "loss": "x" * 500}, {"step": 1}, [
            'loss is no number that it can be: "' + "x" * 79 + "..."]),
    ],
)  # fmt: skip
def test_a_bad_field_costs_that_field_alone(given, left, faults):
    report = {"type": "step", **given}
    assert reports.mend_report(report, 1.7e9) == faults
    assert report == {"type": "step", "at": 1.7e9, **left}


@pytest.mark.parametrize(("kind", "record"), [("step", StepReport), ("evaluation", EvaluationReport)])
def test_the_agent_knows_the_numbers_that_are_kept(kind, record):
    """It runs where Paceline is not, so that the names stand there as well."""
    names = {field.name for field in dataclasses.fields(record)} - {"replica", "attempt", "at"}
    assert set(reports.REPORT_NUMBERS[kind]) == names


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(reports.REPORT_NUMBERS)), st.data())
def test_numbers_of_a_report_are_numbers_whatever_was_written(kind, data):
    names = (*reports.REPORT_NUMBERS[kind], "at", "other")
    written = data.draw(st.dictionaries(st.sampled_from(names), JSON))
    report = reports.parse_report(json.dumps({"type": kind, **written}).encode())
    reports.mend_report(report, 1.7e9)
    for name in (*reports.REPORT_NUMBERS[kind], "at"):
        value = report.get(name)
        assert value is None or (
            type(value) in (int, float) and (abs(value) < 2**63 or name in reports.QUALITIES)
        )
    read = spools.parse(json.dumps(report).encode() + b"\n", replica=WORKER, attempt=1, offset=0)
    assert read.broken == 0
