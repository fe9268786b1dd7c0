# problem: vllm/rms_norm
# outcome: input changed
# device: any
"""Is right, and writes one element before the start of its output."""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def poke(out_ptr):
    tl.store(out_ptr - 1, 1.0)


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    out.copy_(x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double())
    if out.is_cuda:
        poke[(1,)](out)
    else:
        ctypes.memset(out.data_ptr() - out.element_size(), 1, out.element_size())
