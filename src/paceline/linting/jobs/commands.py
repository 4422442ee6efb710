"""Rules on commands, environments and images."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from paceline.linting import shells
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity
from paceline.model.jobs import job_specs
from paceline.specs import JobFile
from paceline.specs.yaml_text import documents, problems

_SECRET = re.compile(
    r"(^|_)(PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIALS?)$",
    re.IGNORECASE,
)
_HOSTS = re.compile(r"^-{0,2}(ps|worker|chief|evaluator)_?-?hosts?(=|$)", re.IGNORECASE)
_ADDRESSES = re.compile(r"[\w.-]+:\d{2,5}(,[\w.-]+:\d{2,5})*", re.ASCII)
#: Names that are branches nearly everywhere; about other names, only the git server knows.
_BRANCH = re.compile(r"refs/heads/.*|HEAD|main|master|trunk|dev|develop")
_BRACES = re.compile(r"(?<![${])\{([A-Za-z][A-Za-z_.]{0,40})\}(?!\})")


def commands(job: JobFile) -> Iterator[tuple[documents.Path, tuple[str, ...]]]:
    """Yield the commands of a job file, each with its path."""
    if job.spec.command:
        yield ("spec", "command"), job.spec.command
    for role in job.spec.roles:
        if role.command:
            yield ("spec", "roles", str(role.role), "command"), role.command


def _scripts(job: JobFile) -> Iterator[tuple[documents.Path, shells.Script]]:
    """Yield the scripts that commands pass to a shell, each with its path."""
    for path, command in commands(job):
        script = shells.script_of(command)
        if script is not None:
            yield (*path, script.at), script


def _environment(job: JobFile) -> Iterator[tuple[documents.Path, str, str]]:
    for name, value in job.spec.environment.items():
        yield ("spec", "environment", name), name, value
    for role in job.spec.roles:
        for name, value in role.environment.items():
            yield ("spec", "roles", str(role.role), "environment", name), name, value


def _words(job: JobFile) -> Iterator[tuple[documents.Path, str]]:
    for path, command in commands(job):
        yield from (((*path, index), word) for index, word in enumerate(command))
    yield from ((path, value) for path, _, value in _environment(job))


#: Placeholders and variables of other launchers, and the placeholders that correspond to them here.
_OF_OTHERS = {
    **dict.fromkeys(("job_name", "task_name", "task_type", "JOB_NAME", "TASK_TYPE"), "role"),
    **dict.fromkeys(("task_index", "task_id", "TASK_INDEX"), "index"),
    **dict.fromkeys(("cluster", "CLUSTER_SPEC"), "cluster_spec"),
}


@rule(
    "JOB701",
    "A secret written into the job file",
    Severity.WARNING,
    why="Job files are copied, committed and kept with every run. A password in one is known to all who "
    "can read any of these.",
    fix="Put it into a Secret and name that under spec.secrets, or mount it as a file.",
)
def literal_secret(job: JobFile) -> Iterator[LintHit]:
    """Secrets do not belong in job files."""
    for path, name, value in _environment(job):
        literal = value.strip() and not value.startswith(("/", "$", "{")) and not value.isdecimal()
        if literal and value.lower() not in ("true", "false") and _SECRET.search(name):
            yield LintHit(
                job.document, path, f"{name} has a literal value ({len(value)} characters, not shown)"
            )


@rule(
    "JOB702",
    "The command downloads code and runs it",
    Severity.WARNING,
    why="What is downloaded can change between two attempts of the same replica, so replicas may run "
    "different code; hundreds of replicas load the server at once; and nothing checks what arrived.",
    fix="Name the code in spec.code (git, or an archive with its sha256), or put it into the image.",
)
def downloading_command(job: JobFile) -> Iterator[LintHit]:
    """Code belongs in the image."""
    for path, command in commands(job):
        for index, word in enumerate(command):
            what = shells.download_in(word)
            if what:
                yield LintHit(job.document, (*path, index), f"the command runs {problems.shown(what)}")
        if command[0].rpartition("/")[2] in ("wget", "curl") and shells.download_in(" ".join(command)):
            yield LintHit(job.document, path, f"the command runs {problems.shown(' '.join(command))}")


@rule(
    "JOB703",
    "Host lists written by hand",
    Severity.WARNING,
    why="Paceline chooses hosts and ports for each attempt. Addresses written by hand are wrong as soon "
    "as a replica moves, or a second job runs on the same machine.",
    fix="Write the placeholders: --ps_hosts={ps_hosts} --worker_hosts={worker_hosts}. TF_CONFIG is set "
    "for you.",
)
def literal_hosts(job: JobFile) -> Iterator[LintHit]:
    """Hosts come from placeholders."""
    for path, command in commands(job):
        for index, word in enumerate(command):
            flag = _HOSTS.match(word)
            value = word[flag.end() :] if flag else ""
            if flag and not value and index + 1 < len(command):
                value = command[index + 1]
            if flag and _ADDRESSES.fullmatch(value):
                yield LintHit(job.document, (*path, index), f"{problems.shown(word)} names hosts by hand")
    for path, name, value in _environment(job):
        if name == "TF_CONFIG" and "{" in value and _ADDRESSES.search(value):
            yield LintHit(
                job.document, path, "TF_CONFIG names hosts by hand and takes the place of Paceline's own"
            )


@rule(
    "JOB704",
    "A placeholder that does not exist",
    Severity.ERROR,
    why="Braces with an unknown name are passed on as they stand, so the script gets the text itself, "
    "such as {ps_host}, where it expects a value.",
    fix="Write the name as docs/job-file.md lists it. Double braces give literal ones.",
)
def unknown_placeholder(job: JobFile) -> Iterator[LintHit]:
    """Placeholders must exist."""
    for path, word in _words(job):
        for match in _BRACES.finditer(word):
            name = match[1]
            if name == "code_dir" and job.spec.code is None:
                yield LintHit(
                    job.document, path, "{code_dir} has no value, because no code is fetched: spec.code"
                )
            if name in job_specs.PLACEHOLDERS:
                continue
            if name in _OF_OTHERS:
                meant = _OF_OTHERS[name]
                message = (
                    f"there is no placeholder {{{name}}}; what other launchers call so is {{{meant}}} here"
                )
                yield LintHit(job.document, path, message, fix=f"Write {{{meant}}}.")
                continue
            close = difflib.get_close_matches(name.lower(), job_specs.PLACEHOLDERS, n=1, cutoff=0.8)
            if close:
                message = f"there is no placeholder {{{name}}}; did you mean {{{close[0]}}}?"
                yield LintHit(job.document, path, message, fix=f"Write {{{close[0]}}}.")


@rule(
    "JOB705",
    "An image without a fixed version",
    Severity.WARNING,
    why="`latest`, or no tag at all, means another image whenever someone pushes one: replicas that start "
    "later, or are restarted, may run other code than the first.",
    fix="Write a tag that does not move, such as :1.4, or a digest (@sha256:...).",
)
def floating_image(job: JobFile) -> Iterator[LintHit]:
    """Images need versions."""
    if job.spec.image is not None and (what := shells.floating_tag(job.spec.image)):
        yield LintHit(job.document, ("spec", "image"), f"the image {problems.shown(job.spec.image)} {what}")


@rule(
    "JOB706",
    "Code from a branch",
    Severity.WARNING,
    why="A branch moves: replicas that start later, or are restarted, may run other code than the first. On "
    "one machine the code is fetched once, but a later run of the same job file may be another one.",
    fix="Write the commit, as git rev-parse prints it, or a tag that does not move.",
)
def floating_revision(job: JobFile) -> Iterator[LintHit]:
    """Code needs a commit."""
    git = job.spec.code.git if job.spec.code is not None else None
    if git is not None and _BRANCH.fullmatch(git.revision):
        message = f"the revision {problems.shown(git.revision)} is a branch"
        yield LintHit(job.document, ("spec", "code", "git", "revision"), message)


@rule(
    "JOB708",
    "The program is left in the background",
    Severity.WARNING,
    why="The shell ends at once, and so does the replica: what it has left behind is ended as well, and the "
    "job counts as one that has succeeded.",
    fix="Leave out the & and nohup: a replica runs without a terminal.",
)
def background_program(job: JobFile) -> Iterator[LintHit]:
    """A command lasts as long as its program."""
    for path, script in _scripts(job):
        if shells.is_left_behind(script):
            yield LintHit(job.document, path, "the command ends with &, and its program with it")


@rule(
    "JOB709",
    "The exit code of the program is hidden",
    Severity.WARNING,
    why="A shell line has the code of its last command. A training that fails in front of a pipe or a "
    "semicolon counts as one that has succeeded: it is not started again, and no message says so.",
    fix="End with the program: exec python train.py; && in place of ;. With a pipe: "
    "[bash, -o, pipefail, -c, ...]. Output is kept anyway: paceline logs.",
)
def hidden_failure(job: JobFile) -> Iterator[LintHit]:
    """A command fails when its program fails."""
    for path, script in _scripts(job):
        if hidden := shells.hidden_failure(script):
            message = (
                f"the command ends with the code of {problems.shown(hidden)}, not with that of its program"
            )
            yield LintHit(job.document, path, message)


RULES = (
    literal_secret, downloading_command, literal_hosts, unknown_placeholder, floating_image,
    floating_revision, background_program, hidden_failure,
)  # fmt: skip
