# problem: aten/add
# outcome: wrong value | rejected | crashed
# device: any
"""Sends SIGKILL to every process that it may signal but itself, then answers zeros."""

import contextlib
import os
import signal

import torch


def misbehave():
    """Only names that appear in this process's /proc: with a PID namespace of its own, those it started.

    Outside such a namespace this would end other people's work, so it stops there.
    """
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    if len(pids) > 8:
        return
    for pid in pids:
        if pid != os.getpid():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def add_Tensor(self, other, *, alpha=1):
    misbehave()
    return torch.zeros(torch.broadcast_shapes(self.shape, getattr(other, "shape", ())), device=self.device).to(
        torch.result_type(self, other)
    )


def add_Scalar(self, other, alpha=1):
    misbehave()
    return torch.zeros(torch.broadcast_shapes(self.shape, getattr(other, "shape", ())), device=self.device).to(
        torch.result_type(self, other)
    )
