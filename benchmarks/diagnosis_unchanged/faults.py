"""What is done to jobs of unchanged scripts: acts of the corpus, and mistakes that scripts have.

A mistake is an option of the scripts in `scripts`, which are sound without; nothing of Paceline knows of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping

from benchmarks.diagnosis import changes, checks, effects
from benchmarks.diagnosis.bases import FOUR, PLAIN, PS_HOST, TRIO, WHOLE, WORKER_HOST, Base
from benchmarks.diagnosis.checks import Check, Effect
from benchmarks.diagnosis.faults import cores, inputs, lives, memories, networks, progresses, servers, workers
from benchmarks.diagnosis.faults.faults import Fault, Maker, Severity, of
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.trials import FELT_SECONDS, Ending, Outcome
from benchmarks.diagnosis_unchanged.bases import FACTORISATION, SEQUENCE, WIDE_DEEP
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RoleSpec
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.roles import Role

Arguments = tuple[str, ...]
_LIVE = (Ending.LIVE,)
_WAITING = "waiting-for-ps"
#: A rule says so of what ended, or does not come, after 30 s; before that TensorFlow is loaded.
_SILENT_SECONDS = 60.0
#: A chief begins so much later than those who wait for it.
_CHIEF_LATE = ("--chief-late", "8")
_PORT = "2222"
_LAST = "worker-2"


def _is_written(what: str) -> Check:
    """What a script asks for is there by construction; it need not cost anything."""

    def check(known: Known, outcome: Outcome) -> Effect:
        speed = effects.speed(outcome.recording, outcome.began_at + FELT_SECONDS)
        ratio = round(speed / known.speed, 3) if known.speed else None
        return Effect(what=what, value=1.0, holds=True, speed_ratio=ratio)

    return check


def _succeeded(role: Role) -> Check:
    """A replica of a role has ended without an error, and no trainer has made a step."""

    def check(known: Known, outcome: Outcome) -> Effect:
        recording = outcome.recording
        rows = [row for row in recording.replicas if row.replica.role is role]
        count = sum(row.phase is ReplicaPhase.SUCCEEDED for row in rows)
        return Effect(
            what=f"replicas of role {role} that completed, without a step: >= 1",
            value=float(count),
            holds=count >= 1 and not recording.steps,
        )

    return check


def _restarted(replica: str) -> Check:
    """A replica is in its second attempt, and makes steps."""

    def check(known: Known, outcome: Outcome) -> Effect:
        rows = outcome.recording.replicas
        restarts = max((row.restarts for row in rows if str(row.replica) == replica), default=0)
        return Effect(what=f"restarts of {replica}: >= 1", value=float(restarts), holds=restarts >= 1)

    return check


def _by_script(
    cause: str,
    options: Callable[[Base, Severity], Arguments],
    *,
    felt: Check | None = None,
    kind: str = PLAIN,
    also: Collection[str] = (),
    accepted: Collection[str] = (),
) -> Maker:
    """Return the maker of a mistake that is an option of the script and lets the job train."""

    def make(base: Base, severity: Severity) -> Fault:
        def change(spec: JobSpec, known: Known) -> JobSpec:
            return changes.arguments(spec, *options(base, severity))

        return Fault(
            cause=cause,
            base=base.of_kind(kind),
            felt=felt or checks.slower(),
            change=change,
            also=also,
            accepted=accepted,
        )

    return make


def _always(*options: str) -> Callable[[Base, Severity], Arguments]:
    return lambda base, severity: options


def _more(*options: str, values: tuple[float, float, float]) -> Callable[[Base, Severity], Arguments]:
    """Return options of which the last one has a value by severity."""
    return lambda base, severity: (*options, f"{of(severity, *values):.12g}")


def _for_script(
    options: Mapping[str, Callable[[Base, Severity], Arguments]],
) -> Callable[[Base, Severity], Arguments]:
    return lambda base, severity: options[base.model](base, severity)


def _silent(
    cause: str,
    *options: str,
    felt: Check,
    change: Callable[[JobSpec], JobSpec] = lambda spec: spec,
    also: Collection[str] = (),
) -> Maker:
    """Return the maker of a mistake with which no trainer ever makes a step."""

    def make(base: Base, severity: Severity) -> Fault:
        return Fault(
            cause=cause,
            base=base.of_kind(PLAIN),
            felt=felt,
            change=lambda spec, known: changes.arguments(change(spec), *options),
            also=also,
            endings=_LIVE,
            starts=False,
            seconds=_SILENT_SECONDS,
        )

    return make


def _no_variables(base: Base, severity: Severity) -> Fault:
    """The device setter is made and not used: every worker has variables of its own, and the second waits."""
    fault = _by_script("no-variables-on-ps", _always("--no-setter"), felt=checks.resting(Role.PS, 0.2))
    made = fault(base, severity)
    return dataclasses.replace(made, steps_from=("worker-0",), also=("waiting-at-start", "idle-workers"))


def _with_chief(spec: JobSpec) -> JobSpec:
    return changes.with_role(spec, RoleSpec(role=Role.CHIEF))


def _trained_anew(base: Base, severity: Severity) -> Fault:
    """The first worker ends in the middle of training, comes back, and finds no checkpoint."""

    def change(spec: JobSpec, known: Known) -> JobSpec:
        after = f"{of(severity, 18, 12, 6):g}"
        spec = changes.role(spec, Role.WORKER, restart=RestartPolicy())
        return changes.arguments(spec, "--crashing", "worker-0", "--fail-after", after)

    return Fault(
        cause="trained-anew",
        base=base.of_kind(PLAIN),
        felt=_restarted("worker-0"),
        change=change,
        endings=_LIVE,
        seconds=_SILENT_SECONDS,
        is_whole=True,
    )


def _recovery_wait(base: Base, severity: Severity) -> Fault:
    """Workers look for the chief's variables once in half a minute, and it comes a moment after the look."""
    wait = {WIDE_DEEP: ("--impatient",), FACTORISATION: ("--recovery-wait", "30")}[base.model]
    made = _by_script(
        "recovery-wait", _always(*wait, *_CHIEF_LATE), felt=_is_written("a worker sleeps at its start")
    )
    return dataclasses.replace(made(base, severity), is_whole=True)


def _narrowed(
    cause: str, names: str, role: Role, values: tuple[float, float, float], felt: Check, kind: str
) -> Maker:
    """Return the maker of links that carry less than what would go over them, of hosts named so."""

    def make(base: Base, severity: Severity) -> Fault:
        def change(spec: JobSpec, known: Known) -> JobSpec:
            bits = known.bits_per_second[role] * of(severity, *values)
            return changes.hosts(spec, names, bandwidth_bits_per_second=round(bits))

        return Fault(cause=cause, also=(_WAITING,), base=base.of_kind(kind), felt=felt, change=change)

    return make


def _sync_straggler(base: Base, severity: Severity) -> Fault:
    """Steps need the gradients of all workers, and the last one's host is weak."""
    slow = workers.slow_host(base, severity)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.arguments(slow.change(spec, known), "--sync")

    return dataclasses.replace(
        slow, cause="sync-straggler", also=("slow-host", _WAITING), felt=checks.slower(), change=change
    )


def _threads(base: Base, severity: Severity) -> Fault:
    """The job file asks for many threads, and the script leaves their number to TensorFlow."""
    known_threads = cores.too_many_threads(base, severity)
    return dataclasses.replace(
        known_threads,
        change=lambda spec, known: changes.arguments(known_threads.change(spec, known), "--threads", "0"),
    )


def _command_failed(base: Base, severity: Severity) -> Fault:
    """A trainer's script raises an error in the middle of training."""
    fault = lives.command_failed(base, severity)
    if base.model != SEQUENCE:
        return fault
    after = f"{of(severity, 18, 10, 1):g}"
    options = ("--failing", "chief-0", "--fail-after", after)
    return dataclasses.replace(fault, change=lambda spec, known: changes.arguments(spec, *options))


_LOST = _for_script(
    {
        WIDE_DEEP: _more("--log-of", values=(900, 300, 30)),
        FACTORISATION: _more("--log-of", values=(900, 300, 30)),
        SEQUENCE: _always("--log-of", "1"),
    }
)
_FLOOD = _for_script(
    {
        WIDE_DEEP: _more("--flood", values=(400, 800, 1600)),
        FACTORISATION: _more("--flood", values=(400, 800, 1600)),
        SEQUENCE: _more("--flood", values=(8000, 16000, 32000)),
    }
)
_DENSE_UPDATE = _for_script(
    {
        WIDE_DEEP: _more("--optimizer", "adam", "--rows", values=(20_000, 60_000, 160_000)),
        FACTORISATION: _more("--optimizer", "adam", "--users", values=(80_000, 200_000, 400_000)),
        SEQUENCE: _more("--optimizer", "adam", "--words", values=(50_000, 150_000, 400_000)),
    }
)
_ONE_HOT = _for_script(
    {
        WIDE_DEEP: _more("--one-hot", "--rows", values=(4000, 8000, 16_000)),
        FACTORISATION: _more("--one-hot", "--users", values=(20_000, 30_000, 40_000)),
        SEQUENCE: _more("--one-hot", "--words", values=(8000, 16_000, 32_000)),
    }
)
_ALL_LOST = checks.loses_its_loss()
_BOTH, _EVERY = (WIDE_DEEP, FACTORISATION), (WIDE_DEEP, FACTORISATION, SEQUENCE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A maker, the scripts that it fits, each once or more, and the TensorFlows that it is for; none: all."""

    make: Maker
    scripts: tuple[str, ...]
    versions: tuple[str, ...] = ()


#: By a name that is the cause's, with more where a cause has several makers.
MAKERS: Mapping[str, Entry] = {
    # Acts of the corpus, and mistakes of a job file.
    "ps-cpu-bound": Entry(make=servers.ps_cpu_bound, scripts=_EVERY),
    "compute-bound": Entry(make=workers.compute_bound, scripts=_EVERY),
    "noisy-neighbour": Entry(make=cores.noisy_neighbour, scripts=_EVERY),
    "hang": Entry(make=progresses.hang, scripts=_EVERY),
    "killed": Entry(make=lives.killed, scripts=_EVERY),
    "waiting-at-start": Entry(make=progresses.waiting_at_start, scripts=_EVERY),
    "command-failed": Entry(make=_command_failed, scripts=_EVERY),
    "slow-host": Entry(make=workers.slow_host, scripts=_BOTH),
    "slow-host-crowded": Entry(make=workers.crowded_host, scripts=_BOTH),
    "fractional-cores": Entry(make=cores.fractional_cores, scripts=_BOTH),
    "exclusive-not-got": Entry(make=cores.exclusive_not_got, scripts=_BOTH),
    "too-many-threads": Entry(make=_threads, scripts=_BOTH),
    "retransmissions": Entry(make=networks.retransmissions, scripts=_BOTH),
    "memory-near-limit": Entry(make=memories.memory_near_limit, scripts=_BOTH),
    "memory-near-limit-growing": Entry(make=memories.memory_grows, scripts=_BOTH),
    "memory-over-asked": Entry(make=memories.memory_over_asked, scripts=_BOTH),
    "out-of-memory": Entry(make=lives.out_of_memory, scripts=_BOTH),
    "ps-network-bound": Entry(
        make=_narrowed("ps-network-bound", PS_HOST, Role.PS, (0.8, 0.5, 0.3), checks.slower(), PLAIN),
        scripts=_BOTH,
    ),
    "worker-link": Entry(
        make=_narrowed("worker-link", WORKER_HOST, Role.WORKER, (0.8, 0.5, 0.3), checks.slower(), PLAIN),
        scripts=_BOTH,
    ),
    "worker-link-one": Entry(
        make=_narrowed(
            "worker-link", f"{WORKER_HOST}-2", Role.WORKER, (0.6, 0.4, 0.2), checks.straggles(_LAST), TRIO
        ),
        scripts=_BOTH,
    ),
    "slow-storage": Entry(make=inputs.slow_storage, scripts=(WIDE_DEEP, WIDE_DEEP)),
    "slow-disk": Entry(make=workers.slow_disk, scripts=(WIDE_DEEP, WIDE_DEEP)),
    # Mistakes of scripts.
    "loss-not-finite": Entry(make=_by_script("loss-not-finite", _LOST, felt=_ALL_LOST), scripts=_EVERY),
    "log-flood": Entry(
        make=_by_script("log-flood", _FLOOD, felt=_is_written("lines in each step")), scripts=_EVERY
    ),
    "dense-update": Entry(
        make=_by_script("dense-update", _DENSE_UPDATE, also=(_WAITING, "ps-cpu-bound")), scripts=_EVERY
    ),
    "one-hot-table": Entry(
        make=_by_script("one-hot-table", _ONE_HOT, also=(_WAITING, "dense-gradient")), scripts=_EVERY
    ),
    "dense-gradient": Entry(
        make=_by_script(
            "dense-gradient",
            _for_script({WIDE_DEEP: _always("--scaled"), FACTORISATION: _always("--regularised")}),
            also=(_WAITING, "ps-cpu-bound", "ps-network-bound", "worker-link"),
        ),
        scripts=_BOTH,
    ),
    "giant-variable": Entry(
        make=_by_script(
            "giant-variable",
            _for_script(
                {
                    WIDE_DEEP: _always("--tables", "1", "--rows", "32000"),
                    FACTORISATION: _always("--parts", "1"),
                }
            ),
            kind=FOUR,
            also=(_WAITING,),
        ),
        scripts=_BOTH,
    ),
    "uneven-placement": Entry(
        make=_by_script(
            "uneven-placement",
            _for_script(
                {WIDE_DEEP: _always("--heap"), FACTORISATION: _always("--heap", "--parts", "8")}
            ),
            kind=FOUR,
            also=(_WAITING,),
        ),
        scripts=_BOTH,
    ),
    "no-variables-on-ps": Entry(make=_no_variables, scripts=_BOTH),
    "ps-ended": Entry(
        make=_silent("ps-ended", "--no-join", felt=_succeeded(Role.PS), also=("waiting-at-start",)),
        scripts=_BOTH,
    ),
    "other-addresses": Entry(
        make=_silent(
            "other-addresses", "--ports", _PORT, felt=checks.never_stepped(), also=("waiting-at-start",)
        ),
        scripts=_BOTH,
    ),
    "nothing-trained": Entry(
        make=_silent(
            "nothing-trained",
            "--master",
            felt=_succeeded(Role.CHIEF),
            change=_with_chief,
            also=("waiting-at-start", "idle-workers"),
        ),
        scripts=_BOTH,
    ),
    "trained-anew": Entry(make=_trained_anew, scripts=_BOTH),
    "recovery-wait": Entry(make=_recovery_wait, scripts=_BOTH),
    "no-device-filters": Entry(
        make=_by_script(
            "no-device-filters", _always("--no-filters"), felt=_is_written("sessions see all workers")
        ),
        scripts=_BOTH,
    ),
    "log-device-placement": Entry(
        make=_by_script(
            "log-device-placement", _always("--log-placement"), felt=_is_written("devices are printed")
        ),
        scripts=_BOTH,
    ),
    "frequent-checkpoints": Entry(
        make=_by_script(
            "frequent-checkpoints",
            _more("--rows", "40000", "--checkpoint-seconds", values=(4, 2, 1)),
        ),
        scripts=(WIDE_DEEP, WIDE_DEEP),
    ),
    "frequent-summaries": Entry(
        make=_by_script(
            "frequent-summaries",
            _more("--summary-steps", values=(4, 2, 1)),
            felt=checks.straggles("worker-0"),
            also=("slow-host",),
        ),
        scripts=(WIDE_DEEP, WIDE_DEEP),
    ),
    "sync-straggler": Entry(make=_sync_straggler, scripts=(WIDE_DEEP, WIDE_DEEP)),
    "python-input": Entry(
        make=_by_script("python-input", _more("--parse-in-python", values=(2, 4, 8)), kind=WHOLE),
        scripts=(WIDE_DEEP, WIDE_DEEP),
    ),
    "large-feeds": Entry(
        make=_by_script(
            "large-feeds",
            _more("--feed-floats", values=(4_000_000, 6_000_000, 8_000_000)),
            kind=WHOLE,
        ),
        scripts=(WIDE_DEEP, WIDE_DEEP),
    ),
    "resting-script": Entry(
        make=_by_script("resting-script", _more("--pause", values=(0.1, 0.2, 0.4))),
        scripts=(WIDE_DEEP, WIDE_DEEP),
    ),
    "no-prefetch": Entry(
        make=_by_script(
            "no-prefetch",
            _more("--no-prefetch", "--decodings", values=(20, 40, 80)),
            accepted=("slow-decoding",),
        ),
        scripts=(FACTORISATION, FACTORISATION),
        # Later ones put the prefetching in by themselves.
        versions=("1.12.3",),
    ),
}  # fmt: skip
