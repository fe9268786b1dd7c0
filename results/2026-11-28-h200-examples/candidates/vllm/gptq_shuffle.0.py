"""gptq_shuffle: the codes of GPTQ's columns in the order that exllama's kernels unpack, rows permuted on the way.

32 rows fill as many words as a code has bits, and stay together. With a permutation their codes come from anywhere in
the columns, and with 3 bits from words that are already changed: then a copy of the old words is read.
"""

import triton
import triton.language as tl


@triton.jit
def _code(old_ptr, perm_ptr, row, column, inside, n, BITS: tl.constexpr, HAS_PERM: tl.constexpr):
    """The code that belongs in a row: bits BITS * row and up of its column, which may lie in two words."""
    if HAS_PERM:
        row = tl.load(perm_ptr + row).to(tl.int64)
    bit = row * BITS
    code = tl.load(old_ptr + bit // 32 * n + column, mask=inside, other=0).to(tl.uint32, bitcast=True)
    shift = (bit % 32).to(tl.uint32)
    code = code >> shift
    if BITS == 3:
        # A code has 3 bits of a word and, of those at its end, up to 2 of the next one.
        rest = tl.maximum(bit % 32 - 29, 0)
        next_word = tl.load(old_ptr + (bit + 2) // 32 * n + column, mask=inside, other=0).to(tl.uint32, bitcast=True)
        code |= (next_word & ((1 << rest.to(tl.uint32)) - 1)) << (3 - rest).to(tl.uint32)
    return code & ((1 << BITS) - 1)


@triton.jit
def _shuffle(
    new_ptr, old_ptr, perm_ptr, parts, n,
    BITS: tl.constexpr, HAS_PERM: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """BLOCK columns of PARTS times 32 rows. One axis: the others of a grid end at 65,535."""
    columns = (n + BLOCK - 1) // BLOCK
    column = tl.program_id(0) % columns * BLOCK + tl.arange(0, BLOCK)[None, :]
    part = (tl.program_id(0) // columns).to(tl.int64) * PARTS + tl.arange(0, PARTS)[:, None]
    inside = (part < parts) & (column < n)
    part = tl.minimum(part, parts - 1)
    per: tl.constexpr = 10 if BITS == 3 else 32 // BITS
    # The last two codes of 32 of 3 bits are dealt out, a bit to each word.
    last = tl.zeros((PARTS, BLOCK), tl.uint32)
    very_last = tl.zeros((PARTS, BLOCK), tl.uint32)
    if BITS == 3:
        last = _code(old_ptr, perm_ptr, part * 32 + 30, column, inside, n, BITS, HAS_PERM)
        very_last = _code(old_ptr, perm_ptr, part * 32 + 31, column, inside, n, BITS, HAS_PERM)
    for word in tl.static_range(BITS):
        packed = tl.zeros((PARTS, BLOCK), tl.uint32)
        for i in tl.static_range(per):
            code = _code(old_ptr, perm_ptr, part * 32 + word * per + i, column, inside, n, BITS, HAS_PERM)
            place = BITS * i if BITS == 8 else BITS * (i // 2) + 16 * (i % 2)
            packed |= code << place
        if BITS == 3:
            packed |= (last >> word & 1) << 15 | (very_last >> word & 1) << 31
        tl.store(new_ptr + (part * BITS + word) * n + column, packed.to(tl.int32, bitcast=True), mask=inside)


def gptq_shuffle(q_weight, q_perm, bit):
    """q_weight: (k * bit / 32, n), int32, changed in place; q_perm: (k,), int32, or without elements."""
    words, n = q_weight.shape
    permuted = q_perm.numel() > 0
    if bit == 8 and not permuted:
        return
    old = q_weight.clone() if permuted or bit == 3 else q_weight
    parts = words // bit
    block = min(128 if q_weight.is_cuda else 1 << 14, triton.next_power_of_2(n))
    per = 1 if q_weight.is_cuda else triton.next_power_of_2(parts)
    _shuffle[(triton.cdiv(n, block) * triton.cdiv(parts, per),)](
        q_weight, old, q_perm, parts, n, BITS=bit, HAS_PERM=permuted, PARTS=per, BLOCK=block, num_warps=4
    )
