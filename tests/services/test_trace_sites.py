"""Files of traces that take the place of others."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from paceline.services import trace_sites


def test_two_who_bring_the_same_file_do_not_meet(tmp_path: Path) -> None:
    path, errors = tmp_path / "traces" / "worker-0.1.parquet", list[Any]()

    def bring() -> None:
        try:
            for _ in range(200):
                with trace_sites.replacing(path) as part:
                    part.write_bytes(b"PAR1")
        except Exception as error:  # noqa: BLE001 - whatever it is
            errors.append(error)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert [each.name for each in path.parent.iterdir()] == [path.name]
