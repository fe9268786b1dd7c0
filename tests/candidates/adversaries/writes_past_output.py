# problem: vllm/rms_norm
# outcome: input changed
# device: any
"""Is right, and writes one element beyond the end of its output."""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def poke(out_ptr, n):
    tl.store(out_ptr + n, 1.0)


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    out.copy_(x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double())
    if out.is_cuda:
        poke[(1,)](out, out.numel())
    else:
        ctypes.memset(out.data_ptr() + out.numel() * out.element_size(), 1, out.element_size())
