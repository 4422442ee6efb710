"""Ports that only this machine reaches, as another machine sees them."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.neighbours import Neighbour, neighbour

from paceline.engines.local import firewalls
from paceline.errors import EngineError

LACKS = firewalls.lacks()
needs_firewall = pytest.mark.skipif(bool(LACKS), reason=f"no firewall: {LACKS}")
NAME = f"paceline-test{os.getpid()}"
HOLD = """
import sys, time
from paceline.engines.local import firewalls
held = firewalls.Firewall(sys.argv[1], [int(sys.argv[2])])
print("closed", flush=True)
time.sleep(3600)
"""


@pytest.fixture
def other() -> Iterator[Neighbour]:
    with neighbour() as made:
        yield made


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """Listen on all addresses, as a TensorFlow server does."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        yield server.getsockname()[1]


def connects(address: str, port: int) -> bool:
    with socket.create_connection((address, port), timeout=240):
        return True


@needs_firewall
def test_only_this_machine_reaches_a_closed_port(other: Neighbour) -> None:
    with listening() as port, listening() as open_port:
        assert other.reaches(port)
        with contextlib.closing(firewalls.Firewall(NAME, [port, port])):
            assert not other.reaches(port)
            assert other.reaches(open_port)
            assert connects("127.0.0.1", port)
            assert connects(other.address, port), "by its own address a machine reaches itself"
        assert other.reaches(port)


@needs_firewall
def test_who_is_killed_leaves_nothing_closed(other: Neighbour) -> None:
    with listening() as port:
        holder = subprocess.Popen([sys.executable, "-c", HOLD, NAME, str(port)], stdout=subprocess.PIPE)
        assert holder.stdout is not None
        with holder, holder.stdout:
            assert holder.stdout.readline() == b"closed\n"
            assert not other.reaches(port)
            with pytest.raises(EngineError):
                firewalls.Firewall(NAME, [port])
            holder.kill()
        assert other.reaches(port)
        firewalls.Firewall(NAME, [port]).close()


@needs_firewall
@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 5000])
def test_so_many_ports_can_be_closed(count: int) -> None:
    firewalls.Firewall(NAME, range(20_000, 20_000 + count)).close()


def test_without_rights_it_says_what_is_lacking() -> None:
    """The right is dropped after the import: another user may not read what is imported."""
    code = (
        "import os\nfrom paceline.engines.local import firewalls\n"
        "if os.geteuid() == 0: os.setuid(65534)\nprint(firewalls.lacks())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "this needs root (CAP_NET_ADMIN)"


def test_a_kernel_without_netfilter_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where jobs run as root nevertheless, such as gVisor: they ran nowhere there."""

    def refused(*_: object) -> socket.socket:
        raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))

    monkeypatch.setattr(socket, "socket", refused)
    assert firewalls.lacks() == "the kernel has no nftables of Linux 5.12 or later (Protocol not supported)"
