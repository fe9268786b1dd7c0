# problem: aten/neg
# outcome: timeout
# device: any
"""Ignores every signal that can be ignored, SIGTERM among them, and sleeps: only SIGKILL ends it."""

import contextlib
import signal
import time

for number in signal.valid_signals():
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_IGN)


def neg(self):
    while True:
        time.sleep(3600)
