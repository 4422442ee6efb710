"""What the threads of the input tell of their CPU time."""

import threading
import time

import pytest

from paceline.training.input_costs import CpuCounter, Pauses


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_each_thread_tells_its_own_once():
    counter = CpuCounter()

    def work():
        burn(0.05)
        counter.tell()
        burn(0.05)
        counter.tell()
        counter.tell()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert 0.2 <= counter.seconds < 0.3


def test_waiting_costs_nothing():
    counter = CpuCounter()

    def rest():
        time.sleep(0.2)
        counter.tell()

    thread = threading.Thread(target=rest)
    thread.start()
    thread.join()
    assert counter.seconds < 0.1


def test_a_pause_is_counted_while_it_lasts_and_after():
    pauses = Pauses()
    assert pauses.seconds == 0
    with pauses.pause():
        time.sleep(0.1)
        assert 0.1 <= pauses.seconds < 0.3
    over = pauses.seconds
    assert over >= 0.1
    time.sleep(0.05)
    assert pauses.seconds == over
    with pytest.raises(KeyError), pauses.pause():
        raise KeyError
    after = pauses.seconds
    time.sleep(0.02)
    assert pauses.seconds == after >= over
