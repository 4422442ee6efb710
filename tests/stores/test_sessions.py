"""Sessions of browsers: kept until they end, and so many of one caller."""

from __future__ import annotations

from paceline.stores import Store


def begin(store: Store, name: str, *, who: str = "ann", at: float = 100.0, most: int = 3) -> None:
    store.begin_session(
        name, who=who, sealed=f"of {name}".encode(), at=at, ends_at=at + 60.0, most=most
    )  # fmt: skip


def test_a_session_lasts_until_its_end(store: Store) -> None:
    begin(store, "one")
    assert store.session("one", at=159.0) == b"of one"
    assert store.session("one", at=160.0) is None
    assert store.session("two", at=100.0) is None


def test_a_session_that_was_ended_is_gone(store: Store) -> None:
    begin(store, "one")
    begin(store, "two")
    store.end_session("one")
    store.end_session("three")
    assert store.session("one", at=100.0) is None
    assert store.session("two", at=100.0) == b"of two"


def test_of_a_caller_the_newest_are_kept(store: Store) -> None:
    for second in range(5):
        begin(store, f"ann {second}", at=100.0 + second)
    begin(store, "bob", who="bob", at=105.0)
    kept = [second for second in range(5) if store.session(f"ann {second}", at=105.0)]
    assert kept == [2, 3, 4]
    assert store.session("bob", at=105.0)


def test_those_that_have_ended_take_no_room(store: Store) -> None:
    begin(store, "old", at=0.0)
    begin(store, "new", at=100.0)
    assert store.session("old", at=0.0) is None  # It is not there any more, whatever the time is.
