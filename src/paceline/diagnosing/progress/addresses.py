"""Addresses in the script that are not the job's addresses.

If the script starts TensorFlow's server, the instrumentation compares the server's cluster with the job's
cluster. For any script, the agent reports that nothing listens at the address where other replicas look for
this replica, and where the replica listens instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import SEEN
from paceline.model.words import listed

#: The first words of the instrumentation's remark about a cluster with other addresses.
NOT_THE_JOBS = "its cluster is not the job's: "

TOPIC = Topic(
    code="PRG013",
    name="other-addresses",
    title="The addresses in the script are not those of the job",
    severity=Severity.WARNING,
    why="A script that was tried on one machine has its addresses written into it, localhost:2222 say. A job "
    "gives its replicas addresses of its own, on as many machines as it has. So replicas look for each other "
    "where none of them is, and wait; or they meet another job that has the same addresses in it.",
    fix="Take the addresses from the job: {ps_hosts} and {worker_hosts} in spec.command, or TF_CONFIG.",
)


@rule(
    TOPIC,
    needs=(),
    explains=("nothing-trained", "standing-trainers", "waiting-at-start", "hang", "idle-workers"),
)
def other_addresses(case: Case) -> Iterator[Hit]:
    """Replicas whose TensorFlow cluster has addresses that no replica of the job has."""
    said = [each for each in sayings.of(case, SEEN) if each.message.startswith(NOT_THE_JOBS)]
    if not said:
        return
    names = sayings.names(said)
    works = silences.steps_made(case.recording.steps)
    so_far = (
        ", and it trains: its replicas find each other only because they share a machine" if works else ""
    )
    yield Hit(
        what=f"The script of {listed(names)} has addresses that are not the job's{so_far}.",
        subjects=tuple(names),
        evidence=sayings.evidence(said),
        next_steps=(
            "spec.command: hand {ps_hosts} and {worker_hosts} to the script, or let it read TF_CONFIG",
            f"paceline describe {case.recording.run.name} shows the addresses of the job",
        ),
        severity=Severity.INFO if works else None,
    )
