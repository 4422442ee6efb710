"""A store that speaks S3's protocol, and an environment that leads there."""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest


@contextlib.contextmanager
def s3_store(bucket: str) -> Iterator[Any]:
    """Give the file system of a store with one empty bucket, for as long as the block lasts."""
    s3fs = pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.server")
    store = moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    store.start()
    try:
        host, port = store.get_host_and_port()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "AWS_ENDPOINT_URL": f"http://{host}:{port}",
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
            }.items():
                patch.setenv(name, value)
            # All stores of a process have the same buckets, those of tests before, too.
            reset = urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST")
            urllib.request.urlopen(reset).close()
            # File systems are kept by their arguments, and these say nothing of the environment.
            s3fs.S3FileSystem.clear_instance_cache()
            system = s3fs.S3FileSystem()
            system.mkdir(bucket)
            yield system
            s3fs.S3FileSystem.clear_instance_cache()
    finally:
        store.stop()
