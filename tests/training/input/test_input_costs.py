"""What the threads of the input tell of their CPU time."""

import threading
import time

import pytest

from paceline.training.input.input_costs import CpuCounter, IdleMeter


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_each_thread_tells_its_own_once():
    counter = CpuCounter()
    at_least, at_most = [], []

    def work():
        burn(0.05)
        counter.tell()
        time.sleep(0.2)  # waiting costs nothing
        burn(0.05)
        at_least.append(time.thread_time())
        counter.tell()
        counter.tell()
        at_most.append(time.thread_time())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert 0.2 <= sum(at_least) <= counter.seconds <= sum(at_most)


def test_a_pause_is_counted_while_it_lasts_and_after():
    pauses = IdleMeter()
    assert pauses.seconds == 0
    began = time.perf_counter()
    with pauses.pause():
        time.sleep(0.1)
        assert 0.1 <= pauses.seconds <= time.perf_counter() - began
    over = pauses.seconds
    assert 0.1 <= over <= time.perf_counter() - began
    time.sleep(0.05)
    assert pauses.seconds == over
    with pytest.raises(KeyError), pauses.pause():
        raise KeyError
    after = pauses.seconds
    time.sleep(0.02)
    assert pauses.seconds == after >= over
