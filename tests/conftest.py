import signal

from hypothesis import settings

# A shell starts what it runs in the background with SIGINT ignored, and everything that the tests start would
# inherit that: Ctrl-C could not be tested there.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on how quick the machine is.
settings.register_profile("paceline", deadline=None)
settings.load_profile("paceline")
