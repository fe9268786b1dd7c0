import torch
import triton
import triton.language as tl


@triton.jit
def _moe_sum_kernel(x_ptr, o_ptr, hidden, n_blocks, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    t = (pid // n_blocks).to(tl.int64)
    j = (pid % n_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    h = t * 0 + hidden  # in 64 bits
    m = j < hidden
    base = x_ptr + t * TOPK * h
    acc = tl.load(base + j, mask=m, other=0.0).to(tl.float32)
    for k in tl.static_range(1, TOPK):
        acc += tl.load(base + k * h + j, mask=m, other=0.0).to(tl.float32)
    tl.store(o_ptr + t * h + j, acc.to(o_ptr.dtype.element_ty), mask=m)


def moe_sum(input, output):
    tokens, topk, hidden = input.shape
    if output.numel() == 0:
        return None
    if topk == 0:
        output.zero_()
        return None
    item = input.element_size()
    block = 2048 if (topk <= 2 and hidden % 2048 == 0) else 1024
    if item == 4:
        block = block // 2
    block = min(block, max(32, triton.next_power_of_2(hidden)))
    n_blocks = triton.cdiv(hidden, block)
    warps = 4 if block >= 512 else 1
    _moe_sum_kernel[(tokens * n_blocks,)](
        input, output, hidden, n_blocks, TOPK=topk, BLOCK=block, num_warps=warps)
    return None
