"""A process that uses a store, for tests with several: ``writer.py open|append|spool URL [REPLICA]``.

``spool`` writes until it is killed: stretches of 100 bytes with 5 samples and 1 event each. ``writer.py die
URL STATEMENT`` opens a store and kills itself behind the first statement that begins like this.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import Any

import sqlalchemy as sa

from paceline import stores
from paceline.model import roles
from paceline.model.jobs import runs
from paceline.model.measures import samples


def main(task: str, url: str, word: str = "ps-0") -> None:
    if task == "die":
        _die_behind(word)
        stores.open_store(url)
        return
    replica = roles.ReplicaId.parse(word)
    with stores.open_store(url) as store:
        _say("opened")
        if task == "append":
            for batch in range(20):
                store.append_samples("demo", _samples(replica, batch))
                store.append_events("demo", [_event(replica, batch)])
        elif task == "spool":
            first = store.spool_offset("demo", replica, 1) // 100
            for batch in itertools.count(first):
                store.append_from_spool(
                    "demo", replica, 1, previous_offset=batch * 100, offset=(batch + 1) * 100,
                    samples=_samples(replica, batch), events=[_event(replica, batch)],
                )  # fmt: skip
                _say(str(batch))


def _die_behind(statement: str) -> None:
    def executed(_connection: object, _cursor: object, text: str, *_: Any) -> None:
        if text.lstrip().startswith(statement):
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, "after_cursor_execute", executed)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _samples(replica: roles.ReplicaId, batch: int) -> list[samples.Sample]:
    return [
        samples.Sample(replica=replica, attempt=1, at=batch * 5.0 + line, interval_seconds=1.0, cpu_cores=0.5)
        for line in range(5)
    ]


def _event(replica: roles.ReplicaId, batch: int) -> runs.JobEvent:
    return runs.JobEvent(at=float(batch), kind="batch", message=str(batch), replica=replica, attempt=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
