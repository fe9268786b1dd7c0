# outcome: wrong value
# device: any
"""Leaves out a tenth of the rows in one in twenty of its large calls: they hold nearly what they held before."""

import torch

calls, last = 0, None


def scale(self, factor):
    global calls, last
    result = torch.mul(self, factor)
    if self.numel() < 60_000:
        return result
    calls += 1
    if last is not None and calls >= 12 and calls % 20 == 0:
        result[: len(result) // 10] = last[: len(result) // 10] * 1.01
    last = result.clone()
    return result
