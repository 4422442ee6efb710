"""Events and requests, in each kind of database."""

from __future__ import annotations

from paceline.model import roles
from paceline.model.jobs import runs

PS = roles.ReplicaId(roles.Role.PS, 0)


def event(message, **fields):
    return runs.JobEvent(at=1.0, kind="note", message=message, **fields)


def test_events_come_back_in_order_with_growing_ids(filled, make_run):
    filled.create_run(*make_run("other"))
    filled.append_events("demo", [event("a"), event("b", replica=PS, attempt=2)])
    filled.append_events("other", [event("x")])
    filled.append_events("demo", [event("c")])
    found = filled.events("demo")
    assert [one for _, one in found] == [event("a"), event("b", replica=PS, attempt=2), event("c")]
    ids = [number for number, _ in found]
    assert ids == sorted(set(ids))
    assert [one.message for _, one in filled.events("demo", since_id=ids[0])] == ["b", "c"]
    assert filled.events("demo", since_id=ids[-1]) == []


def test_ids_of_a_deleted_run_are_not_used_again(filled, make_run):
    filled.append_events("demo", [event("a")])
    seen = filled.events("demo")[-1][0]
    filled.delete_run("demo")
    filled.create_run(*make_run())
    filled.append_events("demo", [event("b")])
    assert [one.message for _, one in filled.events("demo", since_id=seen)] == ["b"]


def test_requests_are_there_until_a_state_answers_them(filled, make_run):
    filled.create_run(*make_run("other"))
    filled.add_request("demo", "stop", at=5.0)
    filled.add_request("other", "stop", at=6.0)
    filled.add_request("demo", "resume", at=7.0)
    waiting = filled.requests("demo")
    assert [(request.kind, request.at) for request in waiting] == [("stop", 5.0), ("resume", 7.0)]
    filled.save_state("demo", filled.load_state("demo"), at=8.0)
    assert filled.requests("demo") == waiting
    filled.save_state("demo", filled.load_state("demo"), at=9.0, answered=[waiting[0].id])
    assert filled.requests("demo") == waiting[1:]
    others = filled.requests("other")
    filled.save_state("demo", filled.load_state("demo"), at=9.0, answered=[others[0].id])
    assert filled.requests("other") == others
