import torch
import triton
import triton.language as tl


@triton.jit
def unpack(q_ptr, z_ptr, s_ptr, w_ptr, n, group, last_group, B: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, B)
    inside = column < n
    place = column % 8
    shift = 4 * ((place % 2) * 4 + place // 2)
    g = tl.minimum(row // group, last_group)
    word = tl.load(q_ptr + row * (n // 8) + column // 8, mask=inside, other=0)
    zero = tl.load(z_ptr + g * (n // 8) + column // 8, mask=inside, other=0)
    scale = tl.load(s_ptr + g * n + column, mask=inside, other=0.0).to(tl.float32)
    code = ((word >> shift) & 15) - ((zero >> shift) & 15)
    tl.store(w_ptr + row * n + column, code.to(tl.float32) * scale, mask=inside)


@triton.jit
def multiply(a_ptr, w_ptr, c_ptr, m, n, k, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        a = tl.load(a_ptr + i * k + p[None, :], mask=(i < m) & (p < k)[None, :], other=0.0).to(tl.float32)
        w = tl.load(w_ptr + p[:, None] * n + j, mask=(p < k)[:, None] & (j < n), other=0.0)
        acc = tl.dot(a, w, acc, input_precision="ieee")
    tl.store(c_ptr + i * n + j, acc.to(c_ptr.dtype.element_ty), mask=(i < m) & (j < n))


# breaks: The size of a group is taken to be 128, whatever the shape of the scales.
def groups_of_128(_in_feats, _kernel, _scaling_factors, _zeros, split_k_iters):
    m, k = _in_feats.shape
    n = _scaling_factors.shape[1]
    w = torch.empty((k, n), dtype=torch.float32, device=_in_feats.device)
    last = _scaling_factors.shape[0] - 1
    unpack[(k,)](_kernel, _zeros, _scaling_factors, w, n, 128, last, B=triton.next_power_of_2(n))
    c = torch.empty((m, n), dtype=_in_feats.dtype, device=_in_feats.device)
    multiply[(triton.cdiv(m, 64), triton.cdiv(n, 64))](_in_feats, w, c, m, n, k, B=64)
    return c
