"""A store that speaks S3's protocol, and an environment that leads there."""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest


class S3Server:
    """A store on this machine's loopback that can be away for a while; what it keeps stays.

    Attributes:
        url: where it answers.
    """

    def __init__(self) -> None:
        self._moto = pytest.importorskip("moto.server")
        self._server = self._started(0)
        host, self._port = self._server.get_host_and_port()
        self.url = f"http://{host}:{self._port}"

    def _started(self, port: int) -> Any:
        server = self._moto.ThreadedMotoServer("127.0.0.1", port=port, verbose=False)
        server.start()
        return server

    def start(self) -> None:
        """Answer again, at the same place as before."""
        self._server = self._started(self._port)

    def stop(self) -> None:
        """Answer no more, until it is started again."""
        self._server.stop()

    def post(self, path: str, content: bytes = b"") -> None:
        """Call the interface by which the store is set up.

        Args:
            path: ``reset`` removes all that it keeps. After ``reset-auth`` and as many requests as
                ``content`` says, the store looks at keys, of which it knows none.
            content: what is posted.
        """
        where, headers = f"{self.url}/moto-api/{path}", {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(where, content, headers, method="POST")).close()


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a store without buckets, to which the environment leads, for as long as the block lasts."""
    s3fs = pytest.importorskip("s3fs")
    server = S3Server()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "AWS_ENDPOINT_URL": server.url,
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
            }.items():
                patch.setenv(name, value)
            # All stores of a process have the same buckets and users, those of tests before, too.
            server.post("reset")
            server.post("reset-auth", b"inf")
            # File systems are kept by their arguments, and these say nothing of the environment.
            s3fs.S3FileSystem.clear_instance_cache()
            yield server
            s3fs.S3FileSystem.clear_instance_cache()
    finally:
        server.stop()


@contextlib.contextmanager
def s3_store(bucket: str) -> Iterator[Any]:
    """Give the file system of a store with one empty bucket, for as long as the block lasts."""
    with s3_server():
        system = pytest.importorskip("s3fs").S3FileSystem()
        system.mkdir(bucket)
        yield system
