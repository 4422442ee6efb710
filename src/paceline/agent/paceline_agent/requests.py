"""What a client asks over HTTP."""

import re
import urllib.parse
from typing import Dict, NamedTuple, Optional


class Request(NamedTuple):
    """An HTTP request of a client."""

    method: str
    path: str
    query: Dict[str, str]
    token: str = ""

    def number(self, name: str) -> Optional[int]:
        """Return a non-negative integer of the query; None if it has none by this name."""
        value = self.query.get(name, "")
        return int(value) if re.match(r"^[0-9]{1,18}$", value) else None

    def promised_seconds(self) -> Optional[float]:
        """Return within how many seconds a reader of the spool promises to ask again; None: no promise."""
        again = self.number("again")
        if self.path != "/spool" or again is None or self.number("offset") is None:
            return None
        return float(again)


def parse_request(data: bytes) -> Optional[Request]:
    """Parse the request line of HTTP/1 (RFC 9112, 3) and the token; None if it is no HTTP."""
    match = re.match(rb"^([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[0-9]\r?\n", data)
    if match is None:
        return None
    path, _, query = match.group(2).decode("ascii").partition("?")
    given = TOKEN_HEADER.search(data)
    token = "" if given is None else given.group(1).decode("ascii")
    return Request(match.group(1).decode("ascii"), path, dict(urllib.parse.parse_qsl(query)), token)


#: Kubernetes' API server uses ``Authorization`` itself, so requests proxied by it have another header.
TOKEN_HEADER = re.compile(
    rb"(?im)^(?:authorization:[ \t]*bearer[ \t]|paceline-token:)[ \t]*([!-~]+)[ \t]*\r?$"
)
