"""moe_sum: the outputs of a token's experts, added in float32 and rounded once."""

import torch
import triton
import triton.language as tl


@triton.jit
def _widened(x, WORDS: tl.constexpr):
    """float32 of what was loaded, WORDS: the bits of bfloat16."""
    return (x.to(tl.int32) << 16).to(tl.float32, bitcast=True) if WORDS else x.to(tl.float32)


@triton.jit
def _bits_of_bfloat16(x):
    bits = x.to(tl.int32, bitcast=True)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (tl.where(x == x, rounded, bits | 0x400000) >> 16).to(tl.int16)


@triton.jit
def _moe_sum(x_ptr, out_ptr, total, n, TOPK: tl.constexpr, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK outputs, which are dense over tokens and columns.

    WORDS: bfloat16 comes as words of 16 bits, since Triton's interpreter loses its denormals.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    n = tl.full((), n, tl.int64)
    first = at // n * (TOPK * n) + at % n
    result = _widened(tl.load(x_ptr + first, mask=inside, other=0), WORDS)
    for expert in tl.static_range(1, TOPK):
        result += _widened(tl.load(x_ptr + first + expert * n, mask=inside, other=0), WORDS)
    result = _bits_of_bfloat16(result) if WORDS else result.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, result, mask=inside)


def moe_sum(input, output):
    """input: (tokens, topk, n), output: (tokens, n), both dense."""
    total, n = output.numel(), output.shape[1]
    words = input.dtype == torch.bfloat16 and not output.is_cuda
    if words:
        input, output = input.view(torch.int16), output.view(torch.int16)
    block = 1024 if output.is_cuda else 1 << 17
    _moe_sum[(triton.cdiv(total, block),)](
        input, output, total, n, TOPK=input.shape[1], WORDS=words, BLOCK=block, num_warps=4
    )
