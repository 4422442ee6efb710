"""The API server of a cluster on this machine, as a process that can be restarted."""

from __future__ import annotations

import base64
import dataclasses
import os
import signal
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import yaml
from support import clusters
from support.kills import until
from support.prerequisites import NotHere

_NAME = "kube-apiserver"
_READY_SECONDS = 120.0


def address() -> tuple[int, ssl.SSLContext]:
    """Return the port of this machine on which the API server of KUBECONFIG listens, and how to trust it.

    Raises:
        NotHere: it is elsewhere.
    """
    config = yaml.safe_load(clusters.kubectl("config", "view", "--raw", "--flatten", "--minify"))
    cluster = config["clusters"][0]["cluster"]
    server = urlsplit(cluster["server"])
    if server.hostname not in ("127.0.0.1", "localhost") or server.port is None:
        raise NotHere(f"it cuts connections to an API server on this machine; {server.netloc} is elsewhere")
    trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return int(server.port), ssl.create_default_context(cadata=trusted)


@dataclasses.dataclass
class ApiServer:
    """An API server in our own namespaces of processes and networks."""

    process: psutil.Process

    @classmethod
    def find(cls) -> ApiServer | None:
        """Return that of KUBECONFIG; None when it is no process of ours, as in a container."""
        wanted = str(address()[0])
        for process in psutil.process_iter(["name", "cmdline"]):
            arguments = process.info["cmdline"] or []
            # Names of processes are cut at 15 characters.
            if process.info["name"] in (_NAME, _NAME[:15]) and wanted in arguments and _is_here(process.pid):
                return cls(process)
        return None

    def restart(self, number: signal.Signals) -> None:
        """End it by a signal, start it again by the same command line, and return when it is ready."""
        command, folder = self.process.cmdline(), self.process.cwd()
        log = Path(f"/proc/{self.process.pid}/fd/2").resolve()
        environment = self.process.environ()
        self.process.send_signal(number)
        psutil.wait_procs([self.process], timeout=_READY_SECONDS)
        with log.open("ab") as output:
            started = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        self.process = psutil.Process(started.pid)
        until(_is_ready, seconds=_READY_SECONDS, every_seconds=0.3)


def _is_here(pid: int) -> bool:
    kinds = ("pid", "net")
    return all(
        os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}") for kind in kinds
    )


def _is_ready() -> bool:
    try:
        return clusters.kubectl("get", "--raw", "/readyz") == "ok"
    except clusters.KubectlError:
        return False
