"""The namespace of a cluster that a page is about, which is part of its address: ``/n/NAME/...``.

So every link that a user sends to others contains it, and two pages that are open side by side may be about
different namespaces. Pages and the API do not see it: their paths follow the prefix.
"""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ADDRESS = re.compile(r"(/n/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?))(/.*)")
#: Links in templates, except those to files and to other namespaces.
_LINK = re.compile(r' (action|data-[a-z-]+|formaction|href|hx-[a-z-]+|src)="/(?!/|n/|static/)')
_LEADS = re.compile(r"/(?!/|n/|static/)")
_LEADING = ("location", "hx-redirect")


class Namespaces:
    """Removes the namespace from the path of a request, and adds it to the addresses the answer redirects to.

    Args:
        application: answers the request.
    """

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        found = _ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._application(scope, receive, send)
            return
        prefix, name, rest = found.groups()

        async def leading(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for each in _LEADING:
                    if _LEADS.match(headers.get(each, "")):
                        headers[each] = prefix + headers[each]
            await send(message)

        raw = scope.get("raw_path", scope["path"].encode()).removeprefix(prefix.encode())
        state = {**scope.get("state", {}), "namespace": name, "prefix": prefix}
        await self._application({**scope, "path": rest, "raw_path": raw, "state": state}, receive, leading)


def linked(html: str, prefix: str) -> str:
    """Return a page whose links stay in a namespace.

    Args:
        html: the output of a template; its values are escaped, so no quote in a value can look like a link's.
        prefix: ``/n/NAME``; empty: the page is about no namespace, or the server's own.
    """
    return _LINK.sub(rf' \1="{prefix}/', html) if prefix else html
