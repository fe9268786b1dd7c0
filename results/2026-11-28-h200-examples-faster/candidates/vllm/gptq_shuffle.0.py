"""gptq_shuffle: the codes of GPTQ's columns in the order that exllama's kernels unpack, rows permuted on the way.

A unit is one word, or with 3 bits three words of 32 codes. Without a permutation each unit is turned around by itself.
With one its codes come from anywhere in the columns: a program that holds whole columns reads all of them before it
writes; longer columns are read from a copy.
"""

import triton
import triton.language as tl


@triton.jit
def _words(ptr, inside):
    return tl.load(ptr, mask=inside, other=0).to(tl.uint32, bitcast=True)


@triton.jit
def _even(word, BITS: tl.constexpr):
    """A word's codes of even number, side by side in the lower half."""
    if BITS == 2:
        word = word & 0x33333333
        word = word | (word >> 2)
    word = word & 0x0F0F0F0F
    word = (word | (word >> 4)) & 0x00FF00FF
    return (word | (word >> 8)) & 0x0000FFFF


@triton.jit
def _shuffle(ptr, total, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK words with codes of 2 or 4 bits."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = _words(ptr + at, at < total)
    word = _even(word, BITS) | (_even(word >> BITS, BITS) << 16)
    tl.store(ptr + at, word.to(tl.int32, bitcast=True), mask=at < total)


@triton.jit
def _code_of_3(word0, word1, word2, i: tl.constexpr):
    """Code i of 32, which may lie in two words."""
    shift: tl.constexpr = 3 * i % 32
    if i < 11:
        code = word0 >> shift
        following = word1
    elif i < 22:
        code = word1 >> shift
        following = word2
    else:
        code = word2 >> shift
        following = word2
    if shift > 29:
        code = code | (following << (32 - shift))
    return code & 7


@triton.jit
def _with_code_of_3(word0, word1, word2, code, i: tl.constexpr):
    """The three new words with code i put in its place; the last two codes are dealt out, a bit to each word."""
    if i >= 30:
        place: tl.constexpr = 15 + 16 * (i - 30)
        word0 = word0 | ((code & 1) << place)
        word1 = word1 | (((code >> 1) & 1) << place)
        word2 = word2 | (((code >> 2) & 1) << place)
    else:
        place: tl.constexpr = 3 * (i % 10 // 2) + 16 * (i % 10 % 2)
        if i < 10:
            word0 = word0 | (code << place)
        elif i < 20:
            word1 = word1 | (code << place)
        else:
            word2 = word2 | (code << place)
    return word0, word1, word2


@triton.jit
def _store_3(at, n, word0, word1, word2, inside):
    tl.store(at, word0.to(tl.int32, bitcast=True), mask=inside)
    tl.store(at + n, word1.to(tl.int32, bitcast=True), mask=inside)
    tl.store(at + 2 * n, word2.to(tl.int32, bitcast=True), mask=inside)


@triton.jit
def _place(units, n, blocks, UNITS: tl.constexpr, COLUMNS: tl.constexpr):
    """A program's units and columns. One axis: the others of a grid end at 65,535."""
    band = tl.program_id(0) // blocks
    unit = band * UNITS + tl.arange(0, UNITS)
    column = (tl.program_id(0) - band * blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    return unit, column, (unit < units)[:, None] & (column < n)[None, :]


@triton.jit
def _shuffle_3(ptr, units, n, blocks, UNITS: tl.constexpr, COLUMNS: tl.constexpr):
    """COLUMNS columns of UNITS times three words with codes of 3 bits."""
    unit, column, inside = _place(units, n, blocks, UNITS, COLUMNS)
    n = tl.full((), n, tl.int64)
    at = ptr + (unit.to(tl.int64) * (3 * n))[:, None] + column[None, :]
    old0, old1, old2 = _words(at, inside), _words(at + n, inside), _words(at + 2 * n, inside)
    new0 = tl.zeros([UNITS, COLUMNS], tl.uint32)
    new1 = tl.zeros([UNITS, COLUMNS], tl.uint32)
    new2 = tl.zeros([UNITS, COLUMNS], tl.uint32)
    for i in tl.static_range(32):
        new0, new1, new2 = _with_code_of_3(new0, new1, new2, _code_of_3(old0, old1, old2, i), i)
    _store_3(at, n, new0, new1, new2, inside)


@triton.jit
def _permuted(old_ptr, perm_ptr, row, column, live, inside, n, BITS: tl.constexpr):
    """The codes that belong in rows, from the columns' old words."""
    source = tl.load(perm_ptr + row, mask=live, other=0)
    if BITS == 3:
        # Not source * 3, which may leave 32 bits.
        bit = (source & 31) * 3
        shift = bit & 31
        at = old_ptr + (((source >> 5) * 3 + (bit >> 5)).to(tl.int64) * n)[:, None] + column[None, :]
        code = _words(at, inside) >> shift.to(tl.uint32)[:, None]
        # The bits of a code that lie in the next word, moved in two steps: a shift by 32 has no result.
        following = _words(at + n, inside & (shift > 29)[:, None])
        code = code | ((following << 1) << (31 - shift).to(tl.uint32)[:, None])
    else:
        PER_WORD: tl.constexpr = 32 // BITS
        word = _words(old_ptr + ((source // PER_WORD).to(tl.int64) * n)[:, None] + column[None, :], inside)
        code = word >> (source % PER_WORD * BITS).to(tl.uint32)[:, None]
    return code & ((1 << BITS) - 1)


@triton.jit
def _shuffle_permuted(
    new_ptr, old_ptr, perm_ptr, units, n, blocks, BITS: tl.constexpr, UNITS: tl.constexpr, COLUMNS: tl.constexpr
):
    """COLUMNS columns of UNITS units. old is new where these are whole columns."""
    unit, column, inside = _place(units, n, blocks, UNITS, COLUMNS)
    live = unit < units
    n = tl.full((), n, tl.int64)
    new0 = tl.zeros([UNITS, COLUMNS], tl.uint32)
    if BITS == 3:
        new1 = tl.zeros([UNITS, COLUMNS], tl.uint32)
        new2 = tl.zeros([UNITS, COLUMNS], tl.uint32)
        for i in tl.static_range(32):
            code = _permuted(old_ptr, perm_ptr, unit * 32 + i, column, live, inside, n, BITS)
            new0, new1, new2 = _with_code_of_3(new0, new1, new2, code, i)
        # All is read before the first word is written.
        tl.debug_barrier()
        _store_3(new_ptr + (unit.to(tl.int64) * (3 * n))[:, None] + column[None, :], n, new0, new1, new2, inside)
    else:
        PER_WORD: tl.constexpr = 32 // BITS
        for i in tl.static_range(PER_WORD):
            code = _permuted(old_ptr, perm_ptr, unit * PER_WORD + i, column, live, inside, n, BITS)
            new0 = new0 | (code << (8 * i if BITS == 8 else BITS * (i // 2) + 16 * (i % 2)))
        tl.debug_barrier()
        at = new_ptr + (unit.to(tl.int64) * n)[:, None] + column[None, :]
        tl.store(at, new0.to(tl.int32, bitcast=True), mask=inside)


def gptq_shuffle(q_weight, q_perm, bit):
    """q_weight: (k * bit / 32, n), int32, changed in place; q_perm: (k,), int32, or without elements."""
    words, n = q_weight.shape
    permuted = q_perm.numel() > 0
    if words == 0 or n == 0 or (bit == 8 and not permuted):
        return
    units = words // 3 if bit == 3 else words
    if permuted:
        _launch_permuted(q_weight, q_perm, bit, units, n)
    elif bit == 3:
        blocks = triton.cdiv(n, 128)
        _shuffle_3[(triton.cdiv(units, 4) * blocks,)](q_weight, units, n, blocks, UNITS=4, COLUMNS=128, num_warps=4)
    else:
        _shuffle[(triton.cdiv(words * n, 2048),)](q_weight, words * n, BITS=bit, BLOCK=2048, num_warps=4)


def _launch_permuted(q_weight, q_perm, bit, units, n):
    """Whole columns to a program where its registers hold them."""
    old, height, columns = q_weight, triton.next_power_of_2(units), 32
    most = 4096 if bit == 3 else 16384
    while columns > 8 and height * columns > most:
        columns //= 2
    warps = max(1, min(16, height * columns // 1024))
    if height * columns > most:
        old, height, columns, warps = q_weight.clone(), 16, 64, 4
    blocks = triton.cdiv(n, columns)
    _shuffle_permuted[(triton.cdiv(units, height) * blocks,)](
        q_weight, old, q_perm, units, n, blocks, BITS=bit, UNITS=height, COLUMNS=columns, num_warps=warps
    )
