"""Sends requests to the other agents of the same job over the network."""

import concurrent.futures
import contextlib
import http.client
from typing import Dict, List, Optional

#: How many agents are asked at once: all must have the request before its start time.
AT_ONCE = 16
#: How long each agent may take to answer; an agent that gets the request late profiles late.
SECONDS = 10.0


def ask(hosts: List[str], port: int, path: str, token: Optional[str] = None) -> Optional[str]:
    """Send the same POST to many agents.

    Args:
        hosts: the agents' hosts.
        port: the port at which all of them answer.
        path: the path to request.
        token: the job's token; None: it has none.

    Returns:
        A message on how many agents failed and why the first one did; None: all accepted.
    """
    headers = {"Authorization": "Bearer " + token} if token else {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        errors = [each for each in pool.map(lambda host: _error(host, port, path, headers), hosts) if each]
    if not errors:
        return None
    return "{} of {} other agents cannot be asked: {}".format(len(errors), len(hosts), errors[0])


def _error(host: str, port: int, path: str, headers: Dict[str, str]) -> Optional[str]:
    """Ask one agent; return what went wrong."""
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("POST", path, headers=headers)
            answer = connection.getresponse()
            return None if answer.status < 300 else "{} answers {}".format(host, answer.status)
        except (OSError, http.client.HTTPException) as error:
            return "{}: {}".format(host, error)
