"""Conversion of the sections of a job file to a `JobSpec`, and the checks that involve several fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paceline.model.jobs import code_sources, job_specs, placements
from paceline.model.roles import ReplicaId, Role
from paceline.model.variables import conflicts, consistencies, optimizers, schedules
from paceline.model.variables.variable_plans import PlacementRule
from paceline.specs.job_file import shapes, trainings
from paceline.specs.yaml_text import documents, problems

DEFAULT_GRACE_SECONDS = 30.0
#: The minimum time between rounds of `autoscale`.
LEAST_ROUND_SECONDS = 300.0
CODE_SOURCES = ("git", "archive", "folder", "config_map")

Found = Iterator[problems.Problem]


def job_spec(section: shapes.JobSection, order: Sequence[str]) -> job_specs.JobSpec:
    """Return the job that a checked file asks for, with every default filled in.

    Args:
        section: the checked file.
        order: the roles in the order of the file.
    """
    spec = section.spec
    roles = tuple(
        _role_spec(Role(name), role, spec)
        for name in order
        if (role := getattr(spec.roles, name)) is not None and role.replicas > 0
    )
    has_chief = any(role.role is Role.CHIEF for role in roles)
    default_success = job_specs.SuccessPolicy.CHIEF if has_chief else job_specs.SuccessPolicy.ALL_WORKERS
    grace = spec.termination_grace
    return job_specs.JobSpec(
        name=section.metadata.name,
        labels=dict(section.metadata.labels),
        framework=spec.framework or job_specs.Framework.TENSORFLOW,
        instrumentation=spec.instrumentation or job_specs.Instrumentation.AUTO,
        image=spec.image,
        command=tuple(spec.command or ()),
        code=_code(spec.code),
        working_dir=spec.working_dir,
        environment=dict(spec.environment),
        roles=roles,
        overrides={
            ReplicaId.parse(name): job_specs.Override(cpu_cores=each.cpu, memory_bytes=each.memory)
            for name, each in spec.overrides.items()
        },
        placement=_placement(spec.placement),
        scheduling=_scheduling(spec.scheduling),
        hosts=tuple(_host(host) for host in spec.hosts),
        success=spec.success or default_success,
        clean_up=spec.clean_up or job_specs.CleanUp.RUNNING,
        active_deadline_seconds=spec.active_deadline,
        ttl_after_finished_seconds=spec.ttl_after_finished,
        termination_grace_seconds=DEFAULT_GRACE_SECONDS if grace is None else grace,
        volumes=tuple(job_specs.Volume(**volume.model_dump()) for volume in spec.volumes),
        secrets=tuple(spec.secrets),
        security=_security(spec.security),
        autoscale=_autoscale(spec.autoscale),
        training=_training(spec.training),
    )


def _role_spec(role: Role, section: shapes.RoleSection, spec: shapes.SpecSection) -> job_specs.RoleSpec:
    threads = spec.threads if section.threads is None else section.threads
    restart = job_specs.RestartPolicy()
    if section.restart is not None:
        given = section.restart
        restart = job_specs.RestartPolicy(
            when=given.when or restart.when,
            limit=restart.limit if given.limit is None else given.limit,
            backoff_seconds=restart.backoff_seconds if given.backoff is None else given.backoff,
        )
    growth = None
    if section.memory_growth is not None:
        factor = section.memory_growth.factor or job_specs.MemoryGrowth().factor
        growth = job_specs.MemoryGrowth(factor=factor, cap_bytes=section.memory_growth.cap)
    return job_specs.RoleSpec(
        role=role,
        replicas=section.replicas,
        max_replicas=section.max_replicas,
        cpu_cores=section.cpu,
        memory_bytes=section.memory,
        gpus=section.gpu,
        cpu_policy=section.cpu_policy or spec.cpu_policy or job_specs.CpuPolicy.SHARED,
        threads=threads or None,
        command=tuple(section.command or ()),
        environment=dict(section.environment),
        restart=restart,
        memory_growth=growth,
    )


def _code(section: shapes.CodeSection | None) -> code_sources.Code | None:
    if section is None:
        return None
    return code_sources.Code(
        git=code_sources.Git(**section.git.model_dump()) if section.git else None,
        archive=code_sources.Archive(**section.archive.model_dump()) if section.archive else None,
        folder=section.folder,
        config_map=section.config_map,
        path=section.path,
    )


def _placement(section: shapes.PlacementSection | None) -> placements.PodPlacement:
    if section is None:
        return placements.PodPlacement()
    return placements.PodPlacement(
        strategy=section.strategy or placements.PlacementStrategy.ANY,
        node_selector=dict(section.node_selector),
        tolerations=tuple(placements.Toleration(**t.model_dump()) for t in section.tolerations),
    )


def _scheduling(section: shapes.SchedulingSection | None) -> job_specs.SchedulingSpec:
    if section is None:
        return job_specs.SchedulingSpec()
    return job_specs.SchedulingSpec(
        fit=section.fit or job_specs.FitPolicy.HOLD,
        priority=section.priority,
        queue=section.queue,
        priority_class=section.priority_class,
    )


def _security(section: shapes.SecuritySection | None) -> job_specs.Security:
    if section is None:
        return job_specs.Security()
    return job_specs.Security(profile=section.profile or job_specs.SecurityProfile.IMAGE, user=section.user)


def _autoscale(section: shapes.AutoscaleSection | None) -> job_specs.Autoscale | None:
    if section is None:
        return None
    given = {role: getattr(section, str(role), None) for role in Role}
    return job_specs.Autoscale(
        ranges={
            role: job_specs.CoreRange(each.cpu.min, each.cpu.max)
            for role, each in given.items()
            if each is not None
        },
        most_cores=section.cpu,
        every_seconds=job_specs.Autoscale(ranges={}).every_seconds
        if section.every is None
        else section.every,
    )


def _host(section: shapes.HostSection) -> job_specs.Host:
    return job_specs.Host(
        name=section.name,
        cpu_cores=section.cpu,
        memory_bytes=section.memory,
        bandwidth_bits_per_second=section.bandwidth,
    )


def _training(section: trainings.TrainingSection | None) -> dict[str, Any] | None:
    """Return the section as plain values, with only the fields that the user wrote."""
    return None if section is None else section.model_dump(exclude_unset=True)


def contradictions(document: documents.Document, section: shapes.JobSection) -> Found:
    """Yield the problems that make a job impossible although every single field is valid."""
    yield from _roles(document, section.spec)
    yield from _overrides(document, section.spec)
    yield from _scaled(document, section.spec)
    yield from _code_sources(document, section.spec)
    yield from _framework(document, section.spec)
    yield from _hosts(document, section.spec)
    yield from _tolerations(document, section.spec)
    yield from _volumes(document, section.spec)
    yield from _variables(document, section.spec)
    yield from _plans(document, section.spec)
    yield from _schedules(document, section.spec)
    yield from _checkpoints(document, section.spec)
    yield from _consistency(document, section.spec)


def _roles(document: documents.Document, spec: shapes.SpecSection) -> Found:
    path: documents.Path = ("spec", "roles")
    present = {role: getattr(spec.roles, role) for role in Role if getattr(spec.roles, role) is not None}
    live = {role: section for role, section in present.items() if section.replicas > 0}
    if not any(role.trains for role in live):
        message = "nothing trains: the job has no worker and no chief; add worker: {replicas: 1}"
        yield document.problem(path, message, key=True)
    for role, section in live.items():
        here = (*path, str(role))
        if role is Role.CHIEF and section.replicas > 1:
            yield document.problem((*here, "replicas"), f"a job has at most 1 chief, not {section.replicas}")
        if section.max_replicas is not None and role is not Role.WORKER:
            message = "only workers can be scaled while a job runs; remove it"
            yield document.problem((*here, "max_replicas"), message, key=True)
        elif section.max_replicas is not None and section.max_replicas < section.replicas:
            message = f"the job has {section.replicas} replicas, so this is at least {section.replicas}"
            yield document.problem((*here, "max_replicas"), message)
        if not section.command and not spec.command:
            message = (
                "the role has no command, and neither has the job; write spec.command: [python, train.py]"
            )
            yield document.problem(here, message, key=True)
        yield from _growth(document, here, section)


def _overrides(document: documents.Document, spec: shapes.SpecSection) -> Found:
    for name, override in spec.overrides.items():
        path, replica = ("spec", "overrides", name), ReplicaId.parse(name)
        section = getattr(spec.roles, str(replica.role))
        most = 0 if section is None else max(section.replicas, section.max_replicas or 0)
        if replica.index >= most:
            has = f"{most} {replica.role}, numbered from 0" if most else f"no {replica.role}"
            yield document.problem(path, f"the job has {has}; remove this", key=True)
        elif override.cpu is None and override.memory is None:
            yield document.problem(path, "nothing is different of it; write cpu or memory", key=True)


def _scaled(document: documents.Document, spec: shapes.SpecSection) -> Found:
    scale, path = spec.autoscale, ("spec", "autoscale")
    if scale is None:
        return
    names = [name for name in ("ps", "worker", "chief") if getattr(scale, name) is not None]
    if not names:
        yield document.problem(path, "no role is scaled; write ps: {cpu: {min: 1, max: 4}}", key=True)
    for name in names:
        section, cpu = getattr(spec.roles, name), getattr(scale, name).cpu
        if section is None or section.replicas == 0:
            yield document.problem((*path, name), f"the job has no {name}; remove it", key=True)
        elif section.cpu is None:
            message = f"its cores are not limited; give spec.roles.{name} a cpu"
            yield document.problem((*path, name), message, key=True)
        elif (section.cpu_policy or spec.cpu_policy) is job_specs.CpuPolicy.EXCLUSIVE:
            message = "exclusive cores are given when a replica begins; say cpu_policy: shared"
            yield document.problem((*path, name), message, key=True)
        elif not cpu.min <= section.cpu <= cpu.max:
            message = (
                f"the role begins with {section.cpu:g}, which is not between {cpu.min:g} and {cpu.max:g}"
            )
            yield document.problem((*path, name, "cpu"), message, key=True)
    if scale.every is not None and scale.every < LEAST_ROUND_SECONDS:
        message = f"a probe takes two minutes; make it {LEAST_ROUND_SECONDS / 60:g}m or more"
        yield document.problem((*path, "every"), message)


def _framework(document: documents.Document, spec: shapes.SpecSection) -> Found:
    framework = spec.framework or job_specs.Framework.TENSORFLOW
    if framework is job_specs.Framework.PYTORCH and spec.roles.ps is not None and spec.roles.ps.replicas > 0:
        message = "PyTorch has no parameter servers; remove the role, or say framework: plain"
        yield document.problem(("spec", "roles", "ps"), message, key=True)
    if framework is not job_specs.Framework.TENSORFLOW and spec.training is not None:
        message = f"Paceline's training library is for TensorFlow; remove this, or framework: {framework}"
        yield document.problem(("spec", "training"), message, key=True)


def _growth(document: documents.Document, here: documents.Path, section: shapes.RoleSection) -> Found:
    growth = section.memory_growth
    if growth is None:
        return
    if section.memory is None:
        message = "memory cannot grow from nothing; give the role a memory, such as 1Gi"
        yield document.problem((*here, "memory_growth"), message, key=True)
    elif growth.cap is not None and growth.cap < section.memory:
        message = f"the cap of {growth.cap} bytes is below the role's memory of {section.memory} bytes"
        yield document.problem((*here, "memory_growth", "cap"), message)


def _code_sources(document: documents.Document, spec: shapes.SpecSection) -> Found:
    path: documents.Path = ("spec", "code")
    if spec.code is None:
        return
    given = [key for key in CODE_SOURCES if getattr(spec.code, key) is not None]
    if len(given) > 1:
        message = f"code comes from one of {' and '.join(given)}, not from both; keep one"
        yield document.problem((*path, given[1]), message, key=True)
    elif not given:
        message = f"the code has no source; write one of {', '.join(CODE_SOURCES)}"
        yield document.problem(path, message, key=True)
    if ".." in (spec.working_dir or "").split("/"):
        message = f"{problems.shown(spec.working_dir or '')} may lead out of the code; write it without '..'"
        yield document.problem(("spec", "working_dir"), message)


def _hosts(document: documents.Document, spec: shapes.SpecSection) -> Found:
    yield from _twice(document, ("spec", "hosts"), "name", [host.name for host in spec.hosts])


def _tolerations(document: documents.Document, spec: shapes.SpecSection) -> Found:
    if spec.placement is None:
        return
    for index, toleration in enumerate(spec.placement.tolerations):
        here = ("spec", "placement", "tolerations", index)
        if toleration.operator == "Exists" and toleration.value:
            yield document.problem((*here, "value"), "operator: Exists takes no value; remove one of them")
        if toleration.operator == "Equal" and toleration.key is None:
            yield document.problem(here, "operator: Equal needs a key; write the key or operator: Exists")
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            yield document.problem((*here, "toleration_seconds"), "only effect: NoExecute takes seconds")


def _volumes(document: documents.Document, spec: shapes.SpecSection) -> Found:
    path: documents.Path = ("spec", "volumes")
    for index, volume in enumerate(spec.volumes):
        given = [key for key in ("host_path", "claim", "secret") if getattr(volume, key) is not None]
        if len(given) > 1:
            message = f"a volume is one of {' and '.join(given)}, not both; keep one"
            yield document.problem((*path, index, given[1]), message, key=True)
        elif not given:
            message = "the volume has no source; write one of host_path, claim, secret"
            yield document.problem((*path, index), message)
    yield from _twice(document, path, "name", [volume.name for volume in spec.volumes])
    yield from _twice(document, path, "mount_path", [volume.mount_path for volume in spec.volumes])
    yield from _folders_of_hosts(document, spec)


def _folders_of_hosts(document: documents.Document, spec: shapes.SpecSection) -> Found:
    if spec.security is None or spec.security.profile is not job_specs.SecurityProfile.RESTRICTED:
        return
    for index, volume in enumerate(spec.volumes):
        if volume.host_path is not None:
            message = (
                "the restricted profile allows no folders of hosts; use a claim, or security.profile: image"
            )
            yield document.problem(("spec", "volumes", index, "host_path"), message, key=True)


def _variables(document: documents.Document, spec: shapes.SpecSection) -> Found:
    if spec.training is not None:
        names = [variable.name for variable in spec.training.variables or ()]
        yield from _twice(document, ("spec", "training", "variables"), "name", names)


def _plans(document: documents.Document, spec: shapes.SpecSection) -> Found:
    training, path = spec.training, ("spec", "training")
    if training is None:
        return
    if training.variable_plan is not None:
        for key in ("partitioning", "variable_placement"):
            if getattr(training, key) is not None:
                message = f"variable_plan says already where each part lies; remove it or {key}"
                yield document.problem((*path, key), message, key=True)
    elif training.variable_placement == PlacementRule.TRAFFIC and training.measured_variables is None:
        message = "traffic has to be measured; write measured_variables: FILE, the variables.json of a run"
        yield document.problem((*path, "variable_placement"), message)


def _schedules(document: documents.Document, spec: shapes.SpecSection) -> Found:
    for key in ("optimizer", "wide_optimizer"):
        optimizer = getattr(spec.training, key, None)
        if optimizer is not None and optimizer.schedule is not None:
            schedule = schedules.LearningRateSchedule(**optimizer.schedule.model_dump(exclude_unset=True))
            name = optimizer.name or optimizers.DEFAULTS[key]
            conflict = schedule.conflict() or conflicts.of_schedule(name, schedule)
            if conflict is not None:
                yield document.problem(("spec", "training", key, "schedule"), conflict, key=True)


def _checkpoints(document: documents.Document, spec: shapes.SpecSection) -> Found:
    training = spec.training
    if training is None or training.checkpoint is None or training.checkpoint.keep is None:
        return
    saved, kept = training.checkpoint, training.checkpoint.keep
    conflict = conflicts.of_export(training.export_dir, kept)
    if conflict is not None:
        yield document.problem(("spec", "training", "export_dir"), conflict, key=True)
    conflict = conflicts.of_copies(saved.mirror, saved.restore_from, kept)
    if conflict is not None:
        yield document.problem(("spec", "training", "checkpoint", "keep"), conflict, key=True)


def _consistency(document: documents.Document, spec: shapes.SpecSection) -> Found:
    if spec.training is None or spec.training.consistency is None:
        return
    consistency = consistencies.Consistency(**spec.training.consistency.model_dump(exclude_unset=True))
    trainers = sum(
        section.replicas for role in Role if role.trains and (section := getattr(spec.roles, role))
    )
    conflict = consistency.conflict() or consistency.conflict_with(
        steps_in_flight=spec.training.steps_in_flight or 1,
        steps_per_exchange=spec.training.steps_per_exchange or 1,
        trainers=trainers,
    )
    if conflict is not None:
        yield document.problem(("spec", "training", "consistency"), conflict, key=True)


def _twice(document: documents.Document, path: documents.Path, key: str, values: Sequence[str]) -> Found:
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if value in first:
            line, column = document.place((*path, first[value], key))
            message = f"{problems.shown(value)} is there twice: first at line {line}, column {column}"
            yield document.problem((*path, index, key), message)
        first.setdefault(value, index)
