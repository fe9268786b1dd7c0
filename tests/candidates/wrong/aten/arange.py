import torch
import triton
import triton.language as tl


def _fill(out, n, start, step):
    if n:
        whole = isinstance(start, int) and isinstance(step, int)
        at = torch.tensor([start, step], dtype=torch.int64 if whole else torch.float64, device=out.device)
        values = at[0] + at[1] * torch.arange(n, device=out.device)
        copy[(triton.cdiv(n, 1024),)](values, out, n, out.stride(0), BLOCK=1024)
    return out


@triton.jit
def copy(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i * step, x.to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: The number of elements is the quotient cut off, not rounded up.
# outcome: wrong shape
def length_cut_off__start_step(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None):
    if dtype is None:
        dtype = torch.int64 if all(isinstance(x, int) for x in (start, end, step)) else torch.float32
    n = int((end - start) / step)
    work = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return _fill(torch.empty(n, dtype=work, device=device), n, start, step).to(dtype)


def length_cut_off__start_out(start, end, step=1, *, out):
    return _fill(out, out.numel(), start, step)
