import torch
import triton
import triton.language as tl


@triton.jit
def rank_rows(x_ptr, values_ptr, places_ptr, n, DOWN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0)
    rank = tl.zeros((BLOCK,), tl.int64)
    for first in range(0, n, BLOCK):
        j = first + tl.arange(0, BLOCK)
        y = tl.load(x_ptr + row * n + j, mask=j < n, other=0)
        before = (y[None, :] > x[:, None]) if DOWN else (y[None, :] < x[:, None])
        tie = (y[None, :] == x[:, None]) & (j[None, :] < i[:, None])
        rank += tl.sum(((before | tie) & (j < n)[None, :]).to(tl.int64), axis=1)
    tl.store(values_ptr + row * n + rank, x, mask=i < n)
    tl.store(places_ptr + row * n + rank, i.to(tl.int64), mask=i < n)


# breaks: Places are counted by comparisons, which are all false for NaN, so NaNs and the smallest share a place.
def nan_ranks_collide(self, *, stable, dim=-1, descending=False):
    dtype = self.dtype
    wide = self.double() if dtype.is_floating_point else self.long()
    x = (wide.movedim(dim, -1) if self.ndim else wide.reshape(1)).contiguous()
    values = torch.zeros_like(x)
    places = torch.zeros(x.shape, dtype=torch.int64, device=x.device)
    if x.numel():
        n = x.shape[-1]
        block = min(256, triton.next_power_of_2(n))
        grid = (x.numel() // n, triton.cdiv(n, block))
        rank_rows[grid](x, values, places, n, DOWN=descending, BLOCK=block)
    if self.ndim == 0:
        return values.reshape(()).to(dtype), places.reshape(())
    return values.to(dtype).movedim(-1, dim), places.movedim(-1, dim)
