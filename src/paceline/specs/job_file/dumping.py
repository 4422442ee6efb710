"""Writing of a `JobSpec` as a job file that reads back as an equal `JobSpec`; defaults are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from paceline.model import quantities
from paceline.model.jobs import code_sources, job_specs, placements
from paceline.model.jobs.runs import Run
from paceline.model.roles import Role
from paceline.specs.yaml_text import plain_texts


class _Words(list[str]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Words` on one line and never makes aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _words(dumper: yaml.SafeDumper, data: _Words) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    # PyYAML folds unusual line breaks and spaces at the ends in a way that does not read back as the same
    # text.
    style = "'" if plain_texts.is_ambiguous(data) else None
    if not data.isprintable() or data != data.strip():
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(_Words, _words)
_Dumper.add_representer(str, _text)


def dump_job(spec: job_specs.JobSpec) -> str:
    """Return the YAML of a job; `parse_job` reads it back as an equal `JobSpec`."""
    document = {
        "apiVersion": job_specs.API_VERSION,
        "kind": job_specs.KIND,
        "metadata": _given({"name": spec.name, "labels": dict(spec.labels)}),
        "spec": _given(_spec(spec)),
    }
    return dump_document(document)


def source_of(run: Run) -> str:
    """Return the job file of a run; one is generated if there is none, as for a resource on a cluster."""
    return run.source or dump_job(run.spec)


def dump_document(document: Mapping[str, Any]) -> str:
    """Return the YAML of plain values; any YAML reader reads every text in it back unchanged."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10**9
    )
    return text


def _spec(spec: job_specs.JobSpec) -> dict[str, Any]:
    default = job_specs.SuccessPolicy.CHIEF if spec.role(Role.CHIEF) else job_specs.SuccessPolicy.ALL_WORKERS
    grace = spec.termination_grace_seconds
    return {
        "framework": None if spec.framework is job_specs.Framework.TENSORFLOW else str(spec.framework),
        "instrumentation": None
        if spec.instrumentation is job_specs.Instrumentation.AUTO
        else str(spec.instrumentation),
        "image": spec.image,
        "command": _Words(spec.command),
        "code": _code(spec.code),
        "working_dir": spec.working_dir,
        "environment": dict(spec.environment),
        "roles": {str(role.role): _role(role) for role in spec.roles},
        "overrides": {
            str(replica): _given({"cpu": _cores(each.cpu_cores), "memory": _bytes(each.memory_bytes)})
            for replica, each in spec.overrides.items()
        },
        "placement": _placement(spec.placement),
        "scheduling": _scheduling(spec.scheduling),
        "hosts": [_host(host) for host in spec.hosts],
        "success": None if spec.success is default else str(spec.success),
        "clean_up": None if spec.clean_up is job_specs.CleanUp.RUNNING else str(spec.clean_up),
        "active_deadline": _seconds(spec.active_deadline_seconds),
        "ttl_after_finished": _seconds(spec.ttl_after_finished_seconds),
        "termination_grace": None if grace == 30 else _seconds(grace),
        "volumes": [_fields(volume, read_only=False) for volume in spec.volumes],
        "secrets": _Words(spec.secrets),
        "security": _security(spec.security),
        "autoscale": _autoscale(spec.autoscale),
        "training": _Kept(spec.training) if spec.training is not None else None,
    }


def _code(code: code_sources.Code | None) -> dict[str, Any]:
    if code is None:
        return {}
    sources = {
        name: _fields(source)
        for name, source in (("git", code.git), ("archive", code.archive))
        if source is not None
    }
    return _given({**sources, "folder": code.folder, "config_map": code.config_map, "path": code.path})


class _Kept(dict[str, Any]):
    """A mapping that is written even when it is empty."""


_Dumper.add_representer(_Kept, yaml.SafeDumper.represent_dict)


def _role(role: job_specs.RoleSpec) -> dict[str, Any]:
    result = _given(
        {
            "cpu": _cores(role.cpu_cores),
            "memory": _bytes(role.memory_bytes),
            "gpu": role.gpus or None,
            "cpu_policy": None if role.cpu_policy is job_specs.CpuPolicy.SHARED else str(role.cpu_policy),
            "threads": role.threads,
            "command": _Words(role.command),
            "environment": dict(role.environment),
            "restart": _restart(role.restart),
            "memory_growth": _growth(role.memory_growth),
        }
    )
    return {"replicas": role.replicas, **_given({"max_replicas": role.max_replicas}), **result}


def _restart(policy: job_specs.RestartPolicy) -> dict[str, Any]:
    default = job_specs.RestartPolicy()
    return _given(
        {
            "when": None if policy.when is default.when else str(policy.when),
            "limit": None if policy.limit == default.limit else policy.limit,
            "backoff": None
            if policy.backoff_seconds == default.backoff_seconds
            else _seconds(policy.backoff_seconds),
        }
    )


def _growth(growth: job_specs.MemoryGrowth | None) -> dict[str, Any]:
    return _given({"factor": growth.factor, "cap": _bytes(growth.cap_bytes)}) if growth is not None else {}


def _placement(placement: placements.PodPlacement) -> dict[str, Any]:
    any_host = placement.strategy is placements.PlacementStrategy.ANY
    return _given(
        {
            "strategy": None if any_host else str(placement.strategy),
            "node_selector": dict(placement.node_selector),
            "tolerations": [_fields(t, operator="Equal") for t in placement.tolerations],
        }
    )


def _scheduling(scheduling: job_specs.SchedulingSpec) -> dict[str, Any]:
    default = job_specs.SchedulingSpec()
    return _given(
        {
            "fit": None if scheduling.fit is default.fit else str(scheduling.fit),
            "priority": scheduling.priority or None,
            "queue": scheduling.queue,
            "priority_class": scheduling.priority_class,
        }
    )


def _security(security: job_specs.Security) -> dict[str, Any]:
    default = job_specs.Security()
    profile = None if security.profile is default.profile else str(security.profile)
    return _given({"profile": profile, "user": security.user})


def _autoscale(scale: job_specs.Autoscale | None) -> dict[str, Any]:
    if scale is None:
        return {}
    roles = {
        str(role): {"cpu": {"min": _cores(each.low), "max": _cores(each.high)}}
        for role, each in scale.ranges.items()
    }
    every = None if scale.every_seconds == 1800 else _seconds(scale.every_seconds)
    return {**roles, **_given({"cpu": _cores(scale.most_cores), "every": every})}


def _host(host: job_specs.Host) -> dict[str, Any]:
    return _given(
        {
            "name": host.name,
            "cpu": _cores(host.cpu_cores),
            "memory": _bytes(host.memory_bytes),
            "bandwidth": _bits(host.bandwidth_bits_per_second),
        }
    )


def _fields(value: Any, **defaults: object) -> dict[str, Any]:
    """Return the fields of a value that are set to something other than their default."""
    names: Iterable[str] = (field.name for field in dataclasses.fields(value))
    found = {name: getattr(value, name) for name in names}
    return {k: v for k, v in found.items() if v is not None and (k not in defaults or v != defaults[k])}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in values.items()
        if value is not None and (isinstance(value, _Kept | str | int | float) or value)
    }


def _cores(cores: float | None) -> int | str | None:
    return None if cores is None else _number_or_text(quantities.quantity_cores(cores))


def _bytes(amount: int | None) -> int | str | None:
    return None if amount is None else _number_or_text(quantities.quantity_bytes(amount))


def _bits(bits: int | None) -> int | str | None:
    if bits is None:
        return None
    units = ((10**9, "Gbit"), (10**6, "Mbit"), (10**3, "kbit"))
    return next((f"{bits // unit}{name}" for unit, name in units if bits % unit == 0), bits)


def _seconds(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    if seconds == 0 or seconds != int(seconds):
        # A duration may not have an exponent.
        return f"{seconds:.17f}".rstrip("0").rstrip(".") + "s"
    units = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
    return next(f"{int(seconds) // unit}{name}" for unit, name in units if seconds % unit == 0)


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
