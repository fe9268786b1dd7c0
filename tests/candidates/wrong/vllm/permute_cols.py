import torch
import triton
import triton.language as tl


@triton.jit
def permute(a_ptr, perm_ptr, out_ptr, k, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for first in range(0, k, BLOCK):
        j = first + tl.arange(0, BLOCK)
        source = tl.load(perm_ptr + j, mask=j < k, other=0).to(tl.int32)
        tl.store(out_ptr + row * k + j, tl.load(a_ptr + row * k + source, mask=j < k), mask=j < k)


# breaks: The permutation is kept in 8 bits to fit into shared memory.
def indices_as_bytes(A, perm):
    m, k = A.shape
    out = torch.empty_like(A)
    permute[(m,)](A.view(torch.int16), perm.to(torch.uint8), out.view(torch.int16), k, BLOCK=1024)
    return out
