"""A real HDFS on this machine's loopback: a name node and a data node that can be killed and started."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

from support.kills import until
from support.prerequisites import NotHere

_SCRIPT = Path(__file__).parents[3] / "shared" / "ground" / "hdfs.sh"
_STATE = Path(os.environ.get("PACELINE_GROUND") or Path.home() / ".cache" / "paceline-ground") / "hdfs"
_LOCK = Path(tempfile.gettempdir()) / "paceline-hdfs.lock"
NAME_NODE, DATA_NODE = "nn", "dn"
_READY_SECONDS = 240.0
#: The first time, Maven fetches it.
_FETCH_SECONDS = 900.0


class Hdfs:
    """The file system; its user is root, as is its superuser.

    Attributes:
        url: for clients of Hadoop's own protocol.
        web: the address of WebHDFS.
    """

    url = "hdfs://127.0.0.1:9820"
    web = "http://127.0.0.1:9870/webhdfs/v1"

    def __init__(self) -> None:
        self._commands = {
            node: psutil.Process(int((_STATE / f"{node}.pid").read_text())).cmdline()
            for node in (NAME_NODE, DATA_NODE)
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def kill(self, node: str) -> None:
        """End the name node or the data node without a warning."""
        process = self._process(node)
        assert process is not None, "it runs until it is killed"
        process.kill()
        process.wait()

    def start(self, node: str) -> None:
        """Start a node that was killed, and return when files can be read and written."""
        with (_STATE / f"{node}.log").open("ab") as log:
            started = subprocess.Popen(
                self._commands[node], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._started.append(started)
        (_STATE / f"{node}.pid").write_text(str(started.pid))
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Return when the name node has left safe mode and knows the data node."""
        until(self._is_ready, seconds=_READY_SECONDS)

    def end(self) -> None:
        """End both nodes, and return when their ports are free."""
        alive = [process for node in (NAME_NODE, DATA_NODE) if (process := self._process(node)) is not None]
        for process in alive:
            process.terminate()
        psutil.wait_procs(alive, timeout=_READY_SECONDS)
        for started in self._started:
            started.wait(timeout=_READY_SECONDS)

    def admin(self, *arguments: str) -> str:
        """Run a command of Hadoop's ``dfsadmin``; return what it prints."""
        return self._tool("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def put(self, path: str, content: bytes, *, appends: bool = False) -> None:
        """Write or append to a file, by WebHDFS: the name node says which data node takes it."""
        operation, method = ("APPEND", "POST") if appends else ("CREATE&overwrite=true", "PUT")
        asked = urllib.request.Request(
            f"{self.web}{path}?op={operation}&user.name=root&noredirect=true", method=method
        )
        with urllib.request.urlopen(asked, timeout=240) as answer:
            location = json.load(answer)["Location"]
        taken = urllib.request.Request(
            location, content, {"Content-Type": "application/octet-stream"}, method=method
        )
        with urllib.request.urlopen(taken, timeout=240) as answer:
            assert answer.status in (200, 201)

    def _tool(self, name: str, *arguments: str) -> str:
        java = self._commands[NAME_NODE]
        command = [*java[: java.index("-cp") + 2], name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout

    def _is_ready(self) -> bool:
        try:
            asked = urllib.request.urlopen(
                "http://127.0.0.1:9870/jmx?qry=Hadoop:service=NameNode,name=*", timeout=60
            )
            with asked as answer:
                beans = {bean["name"].rpartition("=")[2]: bean for bean in json.load(answer)["beans"]}
        except OSError:
            return False
        live = beans.get("FSNamesystemState", {}).get("NumLiveDataNodes", 0)
        return live == 1 and not beans.get("NameNodeInfo", {}).get("Safemode", "it starts")

    @staticmethod
    def _process(node: str) -> psutil.Process | None:
        """Return the process of a node; None: it has ended."""
        try:
            return psutil.Process(int((_STATE / f"{node}.pid").read_text()))
        except psutil.NoSuchProcess:
            return None


@contextlib.contextmanager
def hdfs() -> Iterator[Hdfs]:
    """Run a name node and a data node for as long as the block lasts; there is one at a time.

    Raises:
        NotHere: Java or Maven is not installed, or Hadoop cannot be fetched or started.
    """
    missing = [each for each in ("java", "mvn") if shutil.which(each) is None]
    if missing or not _SCRIPT.exists():
        raise NotHere(f"no HDFS: {', '.join(missing) or _SCRIPT}")
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            subprocess.run(
                [_SCRIPT, "up"], capture_output=True, text=True, check=True, timeout=_FETCH_SECONDS
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise NotHere(f"no HDFS: {error} {str(error.stderr)[-500:]}") from error
        made = Hdfs()
        try:
            made.wait_until_ready()
            yield made
        finally:
            made.end()
