# problem: aten/mm
# outcome: passed
# device: cuda
"""float32 from three products of TF32 on tensor cores: faster than the device does float32, and as good."""

import torch
import triton
import triton.language as tl


@triton.heuristics({"EVEN": lambda names: names["k"] % 32 == 0})
@triton.jit
def product(a, b, out, m, n, k, ar, ak, bk, bc, EVEN: tl.constexpr, PRECISION: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[:, None]
    column = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, k, 32):
        step = (first + tl.arange(0, 32)).to(tl.int64)
        inside = (step < k) | EVEN
        left = tl.load(a + row * ar + step[None, :] * ak, mask=(row < m) & inside[None, :], other=0)
        right = tl.load(b + step[:, None] * bk + column * bc, mask=inside[:, None] & (column < n), other=0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(out + row * n + column, total.to(out.dtype.element_ty), mask=(row < m) & (column < n))


def mm(self, mat2):
    (m, k), n = self.shape, mat2.shape[1]
    out = torch.empty((m, n), dtype=self.dtype, device=self.device)
    if m and n:
        # Infinities have no parts that could be multiplied: what has any goes the plain way.
        finite = self.dtype == torch.float32 and m * n >= 1 << 20
        product[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
            self, mat2, out, m, n, k, *self.stride(), *mat2.stride(),
            PRECISION="tf32x3" if finite else "ieee", BLOCK=64, num_stages=3,
        )  # fmt: skip
    return out
