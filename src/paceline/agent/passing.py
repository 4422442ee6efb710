"""Asks other agents of the same job, by the network.

It runs under Python 3.6 and later, hence the old-fashioned spelling.
"""

import concurrent.futures
import contextlib
import http.client
from typing import Dict, List, Optional

#: So many agents are asked at once: all are to know before the moment comes.
AT_ONCE = 16
#: Each has so long to answer; one that hears of it late is profiled late.
SECONDS = 10.0


def ask(hosts: List[str], port: int, path: str, token: Optional[str] = None) -> Optional[str]:
    """Send the same POST to many agents.

    Args:
        hosts: where they are.
        port: at which all of them answer.
        path: what is asked.
        token: the job's; None: it has none.

    Returns:
        How many did not take it, and why the first one did not; None: all did.
    """
    headers = {"Authorization": "Bearer " + token} if token else {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        errors = [each for each in pool.map(lambda host: _error(host, port, path, headers), hosts) if each]
    if not errors:
        return None
    return "{} of {} other agents cannot be asked: {}".format(len(errors), len(hosts), errors[0])


def _error(host: str, port: int, path: str, headers: Dict[str, str]) -> Optional[str]:
    """Ask one of them; return what went wrong."""
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("POST", path, headers=headers)
            answer = connection.getresponse()
            return None if answer.status < 300 else "{} answers {}".format(host, answer.status)
        except (OSError, http.client.HTTPException) as error:
            return "{}: {}".format(host, error)
