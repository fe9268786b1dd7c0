"""apply_repetition_penalties_cuda: logits of tokens that prompt or output hold are made less likely, in place.

Logits are read and written in groups of 32 bytes, and a group without such a token not at all: of it nothing but the
masks passes through the memory. Rows of fewer than 2048 tokens are taken as one, many of them in a block.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _penalise(
    logits_ptr, prompt_ptr, output_ptr, penalty_ptr, n, blocks,
    GROUPS: tl.constexpr, GROUP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """GROUPS groups of GROUP tokens of one sequence; WIDE: their numbers may leave 32 bits."""
    # One dimension: the others of a grid end at 65,535.
    row = tl.program_id(0) // blocks
    block = tl.program_id(0) - row * blocks
    row = row.to(tl.int64)
    if WIDE:
        block = block.to(tl.int64)
    penalty = tl.load(penalty_ptr + row).to(tl.float32)
    # A reciprocal that is subnormal or infinite would lose digits: 2^-64 or 2^64 goes to both numbers first.
    shift = tl.where(penalty > 1.0e30, 5.421010862427522e-20, tl.where(penalty < 1.0e-30, 18446744073709551616.0, 1.0))
    reciprocal = tl.div_rn(1.0, penalty * shift)
    column = block * (GROUPS * GROUP) + tl.arange(0, GROUPS)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < n
    prompt = tl.load(prompt_ptr + row * n + column, mask=inside, other=0)
    output = tl.load(output_ptr + row * n + column, mask=inside, other=0)
    seen = (prompt | output) != 0
    touched = inside & (tl.max(seen.to(tl.int32), axis=1)[:, None] > 0)
    at = logits_ptr + row * n + column
    old = tl.load(at, mask=touched, other=0.0)
    x = old.to(tl.float32)
    x = tl.where(x > 0, (x * shift) * reciprocal, x * penalty)
    tl.store(at, tl.where(seen, x.to(old.dtype), old), mask=touched)


@triton.jit
def _penalise_short(
    logits_ptr, prompt_ptr, output_ptr, penalty_ptr, n, size, BLOCK: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """BLOCK of the ``size`` tokens of all sequences; WIDE: their numbers may leave 32 bits."""
    block = tl.program_id(0)
    if WIDE:
        block = block.to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    prompt = tl.load(prompt_ptr + i, mask=i < size, other=0)
    output = tl.load(output_ptr + i, mask=i < size, other=0)
    seen = (i < size) & ((prompt | output) != 0)
    penalty = tl.load(penalty_ptr + i // n, mask=seen, other=1.0).to(tl.float32)
    x = tl.load(logits_ptr + i, mask=seen, other=0.0).to(tl.float32)
    x = tl.where(x > 0, tl.div_rn(x, penalty), x * penalty)
    tl.store(logits_ptr + i, x.to(logits_ptr.dtype.element_ty), mask=seen)


def apply_repetition_penalties_cuda(logits, prompt_mask, output_mask, repetition_penalties):
    """logits and the two bool masks: (sequences, tokens), dense; repetition_penalties: (sequences,)."""
    sequences, n = logits.shape
    size = sequences * n
    if size == 0:
        return
    operands = (logits, prompt_mask.view(torch.uint8), output_mask.view(torch.uint8), repetition_penalties, n)
    near = 2**31 - 2**14
    if n < 2048:
        _penalise_short[(triton.cdiv(size, 1024),)](*operands, size, BLOCK=1024, WIDE=size >= near, num_warps=4)
        return
    group, blocks = 32 // logits.element_size(), triton.cdiv(n, 4096)
    _penalise[(sequences * blocks,)](*operands, blocks, GROUPS=4096 // group, GROUP=group, WIDE=n >= near, num_warps=4)
