"""How long parameter servers may take to answer a call before it counts as lost.

TensorFlow's runtime now and then never ends a call, though every server lives and answers others. It numbers
calls to tell retries apart (`GetUniqueRequestId`), by a generator of the thread that makes the call, seeded
with 32 bits; and it makes every call in a new thread. So among the 100,000 numbers that a server remembers
(`RecentRequestIds`) one comes again, once in some tens of thousands of steps. One process refuses that call
(`AbortedError`: "received twice"). If the refusal comes before the call has been sent to the next process,
that one is not called off, and waits for the first for ever. Seen in TensorFlow 2.21.

A trainer that went on waiting would do so for ever, and with it all that keep step with it. So a call has a
deadline (`ConfigProto.operation_timeout_in_ms`), after which the trainer connects anew, as after a loss.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf1

FIRST_SECONDS, LONGEST_SECONDS = 30.0, 3600.0
_FEW_STEPS = 10

UNHURRIED = tf1.RunOptions(timeout_in_ms=24 * 3600 * 1000)
"""For calls whose length goes with the size of a model or of the data: to restore, to evaluate."""


def following(seconds: float, steps: int) -> float:
    """The deadline after one of so many seconds was missed, in a session that finished so many steps.

    Who finished hardly any may be slow, not stuck, and is given twice the time.
    """
    return FIRST_SECONDS if steps > _FEW_STEPS else min(2 * seconds, LONGEST_SECONDS)
