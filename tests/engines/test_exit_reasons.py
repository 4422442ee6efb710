"""What an agent says of the end of its command is a reason, or none: it comes from a pod of others."""

from __future__ import annotations

import pytest

from paceline.engines import exit_reasons
from paceline.model.jobs.statuses import ExitKind, ExitReason


def test_a_reason_is_read() -> None:
    said = '{"kind": "error", "code": 3, "signal": null, "message": "bad"}'
    assert exit_reasons.told(said) == ExitReason(kind=ExitKind.ERROR, code=3, signal=None, message="bad")


@pytest.mark.parametrize("code", ["1e999", "NaN", '"3"', "[3]", "1" + "0" * 30, "[" * 100_000])
def test_what_no_process_ends_with_is_no_reason(code: str) -> None:
    said = '{"kind": "error", "signal": null, "message": "", "code": ' + code + "}"
    assert exit_reasons.told(said) is None
