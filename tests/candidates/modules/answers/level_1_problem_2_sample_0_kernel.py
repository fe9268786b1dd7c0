import torch
import triton
import triton.language as tl


@triton.jit
def masked(x, mask, y, count, factor, rows, columns, step_row, step_column, block: tl.constexpr):
    at = tl.arange(0, block)
    inside = at < rows * columns
    row, column = at // columns, at % columns
    value = tl.load(x + row * step_row + column * step_column, mask=inside)
    kept = tl.load(mask + at, mask=inside, other=0) != 0
    tl.store(y + at, tl.where(kept, value * factor, value), mask=inside)
    tl.store(count, tl.sum(kept.to(tl.int64), axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x, mask, factor):
        y = torch.empty(x.shape, device=x.device)
        count = torch.empty((), dtype=torch.int64, device=x.device)
        block = triton.next_power_of_2(x.numel())
        masked[(1,)](x, mask, y, count, factor, *x.shape, *x.stride(), block)
        return y, count
