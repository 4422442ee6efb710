"""Bytes and TCP segments of the replica's network."""

from typing import Dict, Optional, Tuple

from .kernel_files import parse_integer


def parse_network(text: str, interface: str) -> Optional[Tuple[int, int]]:
    """Parse the bytes that one interface received and sent from /proc/net/dev (proc.rst, 1.4)."""
    for line in text.splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == interface:
            words = [parse_integer(word) for word in counters.split()]
            if len(words) >= 9 and words[0] is not None and words[8] is not None:
                return words[0], words[8]
    return None


def parse_segments(text: str) -> Optional[Tuple[int, int]]:
    """Parse TCP segments from /proc/net/snmp: sent for the first time, and retransmitted (RFC 4022)."""
    values = _counters(text, "Tcp:")
    sent, again = (parse_integer(values.get(name, "")) for name in ("OutSegs", "RetransSegs"))
    return None if sent is None or again is None else (sent, again)


def parse_needless(text: str) -> Optional[int]:
    """Parse from /proc/net/netstat how many segments were retransmitted although the original had arrived.

    Receivers report it (DSACK, RFC 2883); before Linux 5.9 the kernel counts their reports, not segments.
    """
    values = _counters(text, "TcpExt:")
    return parse_integer(values.get("TCPDSACKRecvSegs", values.get("TCPDSACKRecv", "")))


def _counters(text: str, protocol: str) -> Dict[str, str]:
    """Parse a line of names and the line of their values; empty unless there are exactly these two lines."""
    rows = [line.split() for line in text.splitlines() if line.startswith(protocol)]
    return dict(zip(*rows)) if len(rows) == 2 else {}  # noqa: B905 - 3.6
