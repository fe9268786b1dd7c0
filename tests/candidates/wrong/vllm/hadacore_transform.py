import torch
import triton
import triton.language as tl


# breaks: Sums are formed in x's dtype and scaled when all are done, where those of float16 may have overflowed.
def scaled_at_the_end(x, inplace=True):
    n = x.shape[-1]
    y, half = x, 1
    while half < n:
        a, b = y.unflatten(-1, (-1, 2, half)).unbind(-2)
        y = torch.stack((a + b, a - b), -2).reshape(x.shape)
        half *= 2
    return x.copy_(y.float() / n**0.5)


@triton.jit
def butterfly(x_ptr, n, h, pairs, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = x_ptr + row * n + (i // h) * 2 * h + i % h
    a = tl.load(at, mask=i < pairs, other=0.0)
    b = tl.load(at + h, mask=i < pairs, other=0.0)
    tl.store(at, a + b, mask=i < pairs)
    tl.store(at + h, a - b, mask=i < pairs)


# breaks: The butterfly has ten steps at most, which is enough for rows of 1024.
def stops_after_ten_steps(x, inplace=True):
    n = x.shape[-1]
    work = x.float().reshape(-1, n)
    block = min(1024, n // 2)
    grid = (work.shape[0], triton.cdiv(n // 2, block))
    h = 1
    for _ in range(10):
        if h >= n:
            break
        butterfly[grid](work, n, h, n // 2, BLOCK=block)
        h *= 2
    x.copy_((work / n**0.5).reshape(x.shape))
    return x
