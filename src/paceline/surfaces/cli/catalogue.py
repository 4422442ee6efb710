"""The verbs with a one-line summary each: all that help and completion need, without loading a verb."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """A verb, its section in the help, and its summary."""

    name: str
    section: str
    summary: str

    @property
    def module(self) -> str:
        """The module that has the command; the command's name there is ``command``."""
        return f"paceline.surfaces.cli.verbs.{self.name}"


VERBS = {
    verb.name: verb
    for verb in (
        Verb("run", "Run", "Submit a job and follow it to its end."),
        Verb("submit", "Run", "Submit a job and return at once."),
        Verb("resume", "Run", "Bring back a stopped, failed or lost job."),
        Verb("scale", "Run", "Give running jobs more workers, or fewer."),
        Verb("resize", "Run", "Give replicas other cores or memory while they run."),
        Verb("list", "Look", "List the jobs, the newest first."),
        Verb("get", "Look", "Show one job and its replicas."),
        Verb("describe", "Look", "Show all about a job: spec, replicas, events, paths."),
        Verb("why", "Look", "Say why a job is pending, failed, restarting or slow."),
        Verb("top", "Look", "Watch load, imbalance and progress of a job."),
        Verb("probe", "Look", "Ask a running job what binds: cores or links, and whose."),
        Verb("predict", "Look", "Say how fast a job would train with another layout."),
        Verb("tune", "Look", "Say what to change in a job; try it, keep what helps."),
        Verb("suggest", "Look", "Say how past runs of a model would lay a job out."),
        Verb("experiment", "Look", "Compare variants of a job, run in turn."),
        Verb("explain", "Look", "Say what the code of a finding or cause is about."),
        Verb("thresholds", "Look", "List the numbers that rules compare with; a site sets them."),
        Verb("trace", "Look", "Trace a few steps: bytes and time by variable and PS."),
        Verb("logs", "Look", "Print or follow the output of replicas."),
        Verb("wait", "Look", "Wait until jobs run, are found slow, or have ended."),
        Verb("record", "Look", "Write all that is known of a job into one file."),
        Verb("import", "Look", "Keep the file of a recording as a job."),
        Verb("report", "Look", "Write a page about a job, with plots, and its numbers."),
        Verb("serve", "Look", "Serve a page about all jobs, and an API."),
        Verb("stop", "End", "Stop jobs; they can be resumed."),
        Verb("delete", "End", "Remove jobs with logs, samples and checkpoints."),
        Verb("prune", "End", "Keep less of jobs that ended some time ago."),
        Verb("lint", "Check", "Check a job file or a Kubernetes manifest."),
        Verb("plan", "Check", "Compare layouts of a model's variables over the PS."),
        Verb("simulate", "Check", "Simulate a job, and record what would be measured."),
        Verb("fit", "Check", "Say whether all of a job fits now, and what blocks it."),
        Verb("render", "Check", "Print a job as objects of Kubernetes."),
        Verb("doctor", "Check", "Check what this machine or a cluster lets Paceline do."),
        Verb("demo", "Set up", "Show all of it on a slow job, in five minutes."),
        Verb("init", "Set up", "Write a job file, or a whole example, to start from."),
        Verb("convert", "Set up", "Print a Kubeflow TFJob as a job file."),
        Verb("schema", "Set up", "Print the JSON Schema of job files."),
        Verb("operator", "Set up", "Look after the jobs of a Kubernetes cluster."),
        Verb("completion", "Set up", "Print the completion script of a shell."),
        Verb("version", "Set up", "Print the version."),
    )
}

#: The meanings of the exit codes; ``paceline.errors`` has those of errors, too.
EXIT_CODES = (
    (0, "done"),
    (1, "what was asked for cannot be done"),
    (2, "a job file, an argument or an option is wrong"),
    (3, "no such job, replica or file"),
    (4, "a finding at or above --fail-on"),
    (5, "the wait ended before the job did"),
    (6, "the job ended, but did not succeed"),
    (130, "interrupted"),
)


def sections() -> dict[str, list[Verb]]:
    """Return the verbs by section, in order."""
    found: dict[str, list[Verb]] = {}
    for verb in VERBS.values():
        found.setdefault(verb.section, []).append(verb)
    return found
