"""The origin of a request: behind trusted proxies, the client's own address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from paceline.errors import InvalidInput

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """Proxies whose headers are believed; without any, no such headers are believed.

    Args:
        networks: the networks of the proxies.
    """

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._networks = tuple(networks)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Proxies:
        """Return the proxies at addresses or in networks, such as ``10.0.0.0/8``.

        Raises:
            InvalidInput: one of the texts is neither an address nor a network.
        """
        found = []
        for text in texts:
            try:
                found.append(ipaddress.ip_network(text))
            except ValueError as error:
                raise InvalidInput(f"{text!r} is no network: {error}", "such as 10.0.0.0/8") from error
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def include(self, address: str) -> bool:
        """Whether an address belongs to one of the proxies."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return any(parsed in network for network in self._networks)

    def origin(self, peer: str, forwarded: str) -> str:
        """Return the address that a request comes from.

        Args:
            peer: the address of the other end of the connection.
            forwarded: ``X-Forwarded-For``: each proxy appends, on the right, the address that sent it the
                request. From the right, the first address that is no proxy of ours is the origin: any client
                may have written what is to its left.
        """
        origin = peer
        for hop in reversed(forwarded.split(",")):
            if not self.include(origin):
                break
            address = hop.strip()
            try:
                ipaddress.ip_address(address)
            except ValueError:
                break
            origin = address
        return origin
