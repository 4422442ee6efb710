"""How a trainer waits for the parameters."""

import itertools

from paceline.training import clusters, servers, sessions

UNREACHABLE = "127.0.0.1:1"


def test_a_trainer_that_is_stopped_waits_for_no_parameter_server(monkeypatch):
    monkeypatch.setattr(servers, "start", lambda cluster: None)
    monkeypatch.setattr(sessions, "_POLL_SECONDS", 0.01)
    addresses = {"ps": (UNREACHABLE,), "chief": (UNREACHABLE,)}
    cluster = clusters.Cluster(addresses=addresses, role="chief", index=0)
    waiting = sessions.Sessions(graph=None, cluster=cluster, saved=None, last_step=10)
    looks = itertools.count()
    assert waiting.open(lambda: next(looks) > 5) is None
    assert next(looks) > 6
