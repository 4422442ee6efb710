from pathlib import Path

import pytest

from paceline import errors, specs
from paceline.model.jobs import code_sources, job_specs, placements
from paceline.model.roles import Role

MINIMAL = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python, train.py]
  roles:
    worker: {replicas: 2}
"""


def problems_of(text: str | bytes) -> tuple[specs.Problem, ...]:
    with pytest.raises(specs.DocumentError) as caught:
        specs.parse_job(text, "job.yaml")
    return caught.value.problems


def test_every_field_reaches_the_spec(good: str) -> None:
    spec = specs.parse_job(good).spec
    assert spec.name == "clicks"
    assert spec.labels == {"team": "ads"}
    assert spec.image == "registry.example.com/clicks:1.0"
    assert spec.command == ("python", "train.py", "--ps_hosts={ps_hosts}", "--steps", "100")
    assert spec.working_dir == "."
    assert spec.environment == {"MODE": "on", "VERSION": "1.10", "EMPTY": ""}
    assert [role.role for role in spec.roles] == [Role.PS, Role.WORKER, Role.CHIEF]
    ps, worker, chief = spec.roles
    assert ps == job_specs.RoleSpec(
        role=Role.PS,
        replicas=2,
        cpu_cores=1.0,
        memory_bytes=2**30,
        cpu_policy=job_specs.CpuPolicy.EXCLUSIVE,
        threads=3,
        restart=job_specs.RestartPolicy(when=job_specs.RestartWhen.ALWAYS, limit=5, backoff_seconds=2.0),
        memory_growth=job_specs.MemoryGrowth(factor=2.0, cap_bytes=8 * 2**30),
    )
    assert worker.threads is None
    assert worker.cpu_policy is job_specs.CpuPolicy.SHARED
    assert worker.cpu_cores == 1.5
    assert spec.command_of(Role.WORKER) == ("python", "worker.py")
    assert spec.environment_of(Role.WORKER)["MODE"] == "worker"
    assert chief.replicas == 1
    assert chief.memory_bytes == 2 * 10**9
    assert spec.placement == placements.PodPlacement(
        strategy=placements.PlacementStrategy.COLOCATE,
        node_selector={"disk": "ssd"},
        tolerations=(
            placements.Toleration(key="training", value="yes", effect="NoExecute", toleration_seconds=60),
        ),
    )
    assert spec.hosts == (
        job_specs.Host(name="host-a", cpu_cores=4.0, memory_bytes=8 * 2**30, bandwidth_bits_per_second=10**9),
        job_specs.Host(name="host-b"),
    )
    assert spec.success is job_specs.SuccessPolicy.ALL_WORKERS
    assert spec.clean_up is job_specs.CleanUp.SUCCEEDED
    assert spec.active_deadline_seconds == 5400
    assert spec.ttl_after_finished_seconds == 7 * 86400
    assert spec.termination_grace_seconds == 5
    assert spec.volumes[0] == job_specs.Volume(
        name="data", mount_path="/data", host_path="/data", read_only=True
    )
    assert spec.volumes[1].claim == "models"
    assert spec.secrets == ("database",)
    assert spec.training is not None
    assert spec.training["optimizer"] == {"name": "adagrad", "learning_rate": 0.001}
    assert spec.training["partitioning"]["min_shard_bytes"] == 64 * 2**20
    assert spec.training["inputs"]["train"] == ["a.csv", "b.csv"]
    assert spec.training["epochs"] == 1.5


def test_defaults() -> None:
    spec = specs.parse_job(MINIMAL).spec
    assert spec == job_specs.JobSpec(
        name="clicks",
        command=("python", "train.py"),
        roles=(job_specs.RoleSpec(role=Role.WORKER, replicas=2),),
    )


def test_training_holds_only_what_was_written() -> None:
    spec = specs.parse_job(f"{MINIMAL}  training: {{batch_size: 64, optimizer: }}\n").spec
    assert spec.training == {"batch_size": 64}


def test_success_is_the_chiefs_when_there_is_one() -> None:
    assert specs.parse_job(f"{MINIMAL}    chief:\n").spec.success is job_specs.SuccessPolicy.CHIEF
    without = specs.parse_job(f"{MINIMAL}    chief: {{replicas: 0}}\n").spec
    assert without.success is job_specs.SuccessPolicy.ALL_WORKERS
    assert without.role(Role.CHIEF) is None


def test_roles_keep_the_order_of_the_file() -> None:
    text = MINIMAL + "    ps: {replicas: 1}\n"
    assert [role.role for role in specs.parse_job(text).spec.roles] == [Role.WORKER, Role.PS]


def test_values_that_mean_nothing_are_as_if_left_out() -> None:
    text = MINIMAL + "    ps: {replicas: , cpu: ~, memory: null, threads: , command: , restart: }\n  image:\n"
    spec = specs.parse_job(text).spec
    assert spec.role(Role.PS) == job_specs.RoleSpec(role=Role.PS)
    assert spec.image is None


SHA = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{git: {url: 'git@h.example:team/x.git', revision: 1234567}, path: a/b}",
         code_sources.Code(
             git=code_sources.Git(url="git@h.example:team/x.git", revision="1234567"), path="a/b")),
        ("{git: {url: 'file:///srv/x', revision: refs/heads/feature-1}}",
         code_sources.Code(git=code_sources.Git(url="file:///srv/x", revision="refs/heads/feature-1"))),
        (f"{{archive: {{url: 'hdfs:///models/x.zip', sha256: {SHA}}}}}",
         code_sources.Code(archive=code_sources.Archive(url="hdfs:///models/x.zip", sha256=SHA))),
        ("{folder: ../src}", code_sources.Code(folder="../src")),
        ("{config_map: clicks-code}", code_sources.Code(config_map="clicks-code")),
    ],
)  # fmt: skip
def test_sources_of_code(written: str, code: code_sources.Code) -> None:
    assert specs.parse_job(f"{MINIMAL}  code: {written}\n").spec.code == code


def test_anchors_and_merge_keys() -> None:
    text = MINIMAL + "    ps: &base {replicas: 1, cpu: 2, memory: 1Gi}\n    chief: {<<: *base, cpu: 3}\n"
    job = specs.parse_job(text)
    chief = job.spec.role(Role.CHIEF)
    assert chief is not None
    assert (chief.cpu_cores, chief.memory_bytes) == (3.0, 2**30)
    assert job.position(("spec", "roles", "chief", "cpu")).line == 9
    assert job.position(("spec", "roles", "chief", "memory")).line == 8


def test_positions() -> None:
    job = specs.parse_job(MINIMAL, "dir/job.yaml")
    assert str(job.position(("metadata", "name"))) == "dir/job.yaml:3:18"
    assert str(job.position(("metadata", "name"), key=True)) == "dir/job.yaml:3:12"
    assert str(job.position(("spec", "command", 1))) == "dir/job.yaml:5:21"
    assert str(job.position(("spec", "roles", "worker", "cpu"))) == "dir/job.yaml:7:5"
    assert str(job.position(("nowhere",))) == "dir/job.yaml:1:1"


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("\ufeff" + MINIMAL.replace("\n", "\r\n"), encoding="utf-8")
    job = specs.load_job(path)
    assert job.spec.name == "clicks"
    assert job.path == path
    with pytest.raises(errors.NotFound):
        specs.load_job(tmp_path / "missing.yaml")
    with pytest.raises(errors.InvalidInput, match="cannot be read"):
        specs.load_job(tmp_path)
    with pytest.raises(errors.InvalidInput):
        specs.load_job("a\0b")


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("v1alpha1", "v1", "1:13", "is not paceline.dev/v1alpha1"),
        ("kind: TrainingJob", "kind: Job", "2:7", "'Job' is not TrainingJob"),
        ("name: clicks", "name: ../clicks", "3:18", "'../clicks' is not a name"),
        ("name: clicks", f"name: {'a' * 53}", "3:18", "has 53 characters"),
        ("name: clicks", "name: Clicks", "3:18", "lower-case"),
        ("name: clicks", "name: no", "3:18", 'write "no"'),
        ("name: clicks", r'name: "a\eb"', "3:18", r"a\x1bb"),
        ("name: clicks", "nam: clicks", "3:12", "did you mean 'name'?"),
        ("{name: clicks}", "clicks", "3:11", "a mapping (key: value) is wanted"),
        ("{name: clicks}", "{}", "3:1", "metadata.name: the key is missing"),
        ("[python, train.py]", "python train.py", "5:12", '[sh, -c, "python train.py"]'),
        ("[python, train.py]", "[]", "5:12", "no words"),
        ("[python, train.py]", "{a: b}", "5:12", "list of words"),
        ("[python, train.py]", "[python, [a]]", "5:21", "this is a list; text is wanted"),
        ("[python, train.py]", "[python, off]", "5:21", 'write "off"'),
        ("[python, train.py]", "[python, ~]", "5:21", "there is no value"),
        ("  command: [python, train.py]\n", "", "6:5", "spec.roles.worker: the role has no command"),
        ("replicas: 2", "replicas: -1", "7:24", "from 0 to 10000"),
        ("replicas: 2", "replicas: 10001", "7:24", "from 0 to 10000"),
        ("replicas: 2", "replicas: 1.5", "7:24", "not a whole number"),
        ("replicas: 2", 'replicas: "2"', "7:24", "not a whole number"),
        ("replicas: 2", "replicas: yes", "7:24", "not a whole number"),
        ("replicas: 2", "replicas: 0", "6:3", "nothing trains"),
        ("worker: {replicas: 2}", "", "6:3", "the key is missing"),
        ("worker: {replicas: 2}", "wroker: {replicas: 2}", "7:5", "did you mean 'worker'?"),
        ("worker: {replicas: 2}", "chief: {replicas: 2}", "7:23", "at most 1 chief"),
        ("replicas: 2", "cpu: 2 cores", "7:19", "'2 cores' is not a number of cores"),
        ("replicas: 2", "cpu: 0", "7:19", "above 0"),
        ("replicas: 2", "cpu: 1e100", "7:19", "more than 4096"),
        ("replicas: 2", "memory: 1GiB", "7:22", "'1GiB' is not an amount of memory"),
        ("replicas: 2", "cpu_policy: exclusiv", "7:26", "did you mean 'exclusive'?"),
        ("replicas: 2", "threads: 0", "7:23", "1 to 4096"),
        ("replicas: 2", "threads: automatic", "7:23", "auto or a whole number"),
        ("replicas: 2", "environment: {A: }", "7:30", 'write ""'),
        ("replicas: 2", "environment: {A=B: x}", "7:28", "a variable's name"),
        ("replicas: 2", "environment: {A: [x]}", "7:31", "this is a list"),
        ("replicas: 2", "restart: {when: on-failure, backoff: soon}", "7:51", "not a duration"),
        ("replicas: 2", "memory_growth: {factor: 2}", "7:14", "memory cannot grow from nothing"),
        ("replicas: 2", "memory: 2Gi, memory_growth: {cap: 1Gi}", "7:48", "below the role's memory"),
        ("replicas: 2", "memory: 2Gi, memory_growth: {factor: 1}", "7:51", "above 1"),
        ("replicas: 2", "memory: 2Gi, memory: 3Gi", "7:27", "first at line 7, column 14"),
        ("replicas: 2", "1: 2", "7:14", 'is an integer to YAML, not text; write "1"'),
        ("replicas: 2", "on: 2", "7:14", 'write "on"'),
        ("replicas: 2", "[a]: 2", "7:14", "a key must be text, not a list"),
        ("replicas: 2", "? {a: b} : 2", "7:16", "a key must be text, not a mapping"),
        ("replicas: 2", "cpu: !!python/name:os.system x", "7:19", "not a number of cores"),
        ("replicas: 2", "cpu: !evil 1", "7:19", "the tag '!evil' is not allowed"),
        ("  roles:", "\troles:", "6:1", "tab"),
        ("  roles:", " roles:", "6:2", "this is not YAML"),
        ("  roles:", "  x: *y\n  roles:", "6:6", "anchor"),
        ("  roles:", "  x: &y [*y]\n  roles:", "6:6", "refers to the value that it stands in"),
        ("  roles:", "---\n  roles:", "6:1", "second document"),
        ("  roles:", '  x: "\\ud800"\n  roles:', "6:6", "cannot stand in a value"),
        ("  roles:", "  x: \0\n  roles:", "6:6", r"'\x00' cannot stand in YAML"),
        ("  roles:", "  x: \x1b[31m\n  roles:", "6:6", r"'\x1b' cannot stand in YAML"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(old: str, new: str, place: str, said: str) -> None:
    assert old in MINIMAL
    found = problems_of(MINIMAL.replace(old, new, 1))
    matching = [str(problem) for problem in found if said in str(problem)]
    assert matching, [str(problem) for problem in found]
    assert any(text.startswith(f"job.yaml:{place}: ") for text in matching), matching
    assert all(character.isprintable() or character == "\n" for text in matching for character in text)


@pytest.mark.parametrize(
    ("lines", "place", "said"),
    [
        ("hosts: [{name: a}, {name: a}]", "8:29", "twice: first at line 8, column 18"),
        ("hosts: [{name: a_b}]", "8:18", "is not a name"),
        ("hosts: [{name: a, bandwidth: fast}]", "8:32", "is not a bandwidth"),
        ("hosts: {name: a}", "8:10", "this is a mapping; a list is wanted"),
        ("success: cheif", "8:12", "did you mean 'chief'?"),
        ("active_deadline: 1:30", "8:20", "not a duration"),
        ("ttl_after_finish: 1d", "8:3", "did you mean 'ttl_after_finished'?"),
        ("clean_up: none", "8:13", "running, succeeded, all"),
        (
            "security: {profile: restricted}\n  volumes: [{name: a, host_path: /a, mount_path: /c}]",
            "9:23",
            "no folders of hosts",
        ),
        ("security: {user: 0}", "8:20", "1"),
        ("volumes: [{name: a, host_path: /a, claim: b, mount_path: /c}]", "8:38", "not both"),
        ("volumes: [{name: a, mount_path: /c}]", "8:13", "no source"),
        ("volumes: [{name: a, host_path: ../../etc, mount_path: /c}]", "8:34", "absolute path"),
        ("volumes: [{name: a, host_path: /a/../b, mount_path: /c}]", "8:34", "without '..'"),
        ("volumes: [{name: a, claim: a, mount_path: /}, {name: b, claim: b, mount_path: /}]", "8:81", "is"),
        ("secrets: [A_B]", "8:13", "Kubernetes name"),
        ("placement: {strategy: spread}", "8:25", "did you mean 'spread-ps'?"),
        ("placement: {node_selector: {a b: c}}", "8:31", "label key"),
        ("placement: {node_selector: {a: b c}}", "8:34", "label's value"),
        ("placement: {tolerations: [{operator: Exists, key: a, value: b}]}", "8:63", "takes no value"),
        ("placement: {tolerations: [{effect: NoSchedule}]}", "8:29", "needs a key"),
        ("placement: {tolerations: [{key: a, toleration_seconds: 3}]}", "8:58", "NoExecute"),
        ("training: {optimizer: {name: sgd}}", "8:32", "adagrad, ftrl, adam"),
        ("training: {optimizer: {schedule: {decay: cosine}}}", "8:26", "cosine needs decay_steps"),
        ("training: {consistency: {staleness: 8}}", "8:14", "staleness belongs to the mode"),
        ("training: {consistency: {mode: synchronous, backup_workers: 3}}", "8:14", "use fewer"),
        (
            "training: {steps_in_flight: 2, consistency: {mode: synchronous}}",
            "8:34",
            "steps_in_flight is above 1",
        ),
        ("training: {optimizer: adam}", "8:25", "a mapping (key: value) is wanted"),
        ("training: {hidden_units: [3, x]}", "8:32", "spec.training.hidden_units[1]"),
        ("training: {learning_rate: 3}", "8:14", "unknown key 'learning_rate'"),
        ("training: {fused_tables: maybe}", "8:28", "true or false"),
        ("training: {inputs: {train: []}}", "8:30", "empty"),
        ("training: {variables: [{name: a, rows: 0, dimension: 3}]}", "8:42", "out of range"),
        ("image: 'a b'", "8:10", "not an image"),
        ("working_dir: \"a\\nb\"", "8:16", "not a path"),
        ("code: {}", "8:3", "no source; write one of git, archive, folder, config_map"),
        ("code: {path: a}", "8:3", "no source"),
        ("code: {folder: a, config_map: b}", "8:21", "one of folder and config_map, not from both"),
        ("code: {repo: x}", "8:10", "unknown key 'repo'"),
        ("code: {arxive: {}, folder: a}", "8:10", "did you mean 'archive'?"),
        ("code: {git: https://h/x}", "8:15", "a mapping (key: value) is wanted"),
        ("code: {git: {url: 'https://h/x'}}", "8:10", "spec.code.git.revision: the key is missing"),
        ("code: {git: {url: 'htps://h/x', revision: a}}", "8:21", "did you mean 'https'?"),
        ("code: {git: {url: 'ext::sh -c id', revision: a}}", "8:21", "is not a URL"),
        ("code: {git: {url: --upload-pack=x, revision: a}}", "8:21", "is not a URL"),
        ("code: {git: {url: '-oProxyCommand=x:y', revision: a}}", "8:21", "is not a URL"),
        ("code: {git: {url: 'ssh://-oProxyCommand=x/y', revision: a}}", "8:21", "names no server"),
        ("code: {git: {url: 'https://h/x', revision: --upload-pack=x}}", "8:46", "not a revision"),
        ("code: {git: {url: 'https://h/x', revision: 'a:b'}}", "8:46", "not a revision"),
        ("code: {git: {url: 'https://h/x', revision: +main}}", "8:46", "not a revision"),
        ("code: {git: {url: 'https://h/x', revision: a..b}}", "8:46", "not a revision"),
        ("code: {git: {url: 'https://me:pw@h/x', revision: a}}", "8:21", "PACELINE_CODE_PASSWORD"),
        ("code: {git: {url: 'https://token@h/x', revision: a}}", "8:21", "no place for a password"),
        ("code: {archive: {url: 'https://h/x.tgz'}}", "8:10", "spec.code.archive.sha256: the key is missing"),
        ("code: {archive: {url: 'ftp://h/x', sha256: SHA}}", "8:25", "https, http, s3, hdfs, webhdfs, file"),
        ("code: {archive: {url: 's3:///x', sha256: SHA}}", "8:25", "names no server"),
        ("code: {archive: {url: 's3://b/x', sha256: abc}}", "8:45", "64 digits from 0-9 and a-f"),
        ("code: {folder: src, path: ../x}", "8:29", "relative path without '..'"),
        ("code: {folder: src, path: /x}", "8:29", "relative path without '..'"),
        ("code: {folder: src}\n  working_dir: ../x", "9:16", "may lead out of the code"),
    ],
)  # fmt: skip
def test_errors_of_further_fields(lines: str, place: str, said: str) -> None:
    found = problems_of(f"{MINIMAL}  {lines.replace('SHA', 'a' * 64)}\n")
    assert len(found) == 1, found
    assert str(found[0]).startswith(f"job.yaml:{place}: ")
    assert said in str(found[0])


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "1:1", "empty"),
        ("# only a comment\n", "1:1", "empty"),
        ("- a\n", "1:1", "the file is a list"),
        ("text", "1:1", "a single text"),
        ("\ud800", "1:1", "cannot stand"),
        ("[" * 100_000, "1:51", "deeper than 50 levels"),
        ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{i}: [*b]\n" for i in range(9000)), "", "more than"),
        ("x" * (1 << 20) + "x", "1:1", "the limit is 1048576"),
        (b"a: \xff", "1:4", "byte 0xff"),
        ("a: b\nc: d".encode("utf-16"), "1:1", "not UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00", "1:1", "cannot stand"),
    ],
)  # fmt: skip
def test_files_that_are_no_jobs(text: str | bytes, place: str, said: str) -> None:
    found = problems_of(text)
    assert said in str(found[0])
    assert str(found[0]).startswith("job.yaml:")
    if place:
        assert str(found[0]).startswith(f"job.yaml:{place}: ")


def test_alias_bombs_end_early() -> None:
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    assert "unfold to more than" in str(problems_of("\n".join(layers))[0])
    merges = ["m0: &m0 {k: v}"]
    merges += [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 10)}]}}" for i in range(1, 10)]
    assert "unfold to more than" in str(problems_of("\n".join(merges))[0])


def test_all_errors_come_together_and_at_most_twenty_are_shown() -> None:
    text = MINIMAL + "".join(f"  unknown{i}: 1\n" for i in range(30))
    with pytest.raises(specs.DocumentError) as caught:
        specs.parse_job(text)
    assert len(caught.value.problems) == 30
    assert caught.value.message.count("unknown key") == 20
    assert caught.value.message.endswith("and 10 more")
    assert caught.value.exit_code == 2


def test_the_excerpt_points_at_the_place() -> None:
    (problem,) = problems_of(MINIMAL.replace("replicas: 2", "replicas: two"))
    line, caret = problem.excerpt.splitlines()
    assert line == "    7 |     worker: {replicas: two}"
    assert line[caret.index("^") :].startswith("two")


def test_the_excerpt_of_wide_and_long_lines() -> None:
    (problem,) = problems_of(MINIMAL.replace("{replicas: 2}", "{environment: {A: 点击率}, replicas: two}"))
    line, caret = problem.excerpt.splitlines()
    assert len(line) + 3 - len(line[line.index("two") :]) == caret.index("^")
    long = MINIMAL.replace("{replicas: 2}", "{environment: {A: " + "x" * 500 + "}, replicas: two}")
    line, caret = problems_of(long)[0].excerpt.splitlines()
    assert line[caret.index("^") :].startswith("two")
    assert len(line) < 120


def test_hostile_file_names_are_not_echoed() -> None:
    with pytest.raises(specs.DocumentError) as caught:
        specs.parse_job("", "\x1b]0;x\x07.yaml")
    assert "\x1b" not in caught.value.message


def test_frameworks() -> None:
    assert specs.parse_job(MINIMAL).spec.framework is job_specs.Framework.TENSORFLOW
    torch = MINIMAL.replace("spec:\n", "spec:\n  framework: pytorch\n")
    assert specs.parse_job(torch).spec.framework is job_specs.Framework.PYTORCH
    (problem,) = problems_of(torch + "    ps: {replicas: 1}\n")
    assert (problem.path, problem.position.line) == ("spec.roles.ps", 9)
    assert problem.message.startswith("PyTorch has no parameter servers")
    specs.parse_job(torch + "    ps: {replicas: 0}\n")
    (problem,) = problems_of(torch + "  training: {batch_size: 1}\n")
    assert (problem.path, problem.position.line) == ("spec.training", 9)
    (problem,) = problems_of(MINIMAL.replace("spec:\n", "spec:\n  framework: torch\n"))
    assert "is not tensorflow, pytorch or plain" in problem.message or "pytorch" in problem.message
