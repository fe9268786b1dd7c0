# problem: aten/neg
# outcome: timeout
# device: any
"""Sleeps in its call for ever."""

import time


def neg(self):
    time.sleep(1_000_000)
