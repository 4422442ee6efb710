"""Any job that there may be."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from paceline.model.jobs import code_sources, placements
from paceline.model.jobs import job_specs as jobs
from paceline.model.roles import ReplicaId, Role

_PLAIN = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\ufffe\uffff")
_VALUES = st.text(_PLAIN | st.sampled_from("\n\t\u2028\x85"), max_size=12) | st.sampled_from(
    [
        "no",
        "1.10",
        "~",
        "",
        " x ",
        "a: b",
        "- a",
        "#",
        "1e-3",
        "=",
        "<<",
        "{ps_hosts}",
        "2001-01-01",
        "|",
        "'",
        '"',
    ]
)
_WORDS = _VALUES
#: On Kubernetes the name of a job is that of a Service, too.
_JOB_NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
_NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
_KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
_LABELS = st.dictionaries(
    st.from_regex(r"([a-z]{1,5}\.io/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True),
    st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?)?", fullmatch=True),
    max_size=2,
)
_CORES = st.none() | st.integers(1, 4_096_000).map(lambda millicores: millicores / 1000)
_BYTES = st.none() | st.integers(1, 2**50) | st.integers(1, 64).map(lambda gib: gib * 2**30)
_SECONDS = st.integers(0, 10**8).map(float) | st.floats(0, 10**6, allow_subnormal=False).map(
    lambda s: round(s, 6)
)
_THREADS = st.none() | st.integers(1, 4096)
_COMMANDS = st.lists(_WORDS, max_size=4).map(tuple)
_PATHS = st.from_regex(r"/[a-z0-9 ]{0,8}[a-z]", fullmatch=True)
_ENVIRONMENTS = st.dictionaries(_KEYS, _VALUES, max_size=3)


@st.composite
def _overrides(draw: st.DrawFn, roles: tuple[jobs.RoleSpec, ...]) -> dict[ReplicaId, jobs.Override]:
    found = {}
    for role in roles:
        for index in draw(st.sets(st.integers(0, role.replicas - 1), max_size=2)):
            own = jobs.Override(cpu_cores=draw(_CORES), memory_bytes=draw(_BYTES))
            if own != jobs.Override():
                found[ReplicaId(role.role, index)] = own
    return found


@st.composite
def _autoscales(draw: st.DrawFn, roles: tuple[jobs.RoleSpec, ...]) -> jobs.Autoscale | None:
    scaled = [
        role
        for role in roles
        if role.role is not Role.EVALUATOR
        and role.cpu_cores is not None
        and role.cpu_policy is jobs.CpuPolicy.SHARED
    ]
    if not scaled or not draw(st.booleans()):
        return None
    chosen = draw(st.lists(st.sampled_from(scaled), min_size=1, unique_by=lambda role: role.role))
    return jobs.Autoscale(
        ranges={role.role: jobs.CoreRange(role.cpu_cores or 0.0, role.cpu_cores or 0.0) for role in chosen},
        most_cores=draw(_CORES),
        every_seconds=float(draw(st.integers(300, 10**6))),
    )


@st.composite
def _roles(draw: st.DrawFn, role: Role) -> jobs.RoleSpec:
    memory = draw(_BYTES)
    growth = None
    if memory is not None and draw(st.booleans()):
        cap = draw(st.none() | st.integers(memory, 2**55))
        factor = draw(st.floats(1.001, 16))
        growth = jobs.MemoryGrowth(factor=factor, cap_bytes=cap)
    replicas = 1 if role is Role.CHIEF else draw(st.integers(1, 10_000))
    return jobs.RoleSpec(
        role=role,
        replicas=replicas,
        max_replicas=draw(st.none() | st.integers(replicas, 10_000)) if role is Role.WORKER else None,
        cpu_cores=draw(_CORES),
        memory_bytes=memory,
        gpus=draw(st.integers(0, 8)),
        cpu_policy=draw(st.sampled_from(jobs.CpuPolicy)),
        threads=draw(_THREADS),
        command=draw(_COMMANDS),
        environment=draw(_ENVIRONMENTS),
        restart=jobs.RestartPolicy(
            when=draw(st.sampled_from(jobs.RestartWhen)),
            limit=draw(st.integers(0, 10_000)),
            backoff_seconds=draw(_SECONDS),
        ),
        memory_growth=growth,
    )


_TOLERATIONS = st.builds(
    placements.Toleration,
    key=st.just("k"),
    value=st.none() | st.sampled_from(["v", "yes", ""]),
    effect=st.just("NoExecute"),
    toleration_seconds=st.none() | st.integers(0, 100),
)
_HOSTS = st.lists(
    st.builds(
        jobs.Host,
        name=_NAMES,
        cpu_cores=_CORES,
        memory_bytes=_BYTES,
        bandwidth_bits_per_second=st.none() | st.integers(8000, 10**13),
    ),
    max_size=3,
    unique_by=lambda host: host.name,
).map(tuple)
_OTHERS = st.sampled_from([jobs.Framework.TENSORFLOW, jobs.Framework.PLAIN])
_TRAININGS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "optimizer": st.fixed_dictionaries(
            {"name": st.sampled_from(["adagrad", "adam"])},
            optional={"learning_rate": st.floats(1e-30, 100, exclude_min=True)},
        ),
        "batch_size": st.integers(1, 10**7),
        "hidden_units": st.lists(st.integers(1, 1000), max_size=3),
        "fused_tables": st.booleans(),
        "inputs": st.fixed_dictionaries({"train": st.sampled_from(["a*.csv", "no"]) | st.just(["a", "1"])}),
    },
)


_CODES = st.builds(
    lambda source, path: code_sources.Code(**source, path=path),
    st.one_of(
        st.builds(
            code_sources.Git,
            url=st.sampled_from(["https://h.example/x.git", "git@h:x", "file:///a%20b"]),
            revision=st.sampled_from(["main", "1e5", "no", "refs/tags/v1"]),
        ).map(lambda git: {"git": git}),
        st.builds(
            code_sources.Archive,
            url=st.sampled_from(["s3://b/x.tgz", "https://h/x?a=b&c"]),
            sha256=st.sampled_from(["0" * 64, "1" * 63 + "a", "1e" + "0" * 62]),
        ).map(lambda archive: {"archive": archive}),
        st.sampled_from([{"folder": "../src"}, {"folder": "no"}, {"config_map": "clicks-code-1"}]),
    ),
    st.none() | st.sampled_from(["a/b", "1.0"]),
)


@st.composite
def job_specs(draw: st.DrawFn) -> jobs.JobSpec:
    kinds = draw(st.lists(st.sampled_from([Role.PS, Role.CHIEF, Role.EVALUATOR]), unique=True))
    kinds.insert(draw(st.integers(0, len(kinds))), Role.WORKER)
    volumes: list[jobs.Volume] = []
    for index in range(draw(st.integers(0, 2))):
        source: dict[str, Any] = draw(
            st.sampled_from([{"host_path": "/data"}, {"claim": "c"}, {"secret": "s.t"}])
        )
        path = f"{draw(_PATHS)}{index}"
        volumes.append(
            jobs.Volume(name=f"v{index}", mount_path=path, read_only=draw(st.booleans()), **source)
        )
    # The restricted profile allows no folders of hosts.
    profiles = [
        profile
        for profile in jobs.SecurityProfile
        if profile is jobs.SecurityProfile.IMAGE or not any(volume.host_path for volume in volumes)
    ]
    code = draw(st.none() | _CODES)
    training = draw(_TRAININGS)
    roles = tuple(draw(_roles(role)) for role in kinds)
    return jobs.JobSpec(
        name=draw(_JOB_NAMES),
        labels=draw(_LABELS),
        framework=draw(_OTHERS) if training is None else jobs.Framework.TENSORFLOW,
        image=draw(st.none() | st.just("r.example.com:5000/a/b:1@sha256:00")),
        command=draw(st.lists(_WORDS, min_size=1, max_size=4).map(tuple)),
        code=code,
        working_dir=draw(st.none() | st.sampled_from([".", "a b", "点", "../x" if code is None else "/x"])),
        environment=draw(_ENVIRONMENTS),
        roles=roles,
        overrides=draw(_overrides(roles)),
        autoscale=draw(_autoscales(roles)),
        placement=placements.PodPlacement(
            strategy=draw(st.sampled_from(placements.PlacementStrategy)),
            node_selector=draw(_LABELS),
            tolerations=tuple(draw(st.lists(_TOLERATIONS, max_size=2))),
        ),
        scheduling=jobs.SchedulingSpec(
            fit=draw(st.sampled_from(jobs.FitPolicy)), priority=draw(st.integers(-1_000_000, 1_000_000))
        ),
        hosts=draw(_HOSTS),
        success=draw(st.sampled_from(jobs.SuccessPolicy)),
        clean_up=draw(st.sampled_from(jobs.CleanUp)),
        active_deadline_seconds=draw(st.none() | _SECONDS),
        ttl_after_finished_seconds=draw(st.none() | _SECONDS),
        termination_grace_seconds=draw(_SECONDS),
        volumes=tuple(volumes),
        secrets=tuple(draw(st.lists(_NAMES, max_size=2))),
        security=jobs.Security(
            profile=draw(st.sampled_from(profiles)), user=draw(st.none() | st.integers(1, 2**31 - 1))
        ),
        training=training,
    )
