import pytest

GOOD = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: clicks
  labels: {team: ads}
spec:
  framework: tensorflow
  image: registry.example.com/clicks:1.0
  command: [python, train.py, "--ps_hosts={ps_hosts}", --steps, 100]
  working_dir: .
  environment: {MODE: on, VERSION: 1.10, EMPTY: ""}
  cpu_policy: exclusive
  threads: 3
  roles:
    ps:
      replicas: 2
      cpu: 1
      memory: 1Gi
      gpu: 0
      restart: {when: always, limit: 5, backoff: 2s}
      memory_growth: {factor: 2, cap: 8Gi}
    worker:
      replicas: 4
      cpu: 1500m
      memory: 512Mi
      cpu_policy: shared
      threads: auto
      command: [python, worker.py]
      environment: {MODE: worker}
    chief:
      memory: 2G
    evaluator:
      replicas: 0
  placement:
    strategy: colocate
    node_selector: {disk: ssd}
    tolerations:
    - {key: training, operator: Equal, value: "yes", effect: NoExecute, toleration_seconds: 60}
  hosts:
  - {name: host-a, cpu: 4, memory: 8Gi, bandwidth: 1Gbit}
  - name: host-b
  success: all-workers
  clean_up: succeeded
  active_deadline: 1h30m
  ttl_after_finished: 7d
  termination_grace: 5
  volumes:
  - {name: data, host_path: /data, mount_path: /data, read_only: yes}
  - {name: models, claim: models, mount_path: /models}
  secrets: [database]
  training:
    optimizer: {name: adagrad, learning_rate: 1e-3}
    wide_optimizer: {name: ftrl}
    batch_size: 512
    epochs: 1.5
    max_steps: 1000
    embedding_dimension: 16
    hidden_units: [256, 128]
    partitioning: {strategy: min-size, shards: 2, min_shard_bytes: 64Mi}
    variable_placement: greedy
    measured_variables: variables.json
    fused_tables: true
    checkpoint: {every_seconds: 600, keep: 3}
    inputs: {train: [a.csv, b.csv], evaluation: c.csv, format: csv}
    seed: 1
    variables:
    - {name: table, rows: 1000000, dimension: 16}
"""


@pytest.fixture(scope="session")
def good() -> str:
    """A job file that uses every field."""
    return GOOD
