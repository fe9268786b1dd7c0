"""moe_sum: the outputs of a token's experts, added in float32 and rounded once."""

import triton
import triton.language as tl


@triton.jit
def _moe_sum(x_ptr, out_ptr, total, n, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK outputs, which are dense over tokens and columns."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    first = at // n * (TOPK * n) + at % n
    result = tl.load(x_ptr + first, mask=inside, other=0.0).to(tl.float32)
    for expert in tl.static_range(1, TOPK):
        result += tl.load(x_ptr + first + expert * n, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty), mask=inside)


def moe_sum(input, output):
    """input: (tokens, topk, n), output: (tokens, n), both dense."""
    total = output.numel()
    block = 1024 if output.is_cuda else 1 << 17
    _moe_sum[(triton.cdiv(total, block),)](
        input, output, total, output.shape[1], TOPK=input.shape[1], BLOCK=block, num_warps=4
    )
