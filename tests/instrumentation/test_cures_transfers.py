"""Rows and their gradients cross the network in half the bytes, and a script learns nearly the same."""

from __future__ import annotations

import pytest
from support import nights, ports
from support.cured import result, said

pytestmark = pytest.mark.slow
SCRIPT = "precision.py"
#: TensorFlow, the type that is sent.
SENT = [
    ("1.4.1", "bfloat16"), ("1.15.5", "bfloat16"), ("1.4.1", "float16"), ("1.8.0", "bfloat16"),
    ("1.12.3", "float16"), ("2.4.4", "bfloat16"), (None, "bfloat16"), (None, "float16"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "kind"), nights.but(SENT, often=SENT[6:7]))
def test_rows_and_gradients_are_sent_small(runner, version, kind):
    cured = result(
        runner, version, SCRIPT, "--ports", ports.joined(2), training={"transfers": {"precision": kind}}
    )
    assert said(runner) == [("transfer-precision", "applied", "one, other")]
    plain = result(runner, version, SCRIPT, "--ports", ports.joined(2))
    rate = ["float32"] * (len(plain["sent"]["ps"]) - 2)  # The learning rate; not each version sends it.
    assert plain["sent"] == {"ps": ["float32", "float32", *rate], "worker": ["float32", "float32"]}
    assert cured["sent"] == {"ps": [kind, kind, *rate], "worker": [kind, kind]}
    assert cured["kept"] == "float32"
    assert cured["losses"] != plain["losses"]  # They were rounded.
    assert cured["losses"] == pytest.approx(plain["losses"], rel=0.02)
    assert plain["losses"][-1] < plain["losses"][0] / 3
