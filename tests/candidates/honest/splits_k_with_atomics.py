# problem: aten/mm
# outcome: passed
# device: any
"""A product whose depth is shared among programs that add with atomics: the order of the sum is another each time."""

import torch
import triton
import triton.language as tl


@triton.jit
def share(a, b, out, m, n, k, per, ar, ak, bk, bc, WIDEN: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[:, None]
    column = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    first = tl.program_id(2) * per
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for begin in range(first, tl.minimum(first + per, k), DEPTH):
        step = (begin + tl.arange(0, DEPTH)).to(tl.int64)
        left = tl.load(a + row * ar + step[None, :] * ak, mask=(row < m) & (step[None, :] < k), other=0)
        right = tl.load(b + step[:, None] * bk + column * bc, mask=(step[:, None] < k) & (column < n), other=0)
        if WIDEN:
            left, right = left.to(tl.float32), right.to(tl.float32)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.atomic_add(out + row * n + column, total, mask=(row < m) & (column < n), sem="relaxed")


def mm(self, mat2):
    (m, k), n = self.shape, mat2.shape[1]
    total = torch.zeros((m, n), dtype=torch.float32, device=self.device)
    block, depth, parts = 64, 32, 4
    per = triton.cdiv(triton.cdiv(max(k, 1), parts), depth) * depth
    if m and n and k:
        grid = (triton.cdiv(m, block), triton.cdiv(n, block), triton.cdiv(k, per))
        share[grid](
            self, mat2, total, m, n, k, per, *self.stride(), *mat2.stride(),
            WIDEN=not self.is_cuda, BLOCK=block, DEPTH=depth,
        )  # fmt: skip
    return total.to(self.dtype)
