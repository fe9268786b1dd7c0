"""apply_repetition_penalties_cuda: logits of tokens that prompt or output hold are made less likely, in place.

Only those are read and written; of the others nothing but the masks passes through the memory.
"""

import triton
import triton.language as tl


@triton.jit
def _penalise(logits_ptr, prompt_ptr, output_ptr, penalty_ptr, n, BLOCK: tl.constexpr):
    """BLOCK tokens of one sequence."""
    # One dimension: the others of a grid end at 65,535.
    blocks = tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    column = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    at = row * n + column
    inside = column < n
    prompt = tl.load(prompt_ptr + at, mask=inside, other=0)
    output = tl.load(output_ptr + at, mask=inside, other=0)
    seen = inside & ((prompt != 0) | (output != 0))
    penalty = tl.load(penalty_ptr + row).to(tl.float32)
    logits = tl.load(logits_ptr + at, mask=seen, other=0.0).to(tl.float32)
    logits = tl.where(logits > 0, logits / penalty, logits * penalty)
    tl.store(logits_ptr + at, logits.to(logits_ptr.dtype.element_ty), mask=seen)


def apply_repetition_penalties_cuda(logits, prompt_mask, output_mask, repetition_penalties):
    """logits and the two bool masks: (sequences, tokens), dense; repetition_penalties: (sequences,)."""
    sequences, n = logits.shape
    block = min(2048 if logits.is_cuda else 1 << 17, triton.next_power_of_2(n))
    _penalise[(triton.cdiv(n, block) * sequences,)](
        logits, prompt_mask, output_mask, repetition_penalties, n, BLOCK=block, num_warps=8
    )
