"""An S3 server of the kind that is run in earnest: VersityGW, which keeps buckets as folders of a disk.

The server of `s3_stores` can be told to fail, but its speed says nothing of a real one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from support import ports
from support.kills import until
from support.prerequisites import NotHere

_MODULE, _VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
_FOLDER = Path.home() / ".cache" / "paceline-versitygw" / _VERSION
_BUILD_SECONDS = 900.0
_KEY, _SECRET = "key", "secret-of-a-benchmark"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run a server for as long as the block lasts; give the environment by which clients find it.

    Args:
        folder: each folder in it is a bucket; what the server knows of them is kept beside it.

    Raises:
        NotHere: the server is not there, and cannot be built.
    """
    program, port = _program(), ports.free_ports(1)[0]
    metadata = folder.parent / "versitygw"
    metadata.mkdir()
    command = [
        str(program), "--access", _KEY, "--secret", _SECRET, "--port", f"127.0.0.1:{port}", "--quiet",
        "posix", "--sidecar", str(metadata), str(folder),
    ]  # fmt: skip
    with (folder.parent / "versitygw.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        if until(lambda: _answers(port) or server.poll()) is not True:
            raise NotHere(f"no S3 server: VersityGW ended: {(folder.parent / 'versitygw.log').read_text()}")
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.terminate()
        server.wait()


def _program() -> Path:
    program = _FOLDER / "versitygw"
    if not program.exists():
        if shutil.which("go") is None:
            raise NotHere("no S3 server: building VersityGW takes Go")
        try:
            subprocess.run(
                ["go", "install", f"{_MODULE}@{_VERSION}"],
                env={**os.environ, "GOBIN": str(_FOLDER)},
                check=True,
                capture_output=True,
                text=True,
                timeout=_BUILD_SECONDS,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise NotHere(f"no S3 server: {error} {str(error.stderr)[-500:]}") from error
    return program


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
