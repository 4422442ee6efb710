"""Custom resource definitions of other operators, as upstream has them, for the API server of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.real_clusters import kubectl

FOLDER = Path(__file__).parents[3] / "shared" / "crds"


def install() -> None:
    """Make all of them known, or skip the test when they are not here.

    They are too long for the annotation that `kubectl apply` writes.
    """
    if not FOLDER.is_dir():
        pytest.skip(f"the definitions of TFJob and Volcano are not there: {FOLDER}")
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", "-f", str(FOLDER)).split()
    kubectl("wait", "--for=condition=Established", "--timeout=60s", *applied)
