"""Closes the ports of a job to other machines.

A TensorFlow server listens on every address and trusts every client. The rules drop packets to the job's
ports unless they arrive over the loopback interface. Outgoing connections of the job are not affected, and
the job can still reach services on the machine's loopback; in a network namespace of its own it could not.
The rules are in an nftables table that a socket owns: the kernel removes the table when the socket is closed
or its process is killed. This needs no external program, but it needs Linux 5.12. Source:
``linux/netfilter/nf_tables.h``.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence

from paceline.errors import EngineError

_NETLINK_NETFILTER = 12
_BATCH_BEGIN, _BATCH_END, _ERROR = 0x10, 0x11, 0x2
_NFTABLES = 10  # The subsystem of netfilter.
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE, _NEW_SET, _NEW_ELEMENTS = 0, 3, 6, 9, 12
_REQUEST, _ACKNOWLEDGE, _CREATE, _EXCLUSIVE, _APPEND = 0x1, 0x4, 0x400, 0x200, 0x800
_INET = 1  # IPv4 and IPv6.
_NESTED = 0x8000
_OWNED = 0x2
_LOCAL_IN, _BEFORE_FILTER, _ACCEPT = 1, -10, 1
_VERDICT_REGISTER, _REGISTER = 0, 1
_INPUT_INTERFACE, _PROTOCOL = 4, 16
_EQUAL, _UNEQUAL = 0, 1
_LOOPBACK = 1  # The loopback interface has this index in every network namespace.
_TRANSPORT_HEADER, _PORT_OFFSET, _PORT_BYTES, _PORT_TYPE = 2, 2, 2, 13
_PORTS_A_MESSAGE = 1000
_ANSWER_SECONDS, _ANSWER_BYTES = 10.0, 1 << 16
_CHAIN, _SET, _SET_NUMBER = "input", "ports", 1


class Firewall:
    """A set of TCP ports that only this machine can reach until the firewall is closed.

    Args:
        name: the name of its nftables table; only one table can have it at a time.
        ports: the TCP ports.

    Raises:
        EngineError: the kernel refused the rules.
    """

    def __init__(self, name: str, ports: Iterable[int]) -> None:
        try:
            # A kernel without netfilter (gVisor has none) refuses the socket itself.
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
            try:
                self._socket.settimeout(_ANSWER_SECONDS)
                self._socket.bind((0, 0))
                self._ask(messages(name, sorted(set(ports))))
            except OSError:
                self.close()
                raise
        except OSError as error:
            raise EngineError(_reason(error)) from error

    def _ask(self, wanted: list[tuple[int, int, bytes]]) -> None:
        """Send messages to the kernel as one batch, which it executes completely or not at all.

        Raises:
            OSError: the kernel refused the batch or does not answer.
        """
        begin = _message(_BATCH_BEGIN, _REQUEST, 0, _family(0, _NFTABLES))
        end = _message(_BATCH_END, _REQUEST, len(wanted) + 1, _family(0, _NFTABLES))
        parts = []
        for number, (kind, flags, body) in enumerate(wanted, 1):
            # The kernel always reports errors, in order. If the first answer is the last message's
            # acknowledgement, all messages succeeded.
            flags |= _REQUEST | (_ACKNOWLEDGE if number == len(wanted) else 0)
            parts.append(_message(_NFTABLES << 8 | kind, flags, number, body))
        self._socket.send(b"".join((begin, *parts, end)))
        kind, code = struct.unpack_from("=4xH10xi", self._socket.recv(_ANSWER_BYTES))
        if kind != _ERROR or code:
            raise OSError(-code, os.strerror(-code))

    def close(self) -> None:
        """Open the ports again."""
        self._socket.close()


def lacks() -> str:
    """Return why ports cannot be closed to other machines; empty when they can."""
    try:
        with contextlib.closing(Firewall(f"paceline-probe-{os.getpid()}", ())):
            return ""
    except EngineError as error:
        return error.message


def _reason(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "this needs root (CAP_NET_ADMIN)"
    return f"the kernel has no nftables of Linux 5.12 or later ({error.strerror or error})"


def messages(name: str, ports: Sequence[int]) -> list[tuple[int, int, bytes]]:
    """Return the netlink messages that create the rules: the kind, flags and body of each."""
    table = _attribute(1, _text(name)) + _attribute(2, struct.pack(">I", _OWNED))
    hook = _attribute(1, struct.pack(">I", _LOCAL_IN)) + _attribute(2, struct.pack(">i", _BEFORE_FILTER))
    chain = (
        _attribute(1, _text(name))
        + _attribute(3, _text(_CHAIN))
        + _nested(4, hook)
        + _attribute(5, struct.pack(">I", _ACCEPT))
        + _attribute(7, _text("filter"))
    )
    kept = _attribute(1, _text(name)) + _attribute(2, _text(_SET)) + _number(3, 0)
    kept += _number(4, _PORT_TYPE) + _number(5, _PORT_BYTES) + _number(10, _SET_NUMBER)
    made = [
        (_NEW_TABLE, _CREATE | _EXCLUSIVE, table),
        (_NEW_CHAIN, _CREATE, chain),
        (_NEW_SET, _CREATE, kept),
        *((_NEW_ELEMENTS, _CREATE, _elements(name, part)) for part in _parts(ports)),
        (_NEW_RULE, _CREATE | _APPEND, _rule(name)),
    ]
    return [(kind, flags, _family(_INET) + body) for kind, flags, body in made]


def _parts(ports: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ports[first : first + _PORTS_A_MESSAGE] for first in range(0, len(ports), _PORTS_A_MESSAGE))


def _elements(table: str, ports: Sequence[int]) -> bytes:
    keys = (_nested(1, _nested(1, _attribute(1, struct.pack(">H", port)))) for port in ports)
    return _attribute(1, _text(table)) + _attribute(2, _text(_SET)) + _nested(3, b"".join(keys))


def _rule(table: str) -> bytes:
    """Return the rule that drops packets to one of the ports unless they arrive over the loopback."""
    found = _attribute(1, _text(_SET)) + _number(2, _REGISTER) + _number(4, _SET_NUMBER)
    steps = (
        _loaded(_INPUT_INTERFACE),
        _compared(_UNEQUAL, struct.pack("=I", _LOOPBACK)),
        _loaded(_PROTOCOL),
        _compared(_EQUAL, bytes([socket.IPPROTO_TCP])),
        _port_loaded(),
        _step("lookup", found),
        _dropped(),
    )
    return (
        _attribute(1, _text(table))
        + _attribute(2, _text(_CHAIN))
        + _nested(4, b"".join(_nested(1, each) for each in steps))
    )


def _loaded(key: int) -> bytes:
    return _step("meta", _number(2, key) + _number(1, _REGISTER))


def _port_loaded() -> bytes:
    place = _number(2, _TRANSPORT_HEADER) + _number(3, _PORT_OFFSET) + _number(4, _PORT_BYTES)
    return _step("payload", _number(1, _REGISTER) + place)


def _compared(how: int, value: bytes) -> bytes:
    return _step("cmp", _number(1, _REGISTER) + _number(2, how) + _nested(3, _attribute(1, value)))


def _dropped() -> bytes:
    verdict = _nested(2, _number(1, 0))
    return _step("immediate", _number(1, _VERDICT_REGISTER) + _nested(2, verdict))


def _step(name: str, data: bytes) -> bytes:
    return _attribute(1, _text(name)) + _nested(2, data)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">I", value))


def _text(value: str) -> bytes:
    return value.encode() + b"\0"


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | _NESTED, value)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def _family(family: int, resource: int = 0) -> bytes:
    return struct.pack(">BBH", family, 0, resource)


def _message(kind: int, flags: int, number: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body
