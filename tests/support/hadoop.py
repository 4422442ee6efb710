"""A real HDFS on this machine's loopback, of which files are written and read through WebHDFS."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[3] / "shared" / "ground" / "hdfs.sh"
_NAME_NODE = "http://127.0.0.1:9870/webhdfs/v1"


@contextlib.contextmanager
def hdfs() -> Iterator[str]:
    """Run a name node and a data node for as long as the block lasts; give the address of WebHDFS."""
    missing = [each for each in ("java", "mvn") if shutil.which(each) is None]
    if missing or not _SCRIPT.exists():
        pytest.skip(f"no HDFS: {', '.join(missing) or _SCRIPT}")
    subprocess.run([_SCRIPT, "up"], check=True)
    try:
        yield _NAME_NODE
    finally:
        subprocess.run([_SCRIPT, "down"], check=True)


def put(url: str, content: bytes) -> None:
    """Write a file, by its address in WebHDFS: the name node says which data node takes it."""
    asked = urllib.request.Request(
        f"{url}?op=CREATE&user.name=root&noredirect=true&overwrite=true", method="PUT"
    )
    with urllib.request.urlopen(asked, timeout=240) as answer:
        location = json.load(answer)["Location"]
    taken = urllib.request.Request(
        location, content, {"Content-Type": "application/octet-stream"}, method="PUT"
    )
    with urllib.request.urlopen(taken, timeout=240) as answer:
        assert answer.status == 201
