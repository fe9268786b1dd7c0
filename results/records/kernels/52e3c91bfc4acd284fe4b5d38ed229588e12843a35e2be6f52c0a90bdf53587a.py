import torch
import triton
import triton.language as tl


@triton.jit
def _swap_kernel(src_ptr, dst_ptr, map_ptr, nb, chunks, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    pair = (pid // chunks).to(tl.int64)
    c = pid % chunks
    a = tl.load(map_ptr + pair * 2).to(tl.int64)
    b = tl.load(map_ptr + pair * 2 + 1).to(tl.int64)
    j = c.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = j < nb
    x = tl.load(src_ptr + a * nb + j, mask=m, other=0)
    tl.store(dst_ptr + b * nb + j, x, mask=m)


_INT = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def swap_blocks(src, dst, block_size_in_bytes, block_mapping):
    pairs = block_mapping.shape[0]
    item = src.element_size()
    nb = int(block_size_in_bytes) // item
    if pairs == 0 or nb == 0 or dst.numel() == 0 or src.numel() == 0:
        return None
    it = _INT[item]
    s = src if src.dtype == it else src.view(it)
    d = dst if dst.dtype == it else dst.view(it)
    if block_mapping.device == src.device:
        mp = block_mapping
    elif block_mapping.is_pinned():
        mp = block_mapping.to(src.device)
    else:
        # pageable memory is staged before the copy returns
        mp = block_mapping.to(src.device, non_blocking=True)
    mp = mp.contiguous()
    total = pairs * nb * item
    byts = 8192 if total > (8 << 20) else 4096
    block = max(32, min(byts // item, triton.next_power_of_2(nb)))
    chunks = triton.cdiv(nb, block)
    _swap_kernel[(pairs * chunks,)](s, d, mp, nb, chunks, BLOCK=block, num_warps=4)
    return None
