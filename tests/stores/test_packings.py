"""What is packed is read as if it were not: by time, by replica, combined, damaged, from two connections."""

from __future__ import annotations

import dataclasses
import itertools
import random
import threading

import pytest
import sqlalchemy as sa

from paceline import errors, stores
from paceline.model import roles
from paceline.model.measures import samples
from paceline.stores import packings, tables

PS0, PS1 = (roles.ReplicaId(roles.Role.PS, index) for index in range(2))
WORKER = roles.ReplicaId(roles.Role.WORKER, 0)
BLOCK = packings.BLOCK_ROWS
START = 1_700_000_000.0


def sampled(count, replica=PS0, attempt=1, start=START):
    """Return samples whose numbers are such that a block keeps them as they are."""
    chance = random.Random(count)
    return [
        samples.Sample(
            replica=replica, attempt=attempt, at=start + second + 0.5 + chance.randrange(8) / 1000,
            interval_seconds=1.0, cpu_cores=chance.randrange(250) / 10_000,
            memory_bytes=chance.randrange(250) << 16, network_sent_bytes=chance.randrange(120),
            voluntary_switches=None if second % 3 else chance.randrange(60), threads=9,
        )
        for second in range(count)
    ]  # fmt: skip


def reported(count, replica=WORKER):
    return [
        samples.StepReport(
            replica=replica, attempt=1, at=START + second, interval_seconds=1.0, step=40 * second, steps=40,
            examples=20480, loss=0.5, total_steps=10**6,
        )
        for second in range(count)
    ]  # fmt: skip


def counts(store):
    """Return how many measurements lie in rows, in pieces and in blocks."""
    packing = packings.PACKINGS[samples.Sample]
    with store._database.reading() as connection:
        rows = connection.scalar(sa.select(sa.func.count()).select_from(packing.rows))
        packed = [
            connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(table.c.measurements), 0)))
            for table in (packing.pieces, packing.blocks)
        ]
    return rows, *packed


def by_time(measured):
    return sorted(measured, key=lambda each: each.at)


def test_samples_move_from_rows_to_pieces_to_blocks_and_are_read_all_the_time(filled):
    every = sampled(BLOCK + 200)
    for start in range(0, len(every), 25):
        filled.append_samples("demo", every[start : start + 25])
        assert sum(counts(filled)) == min(start + 25, len(every))
        assert counts(filled)[0] < packings.PACKINGS[samples.Sample].most
    assert all(counts(filled))
    assert filled.samples("demo") == every
    assert filled.latest_samples("demo") == {PS0: every[-1]}


def test_many_at_once_become_blocks_of_about_one_size(filled):
    every = sampled(3 * BLOCK) + sampled(700, WORKER) + sampled(50, PS0, attempt=2, start=START + 9000)
    filled.append_samples("demo", every)
    assert filled.samples("demo") == by_time(every)
    with filled._database.reading() as connection:
        sizes = connection.scalars(sa.select(tables.sample_blocks.c.measurements)).all()
    assert sum(sizes) == 3 * BLOCK + 700 - 30
    assert all(BLOCK <= size < 2 * BLOCK for size in sizes)
    assert filled.samples("demo", replica=WORKER) == sampled(700, WORKER)
    assert {each.attempt for each in filled.samples("demo", since=START + 8000)} == {2}


def test_step_reports_are_packed_too(filled):
    filled.append_step_reports("demo", reported(BLOCK + 100))
    assert filled.step_reports("demo") == reported(BLOCK + 100)
    assert filled.latest_step_reports("demo") == {WORKER: reported(BLOCK + 100)[-1]}
    with filled._database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(tables.step_reports)) < 90
    combined = filled.step_reports("demo", every_seconds=60.0)
    assert sum(each.steps or 0 for each in combined) == 40 * (BLOCK + 100)
    assert [each.step for each in combined[:2]] == [40 * int(each.at - START) for each in combined[:2]]


def test_times_are_chosen_within_blocks(filled):
    every = sampled(BLOCK + 300)
    filled.append_samples("demo", every)
    for since, until in ((None, 70.5), (100.004, 100.004), (100.0, 130.0), (599.5, 899.001), (899.5, None)):
        first, last = (None if each is None else START + each for each in (since, until))
        wanted = [
            each for each in every if (first is None or each.at >= first) and (last is None or each.at < last)
        ]
        assert filled.samples("demo", since=first, until=last) == wanted
    edges = [START + edge / 7 for edge in range(0, 7 * (BLOCK + 300) + 500, 500)]
    stretches = [filled.samples("demo", since=a, until=b) for a, b in itertools.pairwise(edges)]
    assert [each for stretch in stretches for each in stretch] == every


def test_rounding_moves_no_sample_out_of_all_windows(filled):
    every = [dataclasses.replace(each, at=START + n + 0.0006) for n, each in enumerate(sampled(70))]
    filled.append_samples("demo", every)
    edges = [START + n + 0.0008 for n in range(-1, 71)]
    found = [len(filled.samples("demo", since=a, until=b)) for a, b in itertools.pairwise(edges)]
    assert sum(found) == 70


def test_samples_that_come_late_are_in_the_order_of_time(filled):
    every = sampled(BLOCK + 100)
    late = every[100:200]
    filled.append_samples("demo", every[:100] + every[200:])
    filled.append_samples("demo", late)
    assert filled.samples("demo") == every


def test_combined_samples_say_the_same_whatever_is_packed(filled):
    every = sampled(BLOCK + 130) + sampled(200, WORKER)
    filled.append_samples("demo", every)
    combined = filled.samples("demo", every_seconds=10.0)
    assert len(combined) <= 73 + 21
    for replica in (PS0, WORKER):
        mine = [each for each in combined if each.replica == replica]
        raw = [each for each in every if each.replica == replica]
        assert sum(each.network_sent_bytes or 0 for each in mine) == sum(s.network_sent_bytes for s in raw)
        assert sum(each.interval_seconds for each in mine) == len(raw)
        assert all(each.interval_seconds == 10.0 for each in mine[1:-1])
        assert mine[-1].at == raw[-1].at
        assert mine[-1].memory_bytes == raw[-1].memory_bytes
        assert {each.threads for each in mine} == {9}
        assert all(each.cpu_limit_cores is None for each in mine)
    alone = filled.samples("demo", replica=WORKER, every_seconds=1e9)
    assert len(alone) == 1
    assert alone[0].cpu_cores == pytest.approx(sum(each.cpu_cores for each in sampled(200, WORKER)) / 200)
    within = filled.samples("demo", role=roles.Role.PS, since=START + 5, until=START + 15, every_seconds=5.0)
    assert [(each.replica, each.interval_seconds) for each in within] == [(PS0, 5.0), (PS0, 5.0)]


@pytest.mark.parametrize("every", [0.0, -1.0, float("inf"), float("nan")])
def test_no_time_to_combine_is_refused(filled, every):
    with pytest.raises(errors.InvalidInput, match="cannot be combined"):
        filled.samples("demo", every_seconds=every)


def damage(store, table):
    with store._database.writing() as connection:
        key, data = connection.execute(sa.select(table.c.id, table.c.data).limit(1)).one()
        broken = bytes(data[:40]) + bytes([data[40] ^ 1]) + bytes(data[41:])
        connection.execute(sa.update(table).where(table.c.id == key).values(data=broken))


@pytest.mark.parametrize("table", [tables.sample_pieces, tables.sample_blocks], ids=lambda table: table.name)
def test_a_damaged_block_is_named_and_what_comes_later_is_kept(filled, table):
    every = sampled(2 * BLOCK)
    for start in range(0, BLOCK + 100, 50):
        filled.append_samples("demo", every[start : start + 50])
    assert all(counts(filled))
    damage(filled, table)
    with pytest.raises(
        errors.StoreError, match=r"measurements of ps-0 \(attempt 1\) from \d+ on are damaged"
    ):
        filled.samples("demo")
    filled.append_samples("demo", sampled(BLOCK, WORKER))
    filled.append_samples("demo", every[BLOCK + 100 :])
    assert filled.samples("demo", replica=WORKER) == sampled(BLOCK, WORKER)
    since = every[2 * BLOCK - 50].at
    assert filled.samples("demo", since=since) == every[2 * BLOCK - 50 :]
    with pytest.raises(errors.StoreError, match="its checksum is another"):
        filled.samples("demo", every_seconds=10.0)


def test_a_failed_append_packs_nothing(filled):
    every = sampled(BLOCK + 40)
    filled.append_samples("demo", every[:50])
    stranger = roles.ReplicaId(roles.Role.EVALUATOR, 3)
    with pytest.raises(errors.NotFound):
        filled.append_from_spool(
            "demo", PS0, 1, previous_offset=0, offset=9, samples=every[50:],
            steps=[dataclasses.replace(reported(1)[0], replica=stranger)],
        )  # fmt: skip
    assert counts(filled) == (50, 0, 0)
    filled.append_from_spool("demo", PS0, 1, previous_offset=0, offset=9, samples=every[50:])
    assert filled.samples("demo") == every


def test_deleting_a_run_deletes_its_blocks(filled):
    filled.append_samples("demo", sampled(BLOCK + 100))
    filled.delete_run("demo")
    assert counts(filled) == (0, 0, 0)


def test_readers_see_each_sample_once_while_others_append(store_url, make_run):
    every = sampled(1500)
    with stores.open_store(store_url) as writer, stores.open_store(store_url) as reader:
        writer.create_run(*make_run())

        def write(part, replica):
            for start in range(0, len(every), 50):
                stretch = [dataclasses.replace(each, replica=replica) for each in every[start : start + 50]]
                writer.append_samples("demo", stretch[part::2])

        threads = [threading.Thread(target=write, args=(n % 2, (PS0, PS1)[n // 2])) for n in range(4)]
        for thread in threads:
            thread.start()
        seen = 0
        while any(thread.is_alive() for thread in threads):
            found = reader.samples("demo")
            assert len({(each.replica, each.at) for each in found}) == len(found)
            assert len(found) >= seen
            seen = len(found)
        for thread in threads:
            thread.join()
        for replica in (PS0, PS1):
            assert reader.samples("demo", replica=replica) == [
                dataclasses.replace(each, replica=replica) for each in every
            ]
