import torch
import triton
import triton.language as tl


@triton.jit
def argmax_rows(x_ptr, out_ptr, rows, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = row < rows
    best = tl.load(x_ptr + row * n, mask=inside, other=0.0)
    where = tl.zeros((BLOCK,), tl.int64)
    for j in range(1, n):
        x = tl.load(x_ptr + row * n + j, mask=inside, other=0.0)
        better = ((x >= best) | (x != x)) & (best == best)
        best = tl.where(better, x, best)
        where = tl.where(better, j, where)
    tl.store(out_ptr + row, where, mask=inside)


# breaks: Of equal largest elements it names the last.
def last_of_equals(self, dim=None, keepdim=False):
    shape = list(self.shape)
    if dim is None:
        x, kept = self.reshape(1, -1), []
        full = [1] * self.ndim
    elif self.ndim == 0:
        x, kept, full = self.reshape(1, 1), [], []
    else:
        dim %= self.ndim
        kept = shape[:dim] + shape[dim + 1 :]
        full = shape[:dim] + [1] + shape[dim + 1 :]
        x = self.movedim(dim, -1)
    x = (x.double() if x.is_floating_point() else x.long()).contiguous()
    out = torch.empty(kept, dtype=torch.int64, device=self.device)
    if x.numel():
        rows = out.numel()
        argmax_rows[(triton.cdiv(rows, 64),)](x, out, rows, x.shape[-1], BLOCK=64)
    return out.reshape(full) if keepdim else out


@triton.jit
def first_largest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    nan = (x != x) & (i < n)
    any_nan = tl.max(nan.to(tl.int32), axis=0)
    x = tl.where(i < n, x, float("-inf"))
    top = tl.max(tl.where(nan, float("-inf"), x), axis=0)
    hit = tl.where(any_nan > 0, nan, (x == top) & (i < n))
    tl.store(out_ptr + row, tl.min(tl.where(hit, i, n), axis=0).to(tl.int64))


def _dense(x):
    strides = sorted(zip(x.stride(), x.shape, strict=True), reverse=True)
    expected = 1
    for stride, size in reversed(strides):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


# breaks: Without dim it gives the place in memory, which is not that in row-major order for a transposed tensor.
def place_in_memory(self, dim=None, keepdim=False):
    if dim is None:
        # one pass over memory, without a copy where the elements lie close together
        x = self.as_strided((self.numel(),), (1,)) if _dense(self) else self.reshape(-1)
    else:
        x = self.movedim(dim, -1) if self.ndim else self.reshape(1)
    x = x.double().contiguous()
    out = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
    if x.numel():
        n = x.shape[-1]
        first_largest[(out.numel(),)](x, out, n, BLOCK=triton.next_power_of_2(n))
    if keepdim:
        out = out.reshape([1] * self.ndim) if dim is None or self.ndim == 0 else out.unsqueeze(dim)
    return out


@triton.jit
def argmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    x = tl.where(x != x, float("inf"), x)
    tl.store(out_ptr + row, tl.argmax(x, axis=0))


# breaks: Places come back as int32, as the kernel computes them.
# outcome: wrong dtype
# right: nothing
def returns_int32(self, dim=None, keepdim=False):
    x = self.reshape(-1) if dim is None or self.ndim == 0 else self.movedim(dim, -1)
    x = x.float().contiguous()
    out = torch.empty(x.shape[:-1], dtype=torch.int32, device=x.device)
    if x.numel():
        n = x.shape[-1]
        argmax_kernel[(out.numel(),)](x, out, n, BLOCK=triton.next_power_of_2(n))
    if keepdim:
        out = out.reshape([1] * self.ndim) if dim is None else out.unsqueeze(dim)
    return out
