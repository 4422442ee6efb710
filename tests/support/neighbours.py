"""Another machine: a network namespace that is joined to this one by a link, as by a cable."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from support.prerequisites import NotHere

_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2)"


class Neighbour:
    """A machine that reaches this one.

    Attributes:
        address: that of this machine, as the other one sees it.
    """

    def __init__(self, namespace: str, address: str) -> None:
        self.address = address
        self._namespace = namespace

    def reaches(self, port: int) -> bool:
        """Whether it can connect to a port of this machine."""
        command = ["ip", "netns", "exec", self._namespace, sys.executable, "-c", _CONNECT]
        done = subprocess.run([*command, self.address, str(port)], capture_output=True, check=False)
        return done.returncode == 0


@contextlib.contextmanager
def neighbour() -> Iterator[Neighbour]:
    """Give another machine.

    Raises:
        NotHere: this takes root and iproute2.
    """
    # Tests run side by side: each process has a link and a network of its own.
    number = os.getpid() % 16_384
    name, link = f"paceline-next{number}", f"next{number}"
    first = f"10.{78 + number // 4096}.{number // 16 % 256}.{number % 16 * 16}"
    network, _, last = first.rpartition(".")
    ours, theirs = (f"{network}.{int(last) + place}" for place in (1, 2))
    if os.geteuid() != 0:
        raise NotHere("a link to another namespace takes root")
    steps = (
        f"ip netns add {name}",
        f"ip link add {link} type veth peer name eth0 netns {name}",
        f"ip address add {ours}/28 dev {link}",
        f"ip link set {link} up",
        f"ip -n {name} address add {theirs}/28 dev eth0",
        f"ip -n {name} link set eth0 up",
    )
    try:
        for step in steps:
            subprocess.run(step.split(), check=True, capture_output=True)
        yield Neighbour(name, ours)
    finally:
        # With its namespace the link would go later: the kernel takes namespaces apart when it has time.
        for step in (f"ip link delete {link}", f"ip netns delete {name}"):
            subprocess.run(step.split(), check=False, capture_output=True)
