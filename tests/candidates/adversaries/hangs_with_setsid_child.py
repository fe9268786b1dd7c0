# problem: aten/neg
# outcome: timeout
# device: any
"""Leaves a child in a session of its own, then sleeps in its call: both must be gone afterwards."""

import os
import time


def neg(self):
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
        os._exit(0)
    time.sleep(3600)
