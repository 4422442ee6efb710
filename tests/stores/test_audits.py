"""Who changed what, in each kind of database."""

from __future__ import annotations

from paceline.model.jobs.audits import Audit

STOP = Audit(at=1.0, who="ann", origin="10.0.0.7", action="jobs.stop", job="demo")
SCALE = Audit(at=2.0, who="bob", origin="::1", action="jobs.scale", job="other", detail="workers: 2 -> 4")
AWAY = Audit(
    at=3.0, who="ann", origin="10.0.0.7", action="jobs.stop", job="demo", namespace="ads", scope="ads.1/"
)


def test_the_latest_comes_first_and_each_namespace_has_its_own(store):
    for each in (STOP, SCALE, AWAY):
        store.append_audit(each)
    assert [audit for _, audit in store.audits()] == [SCALE, STOP]
    assert [audit for _, audit in store.audits(scope="ads.1/")] == [AWAY]
    assert [audit for _, audit in store.audits(job="demo")] == [STOP]
    assert store.audits(scope="ads.2/") == [], "one that was made anew does not inherit"


def test_page_by_page(store):
    for number in range(5):
        store.append_audit(Audit(at=float(number), who="ann", origin="", action="jobs.delete"))
    first = store.audits(limit=2)
    rest = store.audits(limit=10, before_id=first[-1][0])
    assert [audit.at for _, audit in [*first, *rest]] == [4.0, 3.0, 2.0, 1.0, 0.0]


def test_a_job_that_is_gone_leaves_its_history(filled):
    filled.append_audit(STOP)
    filled.delete_run("demo")
    assert [audit for _, audit in filled.audits(job="demo")] == [STOP]


def test_audits_grow_old_and_have_a_number(store):
    for number in range(10):
        store.append_audit(Audit(at=float(number), who="ann", origin="", action="jobs.delete"))
    assert store.forget_audits(before=3.0, most=100) == 3
    assert [audit.at for _, audit in store.audits()] == [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0]
    assert store.forget_audits(before=0.0, most=5) == 2
    assert [audit.at for _, audit in store.audits()] == [9.0, 8.0, 7.0, 6.0, 5.0]
    assert store.forget_audits(before=0.0, most=5) == 0
