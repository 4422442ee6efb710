"""The commented job files that ``paceline init`` writes.

One text serves all kinds of job files. A line that starts with ``@words|`` is active for the kinds that it
names and a comment for the others, so every file shows every field.
"""

from __future__ import annotations

from paceline import errors
from paceline.specs.job_file import fields
from paceline.specs.yaml_text import problems

#: The kinds of templates, and what each is for.
TEMPLATES = {
    "script": "your own training script on this machine, given the hosts as arguments",
    "training": "a model of Paceline's training library on this machine",
    "kubernetes": "your own training script in a container, on exclusive cores, spread over nodes",
}

_TEXT = """\
# A Paceline job: TensorFlow parameter-server training.
# Every field stands here; those behind '# ' are optional and show an example. All of them: docs/job-file.md.
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: NAME                 # lower-case letters, digits and '-', at most 52
@|  labels: {team: ads}        # for your own sorting; Kubernetes gets them too
spec:
@kubernetes|  image: registry.example.com/team/clicks:1.0   # container image; only Kubernetes uses it
  # The command of every role that has none of its own. Filled in: {job} {role} {index} {attempt} {address}
  # {threads} {ps_hosts} {worker_hosts} {chief_hosts} {evaluator_hosts} {cluster_spec} {replicas.ps}
  # {replicas.worker} {replicas.chief} {replicas.evaluator} {run_dir} {checkpoint_dir} {code_dir}.
  # TF_CONFIG is set as well.
COMMAND
@|  framework: tensorflow      # tensorflow (TF_CONFIG), pytorch (RANK, WORLD_SIZE, MASTER_ADDR ...) or plain
@|  instrumentation: auto      # auto (any TensorFlow script is looked into) or off
@|  code:                      # where the code comes from, if not with the image or beside this file: one of
@|    git: {url: "https://git.example.com/team/clicks.git", revision: v1.4}   # best a commit
@|    # archive: {url: "s3://models/clicks-1.4.tgz", sha256: SHA256}   # https, s3, hdfs, webhdfs, file
@|    # folder: src            # goes with the job: at most 1 MiB packed
@|    # config_map: clicks-code   # such a folder as it is on a cluster
@|    path: training           # the folder within it that is the code
@|  working_dir: .             # folder in which commands start, relative to the code, or else to this file
@|  environment: {TF_CPP_MIN_LOG_LEVEL: 1}   # variables of every replica
@kubernetes|  cpu_policy: exclusive      # shared (quota) or exclusive (whole cores of its own)
@|  threads: auto              # auto (as many as the replica has cores) or a number
  roles:
    ps:                      # parameter servers: they hold the variables
      replicas: 2            # how many
      cpu: 1                 # cores of each; 500m is half a core
      memory: 1Gi            # memory of each
@|      gpu: 0                 # GPUs of each
    worker:                  # workers: they train
      replicas: 2
@|      max_replicas: 8        # up to how many `paceline scale` may bring them while the job runs
      cpu: 1
      memory: 1Gi
@|      cpu_policy: shared     # each role may override what the job says
@|      threads: 1
@|      command: [python, worker.py]
@|      environment: {ROLE: worker}
@|      restart: {when: on-failure, limit: 3, backoff: 1s}   # never, on-failure or always; the wait doubles
@|      memory_growth: {factor: 1.5, cap: 4Gi}   # after an out-of-memory kill: start again with more
@|    chief:                   # the worker that also saves checkpoints; at most one
@|      replicas: 1
@|      cpu: 1
@|      memory: 1Gi
@|    evaluator:               # evaluates checkpoints beside the training
@|      replicas: 1
@|      cpu: 1
@|      memory: 1Gi
@|  overrides:                 # what single replicas have instead
@|    ps-0: {cpu: 2, memory: 2Gi}
@kubernetes|  placement:                 # which replicas go on which hosts
@kubernetes|    strategy: spread-ps      # any, spread-ps, colocate (a PS with its workers) or isolate
@|    node_selector: {disk: ssd}   # labels that a Kubernetes node must have
@|    tolerations:             # taints that the replicas put up with
@|    - {key: training, operator: Equal, value: "yes", effect: NoExecute, toleration_seconds: 300}
@|  scheduling:
@|    fit: hold                # hold (until a cluster has room for all of it), fail, gang or off
@|    priority: 10             # of the jobs that wait, higher ones begin first
@|    queue: night             # a queue of Kueue or Volcano that decides instead
@|    priority_class: urgent   # the PriorityClass of the pods, also in a queue
@|  hosts:                     # emulated hosts of the local engine; without them, this machine
@|  - {name: host-a, cpu: 4, memory: 8Gi, bandwidth: 1Gbit}
@|  - {name: host-b, cpu: 4, memory: 8Gi, bandwidth: 1Gbit}
@|  success: all-workers       # chief or all-workers: whose end makes the job a success
@|  clean_up: running          # what ends with the job: running, succeeded or all
@|  active_deadline: 2h        # the job fails when it runs longer
@|  ttl_after_finished: 7d     # an ended job is deleted after this time
@|  termination_grace: 30s     # between SIGTERM and SIGKILL
@|  volumes:                   # each from a host_path, a claim or a secret
@|  - {name: data, host_path: /data, mount_path: /data, read_only: true}
@|  - {name: models, claim: models, mount_path: /models}
@|  secrets: [clicks-database]   # Secrets whose keys become environment variables
@|  security: {profile: image, user: 1000}   # or restricted (the Pod Security Standard)
@|  autoscale:                 # cores move to replicas that bind, as a probe says, while the job runs
@|    worker: {cpu: {min: 500m, max: 2}}
@|    every: 30m
@training|  training:                  # obeyed by the training library
@training|    optimizer:               # lazy-adam, ftrl, ...
@training|      name: adagrad
@training|      learning_rate: 0.05
@|      schedule: {decay: polynomial, warmup_steps: 1000, decay_steps: 100000, end_factor: 0.1, power: 1}
@|    wide_optimizer: {name: ftrl, learning_rate: 0.05}   # of the wide part
@|    clip_norm: 10            # largest norm of a step's gradient
@training|    batch_size: 512          # examples in a step of one worker
@training|    epochs: 1                # passes over the examples
@|    max_steps: 100000        # global steps after which training ends
@training|    embedding_dimension: 16  # floats for each id
@training|    hidden_units: [256, 128, 64]   # widths of the dense layers
@training|    partitioning: {strategy: fixed, rows: hashed}   # none, fixed or min-size
@|    variable_placement: balanced   # which PS holds a part; or else variable_plan: plan.json, a saved plan
@|    measured_variables: variables.json   # of an earlier run, for variable_placement: traffic
@training|    fused_tables: true       # one table for all categorical features
@|    compute_precision: float32   # of dense layers; bfloat16 where the CPU has instructions for it
@|    transfers: {packed: true, precision: float32}   # one message for each PS; bfloat16 halves it
@|    steps_per_exchange: 1    # steps of a worker that share their messages
@|    steps_in_flight: 1       # exchanges of a worker that overlap
@|    consistency: {mode: synchronous, backup_workers: 1}   # or {mode: bounded-staleness, staleness: 8}
@training|    checkpoint:              # saving the model
@training|      every_seconds: 600
@training|      keep: 3
@|      mirror: hdfs://nn/checkpoints/mine   # a copy of each, from which a chief without its folder goes on
@|      restore_from: hdfs://nn/checkpoints/other   # where a run without a checkpoint begins
@|    export_dir: models/mine  # the trained model as a SavedModel
@|    trace: {every_seconds: 60, steps: 2}   # steps traced for diagnosis
@training|    inputs:
@training|      train: data/train-*.csv        # paths, patterns or URLs: s3, hdfs, webhdfs, https
@training|      evaluation: data/test-*.csv
@training|      format: csv            # or parquet, tfrecord
@training|      # threads: 2           # that decode; default: the replica's
@training|      # prefetch_batches: 2   # of scripts without the library: batches of tf.data made ahead
@training|      # parallel_calls: auto   # of such scripts: examples decoded at once
@training|      # cache: {folder: /var/tmp/inputs, max_bytes: 50Gi}   # copies of remote files on each machine
@|    seed: 1                  # of all random numbers
@|    recovery_wait_seconds: 1   # of scripts without the library: looks of workers whether the chief is ready
@|    unplaced_variables: ps   # of such scripts: variables that they give no place
@|    unique_ids: true         # of such scripts: a lookup pulls each row once
@|    steps_per_execution: 10   # of such scripts with Model.fit: steps in one call
@|    device_filters: true     # of such scripts: a trainer does not wait for the others
@|    lean_servers: true       # of such scripts: parameter servers without Python
@|    variables:               # big tables known beforehand, so that lint can compute memory and balance
@|    - {name: embeddings, rows: 1000000, dimension: 16}
"""

_COMMANDS = {
    "training": "  command: [python, train.py]",
}
_SCRIPT = "  # Fill in: train.py is your script, beside this file. Write it, or name your own."
_HOST_LISTS = """\
  command:
  - python
  - train.py
  - --ps_hosts={ps_hosts}
  - --worker_hosts={worker_hosts}
  - --job_name={role}
  - --task_index={index}"""


def template(kind: str = "script", name: str = "clicks") -> str:
    """Return a commented job file to start from.

    Args:
        kind: one of `TEMPLATES`.
        name: the job's name.

    Raises:
        errors.InvalidInput: there is no such kind, or a job cannot have this name.
    """
    if kind not in TEMPLATES:
        close = problems.did_you_mean(kind, TEMPLATES)
        raise errors.InvalidInput(
            f"{problems.shown(kind)} is no template{close}", f"There are: {', '.join(TEMPLATES)}."
        )
    if not fields.is_name(name):
        raise errors.InvalidInput(
            f"{problems.shown(name)} cannot be a job's name", f"Use {fields.NAME_RULE}."
        )
    lines: list[str] = []
    base: int | None = None
    for line in _TEXT.splitlines():
        marker, bar, rest = line.partition("|") if line.startswith("@") else ("", "", line)
        live = not bar or kind in marker[1:].split(",")
        if live:
            base = None
            lines.append(rest.replace("NAME", name))
            continue
        indent = len(rest) - len(rest.lstrip())
        base = indent if base is None or indent < base else base
        lines.append(f"{rest[:base]}# {rest[base:]}")
    text = "\n".join(lines) + "\n"
    lead = "" if kind == "kubernetes" else f"{_SCRIPT}\n"
    return text.replace("COMMAND", lead + _COMMANDS.get(kind, _HOST_LISTS))
