"""What the command sees: placeholders and environment variables."""

import json
import math
import os
import re
from typing import Dict, List, Optional

from .configs import Config

ROLES = ("ps", "worker", "chief", "evaluator")
TF_THREAD_VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)

CODE_CREDENTIALS = ("PACELINE_CODE_USER", "PACELINE_CODE_PASSWORD")  # only for the code fetcher
PROXY_VARIABLES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def placeholder_values(config: Config, threads: int) -> Dict[str, str]:
    """Return the value of each placeholder by its name."""
    values = {name: str(getattr(config, name)) for name in ("job", "role", "index", "attempt")}
    values["threads"] = str(threads)
    for role in sorted(set(ROLES) | set(config.cluster)):
        addresses = config.cluster.get(role, [])
        values[role + "_hosts"] = ",".join(addresses)
        values["replicas." + role] = str(len(addresses))
    own = config.cluster.get(config.role, [])
    if config.index < len(own):
        values["address"] = own[config.index]
    values["cluster_spec"] = json.dumps(tf_cluster(config))
    values.update({name: str(value) for name, value in config.placeholders.items()})
    return values


def fill(text: str, values: Dict[str, str]) -> str:
    """Fill in ``{name}``; ``{{name}}`` becomes ``{name}``; other braces, also ``${name}``, stay unchanged."""
    names = "|".join(re.escape(name) for name in sorted(values, key=len, reverse=True))
    pattern = r"\{\{(%s)\}\}|(?<!\$)\{(%s)\}" % (names, names)
    return re.sub(pattern, lambda m: "{" + m.group(1) + "}" if m.group(1) else values[m.group(2)], text)


def tf_cluster(config: Config) -> Dict[str, List[str]]:
    """Return the addresses by role. By TensorFlow's rule only the evaluator sees the evaluator's address."""
    hidden = set() if config.role == "evaluator" else {"evaluator"}
    return {role: hosts for role, hosts in config.cluster.items() if hosts and role not in hidden}


def tf_config(config: Config) -> str:
    """Return ``TF_CONFIG``."""
    task = {"type": config.role, "index": config.index}
    return json.dumps({"cluster": tf_cluster(config), "task": task})


def torch_variables(config: Config) -> Dict[str, str]:
    """Return the variables that torchrun and Kubeflow set for PyTorch; rank 0 is the chief, else worker 0."""
    chiefs, workers = config.cluster.get("chief", []), config.cluster.get("worker", [])
    trainers = chiefs + workers
    if config.role not in ("chief", "worker") or not trainers:
        return {}
    rank = str(config.index + (len(chiefs) if config.role == "worker" else 0))
    address, _, port = trainers[0].rpartition(":")
    host = address.strip("[]")
    variables = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": rank, "RANK": rank}
    variables["WORLD_SIZE"] = variables["PET_NNODES"] = str(len(trainers))
    for name, value in (("MASTER_ADDR", host), ("MASTER_PORT", port), ("NODE_RANK", rank)):
        variables[name] = variables["PET_" + name] = value
    variables["PET_NPROC_PER_NODE"] = "1"
    return variables


def framework_variables(config: Config) -> Dict[str, str]:
    """Return the variables by which the replicas of a framework find each other."""
    if config.framework == "tensorflow":
        return {"TF_CONFIG": tf_config(config)}
    return torch_variables(config) if config.framework == "pytorch" else {}


def framework_defaults(config: Config, threads: int) -> Dict[str, str]:
    """Return the framework's default variables, which the image or the job file may override."""
    if config.framework == "plain":
        return {}
    environment = {name: str(threads) for name in THREAD_VARIABLES}
    if config.framework == "tensorflow":
        environment.update({name: str(threads) for name in TF_THREAD_VARIABLES})
        if config.role != "ps" and threads < 2:
            # With one inter-op thread, a worker of a ParameterServerStrategy waits for its input forever.
            environment["TF_NUM_INTEROP_THREADS"] = "2"
        # Put tables in huge pages, where the kernel allows it: rows are read at random across gigabytes.
        environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    return environment


def proxy_exceptions(config: Config, environment: Dict[str, str]) -> Dict[str, str]:
    """Return the variables that keep replicas from talking through a proxy; empty if no proxy is set.

    gRPC reads ``no_grpc_proxy``, or else ``no_proxy``, and matches its names against the ends of host names.
    Other programs read either spelling of ``no_proxy``, so both get the same value.
    """
    if not any(environment.get(name) or environment.get(name.upper()) for name in PROXY_VARIABLES):
        return {}
    hosts = {address.rpartition(":")[0].strip("[]") for role in config.cluster.values() for address in role}
    # A job may have thousands of pods: their common domain is enough.
    names = sorted(
        {host if host[-1:].isdigit() or "." not in host else host[host.index(".") :] for host in hosts}
    )
    found = {}
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        if name in environment or name != "no_grpc_proxy":
            given = environment.get(name) or environment.get("no_proxy") or environment.get("NO_PROXY") or ""
            found[name] = ",".join([each for each in given.split(",") if each.strip()] + names)
    return found


def command_environment(config: Config, threads: int, inherited: Dict[str, str]) -> Dict[str, str]:
    """Return the command's environment: inherited < the agent's < what the job file sets."""
    values = placeholder_values(config, threads)
    # Python writes to a file in blocks of 8 KiB; a killed process would lose its last block.
    environment = {"PYTHONUNBUFFERED": "1"}
    environment.update(framework_defaults(config, threads))
    environment.update(inherited)
    for name in ("TF_CONFIG", *CODE_CREDENTIALS):
        environment.pop(name, None)
    environment.update(framework_variables(config))
    environment["PACELINE_SPARE_WORKERS"] = ",".join(config.spare_workers)
    environment["PACELINE_REPORT_FILE"] = os.path.abspath(config.reports)
    for name in ("job", "role", "index", "attempt", "threads", "checkpoint_dir", "run_dir"):
        if name in values:
            environment["PACELINE_" + name.upper()] = values[name]
    environment.update({name: fill(str(value), values) for name, value in config.environment.items()})
    environment.update(proxy_exceptions(config, environment))
    if config.instrumentation and environment.get("PACELINE_INSTRUMENTATION") != "off":
        # Python imports the first ``sitecustomize`` on its path; ours then imports the next one.
        others = environment.get("PYTHONPATH")
        folder = os.path.abspath(config.instrumentation)
        environment["PYTHONPATH"] = folder + os.pathsep + others if others else folder
    return environment


def thread_count(config: Config, quota: Optional[float], allowed: int, online: int) -> int:
    """Return the thread count that suits this replica: by its own limits, else by what the job file asks for.

    A cpuset that holds every CPU of the host limits nothing. The limits of a cgroup shared with other
    replicas apply to all of them together, so they only cap the count.
    """
    if config.threads:
        return config.threads
    limits = [] if quota is None else [math.ceil(quota)]
    restricted = bool(limits) or allowed < online
    if config.cpu_cores and not (config.own_cgroup and restricted):
        limits.append(math.ceil(config.cpu_cores))
    return max(1, min([*limits, allowed]))
