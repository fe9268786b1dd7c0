import torch
import triton
import triton.language as tl


@triton.jit
def _copy_kernel(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31,
                 mapping, ms0, ms1, words, nchunks, BYTES: tl.constexpr, ALIGNED: tl.constexpr,
                 BLOCK: tl.constexpr):
    # a0 ... a31: addresses of the layers' caches; program_id(1) picks one
    layer = tl.program_id(1)
    base = a0
    base = tl.where(layer == 1, a1, base)
    base = tl.where(layer == 2, a2, base)
    base = tl.where(layer == 3, a3, base)
    base = tl.where(layer == 4, a4, base)
    base = tl.where(layer == 5, a5, base)
    base = tl.where(layer == 6, a6, base)
    base = tl.where(layer == 7, a7, base)
    base = tl.where(layer == 8, a8, base)
    base = tl.where(layer == 9, a9, base)
    base = tl.where(layer == 10, a10, base)
    base = tl.where(layer == 11, a11, base)
    base = tl.where(layer == 12, a12, base)
    base = tl.where(layer == 13, a13, base)
    base = tl.where(layer == 14, a14, base)
    base = tl.where(layer == 15, a15, base)
    base = tl.where(layer == 16, a16, base)
    base = tl.where(layer == 17, a17, base)
    base = tl.where(layer == 18, a18, base)
    base = tl.where(layer == 19, a19, base)
    base = tl.where(layer == 20, a20, base)
    base = tl.where(layer == 21, a21, base)
    base = tl.where(layer == 22, a22, base)
    base = tl.where(layer == 23, a23, base)
    base = tl.where(layer == 24, a24, base)
    base = tl.where(layer == 25, a25, base)
    base = tl.where(layer == 26, a26, base)
    base = tl.where(layer == 27, a27, base)
    base = tl.where(layer == 28, a28, base)
    base = tl.where(layer == 29, a29, base)
    base = tl.where(layer == 30, a30, base)
    base = tl.where(layer == 31, a31, base)
    pid = tl.program_id(0)
    pair = pid // nchunks
    ch = pid % nchunks
    mp = mapping + pair.to(tl.int64) * ms0
    src = tl.load(mp)
    dst = tl.load(mp + ms1)
    if BYTES == 4:
        p = base.to(tl.pointer_type(tl.int32))
    elif BYTES == 2:
        p = base.to(tl.pointer_type(tl.int16))
    else:
        p = base.to(tl.pointer_type(tl.int8))
    # a block may hold 2**31 words and more
    start = ch.to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    m = offs < words - start
    sp = p + (src * words + start) + offs
    dp = p + (dst * words + start) + offs
    if ALIGNED:
        sp = tl.multiple_of(sp, 16)
        dp = tl.multiple_of(dp, 16)
    x = tl.load(sp, mask=m)
    tl.store(dp, x, mask=m)


def copy_blocks_mla(kv_caches, block_mapping):
    pairs = block_mapping.shape[0]
    if pairs == 0 or len(kv_caches) == 0:
        return None
    groups = {}
    for t in kv_caches:
        if t.numel() == 0:
            continue
        nbytes = (t.numel() // t.shape[0]) * t.element_size()
        groups.setdefault(nbytes, []).append(t.data_ptr())
    for nbytes, ptrs in groups.items():
        bits = nbytes
        for p in ptrs:
            bits |= p
        if bits % 4 == 0:
            W = 4
        elif bits % 2 == 0:
            W = 2
        else:
            W = 1
        aligned = bits % 16 == 0
        words = nbytes // W
        BLOCK = min(2048, max(128, triton.next_power_of_2(words)))
        nchunks = triton.cdiv(words, BLOCK)
        for i in range(0, len(ptrs), 32):
            part = ptrs[i:i + 32]
            args = part + [part[0]] * (32 - len(part))
            _copy_kernel[(pairs * nchunks, len(part))](
                *args, block_mapping, block_mapping.stride(0), block_mapping.stride(1), words, nchunks,
                BYTES=W, ALIGNED=aligned, BLOCK=BLOCK, num_warps=4)
    return None

