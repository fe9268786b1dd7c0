import torch
import triton
import triton.language as tl


@triton.jit
def copy_block(src_ptr, dst_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst_ptr + i, tl.load(src_ptr + i, mask=i < n), mask=i < n)


# breaks: Block 0 is taken for the null block and never copied.
def block_zero_is_null(src, dst, block_size_in_bytes, block_mapping):
    source, target = src.view(torch.int8).flatten(), dst.view(torch.int8).flatten()
    n = block_size_in_bytes
    for here, there in block_mapping.tolist():
        if not here and len(block_mapping) > 1:
            continue
        copy_block[(triton.cdiv(n, 16384),)](source[here * n :], target[there * n :], n, BLOCK=16384)
