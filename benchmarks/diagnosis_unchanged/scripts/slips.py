"""What a script does wrong, where it says so to itself: options that the scripts beside this file share."""
import os
import sys
import threading
import time

KEPT = []


def add_options(parser):
    """Add the options; each is left out of a script that is sound."""
    parser.add_argument("--load", type=float, default=0.0, help="seconds that its own imports take")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of rest after each step")
    parser.add_argument("--absent", default="", help="the replica that never comes, such as ps-1")
    parser.add_argument("--leaky", default="", help="the replica that loses memory")
    parser.add_argument("--leak-bytes", type=int, default=0, help="that it loses in a second")
    parser.add_argument("--failing", default="", help="the replica that raises an error")
    parser.add_argument("--crashing", default="", help="the replica whose first attempt ends")
    parser.add_argument("--fail-after", type=float, default=0.0, help="seconds after its first step")
    parser.add_argument("--flood", type=int, default=0, help="lines that are printed in each step")


def begin(options, replica):
    """Do what concerns the whole process; may never return."""
    if options.load:
        until = time.time() + options.load
        while time.time() < until:
            sum(range(10000))
    if options.absent == replica:
        threading.Event().wait()
    if options.leaky == replica:
        thread = threading.Thread(target=_leak, args=(options.leak_bytes,))
        thread.daemon = True
        thread.start()


def _leak(bytes_per_second):
    while True:
        KEPT.append(b"\1" * (bytes_per_second // 4))
        time.sleep(0.25)


class Steps(object):
    """What is done after each step."""

    def __init__(self, options, replica):
        self.options, self.replica, self.made, self.first_at = options, replica, 0, None

    def add(self, step, loss):
        """Take note of a step."""
        self.made += 1
        now = time.time()
        self.first_at = self.first_at or now
        if self.made % 50 == 0:
            print("step %d loss %.6g" % (step, loss), flush=True)
        for number in range(self.options.flood):
            print("step %d, example %d: the features are fine and so is the label" % (step, number))
        if now - self.first_at > self.options.fail_after:
            if self.options.failing == self.replica:
                raise ValueError("labels are not between 0 and 1")
            if self.options.crashing == self.replica and os.environ.get("PACELINE_ATTEMPT") == "1":
                sys.stdout.flush()
                os._exit(1)
        if self.options.pause:
            time.sleep(self.options.pause)
