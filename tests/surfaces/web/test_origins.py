"""Where requests come from, and who is believed about it."""

from __future__ import annotations

import pytest

from paceline.errors import InvalidInput
from paceline.surfaces.web.origins import Proxies

OURS = Proxies.parse(["10.0.0.0/8", "fd00::/8", "192.168.1.7"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "origin"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", "198.51.100.1", "198.51.100.1"),
        ("10.1.2.3", "1.2.3.4, 198.51.100.1", "198.51.100.1"),
        ("10.1.2.3", "198.51.100.1, 10.9.9.9", "198.51.100.1"),
        ("10.1.2.3", "10.8.8.8, 10.9.9.9", "10.8.8.8"),
        ("10.1.2.3", "evil, 10.9.9.9", "10.9.9.9"),
        ("10.1.2.3", "<script>", "10.1.2.3"),
        ("::ffff:10.1.2.3", "2001:db8::1", "2001:db8::1"),
        ("192.168.1.7", "198.51.100.1", "198.51.100.1"),
        ("192.168.1.8", "198.51.100.1", "192.168.1.8"),
        ("testclient", "198.51.100.1", "testclient"),
    ],
)
def test_only_proxies_of_ours_are_believed(peer: str, forwarded: str, origin: str) -> None:
    assert OURS.origin(peer, forwarded) == origin


def test_without_proxies_no_headers_are_believed() -> None:
    assert Proxies().origin("10.1.2.3", "198.51.100.1") == "10.1.2.3"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "proxy.example.com", "", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no network"):
        Proxies.parse([text])
