import torch
import triton
import triton.language as tl


@triton.jit
def _copy_kernel(ptrs, mapping, ms0, ms1, elems, chunks,
                 NT: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    t = tl.program_id(1)
    pair = pid // chunks
    chunk = pid % chunks
    base = ptrs[0]
    for i in tl.static_range(1, NT):
        base = tl.where(t == i, ptrs[i], base)
    src = tl.load(mapping + pair.to(tl.int64) * ms0)
    dst = tl.load(mapping + pair.to(tl.int64) * ms0 + ms1)
    offs = chunk.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < elems
    v = tl.load(base + src * elems + offs, mask=mask, other=0)
    tl.store(base + dst * elems + offs, v, mask=mask)


_INT = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def copy_blocks(key_caches, value_caches, block_mapping):
    pairs = block_mapping.shape[0]
    if pairs == 0 or len(key_caches) == 0:
        return None
    groups = {}
    for c in list(key_caches) + list(value_caches):
        if c.numel() == 0:
            continue
        elems = c.numel() // c.shape[0]
        it = c.element_size()
        groups.setdefault((elems, it), []).append(c.view(_INT[it]))
    for (elems, it), tensors in groups.items():
        BLOCK = min(16384 // it, max(16, triton.next_power_of_2(elems)))
        chunks = triton.cdiv(elems, BLOCK)
        for i in range(0, len(tensors), 32):
            part = tensors[i:i + 32]
            cnt = len(part)
            NT = triton.next_power_of_2(cnt)
            part = part + [part[-1]] * (NT - cnt)
            _copy_kernel[(pairs * chunks, cnt)](tuple(part), block_mapping,
                                                block_mapping.stride(0), block_mapping.stride(1),
                                                elems, chunks, NT=NT, BLOCK=BLOCK, num_warps=4)
    return None
