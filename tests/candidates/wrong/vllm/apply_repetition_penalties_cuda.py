import torch
import triton
import triton.language as tl


@triton.jit
def penalise(x_ptr, p_ptr, o_ptr, r_ptr, vocabulary, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    s = tl.program_id(0).to(tl.int64)
    r = tl.load(r_ptr + s).to(tl.float32)
    for step in range(STEPS):
        t = step * BLOCK + tl.arange(0, BLOCK)
        inside = t < vocabulary
        seen = tl.load(p_ptr + s * vocabulary + t, mask=inside, other=0) != 0
        seen = seen | (tl.load(o_ptr + s * vocabulary + t, mask=inside, other=0) != 0)
        x = tl.load(x_ptr + s * vocabulary + t, mask=inside, other=0.0).to(tl.float32)
        y = tl.where(x > 0, x / r, x * r)
        tl.store(x_ptr + s * vocabulary + t, y.to(x_ptr.dtype.element_ty), mask=inside & seen)


# breaks: A program loops over at most eight blocks of the vocabulary.
def first_columns_only(logits, prompt_mask, output_mask, repetition_penalties):
    sequences, vocabulary = logits.shape
    masks = (prompt_mask.view(torch.uint8), output_mask.view(torch.uint8))
    penalise[(sequences,)](logits, *masks, repetition_penalties, vocabulary, STEPS=8, BLOCK=1024)
