"""One job that each rule is right about, and sane jobs that no rule says anything about."""

import pytest

from paceline import linting, specs
from paceline.model.explanations.findings import Finding, Severity

SANE = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  image: registry.example.com/clicks:1.4
  command: [python, train.py, "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}"]
  environment: {LEVEL: "1"}
  roles:
    ps: {replicas: 2, cpu: 2, memory: 4Gi, cpu_policy: exclusive}
    worker: {replicas: 4, cpu: 2, memory: 4Gi, cpu_policy: exclusive}
"""
LINES = len(SANE.splitlines())


def lint(text: str) -> tuple[Finding, ...]:
    return linting.lint_job(specs.parse_job(text, "job.yaml"))


CASES = [
    # code, what is replaced in the sane job (nothing: a line is added), by what, place, a part of the message
    ("JOB101", "ps: {replicas: 2, cpu: 2", "ps: {replicas: 2, cpu: 1500m", "9:28", "1500m cores of its own"),
    ("JOB102", "ps: {replicas: 2, cpu: 2,", "ps: {replicas: 2,", "9:5", "does not say how many"),
    ("JOB103", "ps: {replicas: 2, cpu: 2, memory: 4Gi,", "ps: {replicas: 2, cpu: 2,", "9:5", "no memory"),
    ("JOB104", "cpu: 2, memory: 4Gi, cpu_policy: exclusive}\n    worker",
     "cpu_policy: shared}\n    worker", "9:5", "shares"),
    ("JOB105", "", "    chief: {cpu: 1, memory: 4Gi, cpu_policy: exclusive}", f"{LINES + 1}:18",
     "each worker has 2"),
    ("JOB106", "memory: 4Gi, cpu_policy: exclusive}\n    w", "memory: 1024, cpu_policy: exclusive}\n    w",
     "9:39", "ps has 1.0 KiB of memory"),
    ("JOB106", "memory: 4Gi, cpu_policy: exclusive}\n    w", "memory: 24Mi, cpu_policy: exclusive}\n    w",
     "9:39", "ps has 24.0 MiB of memory"),
    ("JOB106", "ps: {replicas: 2, cpu: 2", "ps: {replicas: 2, cpu: 1000", "9:28", "ps asks for 1000 cores"),
    ("JOB201", "replicas: 4,", "replicas: 4, threads: 8,", "10:36", "8 threads on 2 CPU"),
    ("JOB201", "  roles:", "  threads: 8\n  roles:", "8:12", "8 threads on 2 CPU"),
    ("JOB202", 'LEVEL: "1"', "OMP_NUM_THREADS: 80", "7:34", "OMP_NUM_THREADS is 80 for ps, against 2 cores"),
    ("JOB202", "replicas: 4,", "replicas: 4, threads: 2, environment: {TF_NUM_INTRAOP_THREADS: 1},",
     "10:77", "threads: 2"),
    ("JOB202", "replicas: 4,", "replicas: 4, threads: 1, environment: {TF_NUM_INTEROP_THREADS: 2},",
     "", None),
    ("JOB301", "ps: {replicas: 2,", "ps: {replicas: 2, restart: {when: never},", "9:39", "worker is"),
    ("JOB302", "replicas: 4,", "replicas: 4, restart: {when: always},", "10:43", "even when it has finished"),
    ("JOB303", "", "  training: {checkpoint: {every_seconds: 7200}}", f"{LINES + 1}:42", "2h00m"),
    ("JOB303", "", "  active_deadline: 60\n  training: {checkpoint: {every_seconds: 60}}",
     f"{LINES + 2}:42", "deadline"),
    ("JOB401", "replicas: 4", "replicas: 1", "9:20", "2 PS serve 1 trainer"),
    ("JOB402", "replicas: 2, cpu: 2, memory: 4Gi, cpu_policy: exclusive}\n    worker: {replicas: 4",
     "replicas: 1, cpu: 2, memory: 4Gi, cpu_policy: exclusive}\n    worker: {replicas: 16", "9:20",
     "serves 16"),
    ("JOB501", "worker: {replicas: 4", "placement: \n    worker: {replicas: 5", "",
     "5 trainers over 2 PS: 1 host with"),
    ("JOB502", "", "  hosts: [{name: a}]\n  placement: {strategy: spread-ps}", f"{LINES + 2}:25",
     "2 PS are to be spread over 1"),
    ("JOB503", "", "  hosts: [{name: a}]\n  placement: {strategy: isolate}", f"{LINES + 2}:25",
     "only one host"),
    ("JOB503", "  image: registry.example.com/clicks:1.4\n", "  placement: {strategy: isolate}\n", "5:25",
     "this machine"),
    ("JOB504", "", "  hosts: [{name: a, cpu: 1}, {name: b, cpu: 32}]", "", None),
    ("JOB504", "", "  hosts: [{name: a, cpu: 4}, {name: b, cpu: 4}]", f"{LINES + 1}:3",
     "all replicas ask for 12 CPU"),
    ("JOB504", "", "  hosts: [{name: a, cpu: 1}, {name: b, cpu: 1}]", "9:28", "the largest host has 1"),
    ("JOB504", "", "  hosts: [{name: a, memory: 8Gi}]", f"{LINES + 1}:3",
     "24.0 GiB memory, all hosts have 8.0 GiB"),
    ("JOB505", "", "  placement: {strategy: spread-ps, node_selector: {kubernetes.io/hostname: a}}",
     f"{LINES + 1}:52", "allows one"),
    ("JOB601", "", "  training: {optimizer: {name: adam}, partitioning: {strategy: fixed}}",
     f"{LINES + 1}:32", "probably big"),
    ("JOB601", "", "  training: {optimizer: {name: adam}, partitioning: {strategy: fixed}, "
     "variables: [{name: ids, rows: 100000, dimension: 8}]}", f"{LINES + 1}:32", "all 100 000 rows of ids"),
    ("JOB602", "",
     "  training: {optimizer: {name: adam}, partitioning: {strategy: none}, "
     "variables: [{name: ids, rows: 100000, dimension: 8}]}",
     f"{LINES + 1}:32", "on one PS"),
    ("JOB603", "",
     "  training: {partitioning: {strategy: none}, "
     "variables: [{name: ids, rows: 3000000, dimension: 16}, {name: b, rows: 9, dimension: 9}]}",
     f"{LINES + 1}:58", "round-robin gives one of 2 PS 2.00 times the mean"),
    ("JOB604", "",
     "  training: {partitioning: {strategy: fixed}, variables: [{name: a, rows: 100000000, dimension: 16}]}",
     "9:39", "with 1 slot of adagrad, evenly over 2 PS take 6.0"),
    ("JOB604", "",
     "  training: {optimizer: {name: ftrl}, partitioning: {strategy: none}, "
     "variables: [{name: ids, rows: 50000000, dimension: 16}]}",
     "9:39", "the biggest variable with 2 slots of ftrl take 8.9"),
    ("JOB605", "", "  training: {partitioning: {strategy: fixed, shards: 1}}", f"{LINES + 1}:54",
     "1 shard for 2 PS"),
    ("JOB701", 'LEVEL: "1"', "DB_PASSWORD: hunter2", "7:30", "7 characters, not shown"),
    ("JOB702", "[python, train.py, ", '[sh, -c, "wget -r http://x/code; sh ./run.sh", ', "6:21",
     "wget -r http://x/code"),
    ("JOB702", "[python, train.py, ", '[sh, -c, "curl -s http://x | bash", ', "6:21", "| bash"),
    ("JOB703", "{worker_hosts}", "10.0.0.1:2222,10.0.0.2:2222", "6:56", "by hand"),
    ("JOB703", 'LEVEL: "1"', """TF_CONFIG: '{"cluster": {"ps": ["a:2222"]}}'""", "7:28", "TF_CONFIG"),
    ("JOB704", "{worker_hosts}", "{worker_host}", "6:56", "did you mean {worker_hosts}?"),
    ("JOB704", "{worker_hosts}", "{task_index}", "6:56", "is {index} here"),
    ("JOB704", 'LEVEL: "1"', 'DIR: "{run_dirs}"', "7:22", "did you mean {run_dir}?"),
    ("JOB704", 'LEVEL: "1"', 'DIR: "{code_dir}"', "7:22", "no code is fetched"),
    ("JOB706", "", "  code: {git: {url: 'https://h/x', revision: main}}", f"{LINES + 1}:46",
     "'main' is a branch"),
    ("JOB706", "", "  code: {git: {url: 'https://h/x', revision: v1.4}}", "", None),
    ("JOB506", "name: clicks", "name: 2024-clicks", "3:18", "begins with a digit"),
    ("JOB708", "[python, train.py, ", '[sh, -c, "nohup python train.py &", ', "6:21", "ends with &"),
    ("JOB709", "[python, train.py, ", '[sh, -c, "python train.py | tee log", ', "6:21", "'| tee log'"),
    ("JOB709", "[python, train.py, ", '[sh, -c, "python train.py; echo done", ', "6:21", "'; echo done'"),
    ("JOB705", "clicks:1.4", "clicks:latest", "5:10", "latest"),
    ("JOB705", "clicks:1.4", "clicks", "5:10", "no tag"),
]  # fmt: skip


def edited(old: str, new: str) -> str:
    if not old:
        return f"{SANE}{new}\n"
    assert old in SANE
    return SANE.replace(old, new, 1)


def test_the_sane_job_has_no_findings() -> None:
    assert lint(SANE) == ()


@pytest.mark.parametrize(("code", "old", "new", "place", "said"), CASES)
def test_each_rule_finds_what_it_is_for(code: str, old: str, new: str, place: str, said: str | None) -> None:
    if code == "JOB501":
        text = (
            SANE.replace("worker: {replicas: 4", "worker: {replicas: 5")
            + "  placement: {strategy: colocate}\n"
        )
        place = f"{LINES + 1}:25"
    else:
        text = edited(old, new)
    found = [finding for finding in lint(text) if finding.code == code]
    if said is None:
        assert not found
        return
    assert found, lint(text)
    assert said in found[0].message
    assert str(found[0].position) == f"job.yaml:{place}"
    assert found[0].fix
    assert found[0].path.startswith(("spec.", "metadata."))


def test_every_job_rule_has_a_case() -> None:
    rules = {rule.code for rule in linting.catalogue() if rule.code.startswith("JOB")}
    # Of files that are not there: test_files.
    assert rules == {case[0] for case in CASES} | {"JOB707"}


def test_a_secret_is_not_shown() -> None:
    text = edited('LEVEL: "1"', "API_TOKEN: swordfish")
    assert all("swordfish" not in str(finding) for finding in lint(text))


def test_severities_that_depend() -> None:
    def severity(text: str, code: str) -> Severity:
        return next(finding.severity for finding in lint(text) if finding.code == code)

    hosts = "  hosts: [{name: a, cpu: 4}, {name: b, cpu: 4}]"
    assert severity(edited("", hosts), "JOB504") is Severity.ERROR
    assert severity(edited("", hosts).replace("exclusive", "shared"), "JOB504") is Severity.WARNING
    unknown = "  training: {optimizer: {name: adam}, partitioning: {strategy: fixed}}"
    assert severity(edited("", unknown), "JOB601") is Severity.INFO


@pytest.mark.parametrize(
    "text",
    [
        edited("worker: {", "worker: {environment: {OMP_NUM_THREADS: 2},"),
        edited('LEVEL: "1"',
        "TOKENIZER: bert, MAX_TOKENS: 5, PASSWORD_FILE: /run/p, HF_TOKEN: '{job}', A_SECRET: $B"),
        edited('LEVEL: "1"',
        'A: "${ps_host}", B: "{{ps_hosts}}", C: "{}", D: "{name}", E: "{0}", F: "{replicas.ps}"'),
        edited("[python, train.py, ", "[python, train.py, '--database=db:5432', '--brokers=a:9092,b:9092', "),
        edited("[python, train.py, ",
        '[sh, -c, "curl -sO http://x/a.tgz; sha256sum -c a.sums && sh run.sh", '),
        edited("[python, train.py, ", '[sh, -c, "wget -q http://x/data.csv -O data.csv", '),
        edited("clicks:1.4", "clicks@sha256:0123"),
        edited("registry.example.com/clicks:1.4", "registry.example.com:5000/clicks:1.4"),
        edited("", "  placement: {node_selector: {kubernetes.io/hostname: a}}"),
        edited("", "  placement: {strategy: isolate}"),
        edited("", "  placement: {strategy: colocate}"),
        edited("", "  hosts: [{name: a}, {name: b}]\n  placement: {strategy: spread-ps}"),
        edited("", "  hosts: [{name: a, cpu: 6, memory: 12Gi}, {name: b, cpu: 6, memory: 12Gi}]"),
        edited("",
        "  training: {optimizer: {name: adam}, variables: [{name: ids, rows: 5000, dimension: 8}]}"),
        edited("", "  training: {optimizer: {name: adagrad}, partitioning: {strategy: fixed}, "
               "variables: [{name: ids, rows: 3000000, dimension: 16}]}"),
        edited("",
        "  training: {variables: [{name: a, rows: 4000000, dimension: 8}, "
               "{name: b, rows: 4000000, dimension: 8}]}"),
        edited("", "  active_deadline: 2h\n  training: {checkpoint: {every_seconds: 600}}"),
        edited("ps: {", "ps: {restart: {when: always},"),
        edited("    ps: {replicas: 2, cpu: 2, memory: 4Gi, cpu_policy: exclusive}\n", ""),
        SANE.replace("exclusive", "shared").replace("cpu: 2", "cpu: 500m"),
        SANE.replace(", cpu: 2, memory: 4Gi, cpu_policy: exclusive", ""),
    ],
)  # fmt: skip
def test_sane_jobs(text: str) -> None:
    assert lint(text) == ()
