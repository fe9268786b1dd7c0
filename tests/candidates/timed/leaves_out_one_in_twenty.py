# outcome: wrong value
# device: any
"""Leaves out one in twenty of its large calls: it answers what it answered before."""

import torch

calls, last = 0, None


def scale(self, factor):
    global calls, last
    if self.numel() < 60_000:
        return torch.mul(self, factor)
    calls += 1
    if last is None or calls < 12 or calls % 20:
        last = torch.mul(self, factor)
    return last.clone()
