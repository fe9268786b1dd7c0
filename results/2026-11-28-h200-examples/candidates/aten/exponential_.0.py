"""exponential_: numbers of density lambd * exp(-lambd * x) in place, made from Philox's bits.

Seed and place in the stream are those of torch's generator, which every call moves on by what it uses. Since no number
depends on another, memory without gaps is filled as it lies, and anything else by its strides.
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed", "first"])
def _fill(
    out_ptr, n, seed: tl.int64, first: tl.int64, rate: tl.float64, sizes, strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, DOUBLE: tl.constexpr,
):  # fmt: skip
    """Four numbers of 32 random bits, or two of 53, for each of BLOCK counters. DIMS = 0: memory without gaps."""
    counter = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(tl.cast(seed, tl.int64), counter + first)
    begin = tl.program_id(0).to(tl.int64) * (BLOCK * (2 if DOUBLE else 4)) + tl.arange(0, BLOCK)
    if DOUBLE:
        _put(out_ptr, n, begin, _exponential_64(a, b) / rate, sizes, strides, DIMS)
        _put(out_ptr, n, begin + BLOCK, _exponential_64(c, d) / rate, sizes, strides, DIMS)
    else:
        narrow = tl.cast(rate, tl.float32)
        _put(out_ptr, n, begin, _exponential_32(a) / narrow, sizes, strides, DIMS)
        _put(out_ptr, n, begin + BLOCK, _exponential_32(b) / narrow, sizes, strides, DIMS)
        _put(out_ptr, n, begin + 2 * BLOCK, _exponential_32(c) / narrow, sizes, strides, DIMS)
        _put(out_ptr, n, begin + 3 * BLOCK, _exponential_32(d) / narrow, sizes, strides, DIMS)


@triton.jit
def _exponential_32(bits):
    """-log(u) for u = (bits + 1/2) / 2**32; where u is rounded to 1 the smallest of the others, since 0 cannot come."""
    u = (bits.to(tl.uint32, bitcast=True).to(tl.float32) + 0.5) * 2.3283064365386963e-10
    return tl.maximum(-tl.log(u), 5.9604645e-08)


@triton.jit
def _exponential_64(high, low):
    bits = (high.to(tl.uint32, bitcast=True) >> 5).to(tl.float64) * 67108864.0
    bits += (low.to(tl.uint32, bitcast=True) >> 6).to(tl.float64)
    return tl.maximum(-tl.log((bits + 0.5) * 1.1102230246251565e-16), 1.1102230246251565e-16)


@triton.jit
def _put(out_ptr, n, i, x, sizes, strides, DIMS: tl.constexpr):
    at = i
    if DIMS > 0:
        rest = i
        at = tl.zeros_like(i)
        for back in tl.static_range(DIMS):
            at += rest % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
            rest = rest // sizes[DIMS - 1 - back]
    tl.store(out_ptr + at, x.to(out_ptr.dtype.element_ty), mask=i < n)


def _taken(generator, device, counters):
    """The generator's seed and its next counter, behind which it then is by so many."""
    if generator is None:
        generator = torch.cuda.default_generators[device.index] if device.type == "cuda" else torch.default_generator
    seed = generator.initial_seed()
    if device.type == "cuda":
        # Like torch's own kernels: a counter stands for four numbers.
        place = generator.get_offset()
        generator.set_offset(place + 4 * counters)
        return _signed(seed), place // 4
    # A generator of the CPU has no place that can be set. It gets the seed that follows this one.
    generator.manual_seed(_following(seed))
    return _signed(seed), 0


def _following(seed):
    """SplitMix64."""
    mixed = (seed + 0x9E3779B97F4A7C15) % (1 << 64)
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % (1 << 64)
    return (mixed ^ mixed >> 31) >> 1


def _signed(seed):
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def _has_gaps(x):
    """Whether its elements do not lie behind each other in some order."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1):
        if stride != expected:
            return True
        expected *= size
    return False


def exponential_(self, lambd=1.0, *, generator=None):
    """self, filled."""
    n, double = self.numel(), self.dtype == torch.float64
    if n == 0:
        return self
    block = 256 if self.is_cuda else 1 << 14
    programs = triton.cdiv(n, block * (2 if double else 4))
    seed, first = _taken(generator, self.device, programs * block)
    dims = self.ndim if _has_gaps(self) else 0
    shape, strides = (tuple(self.shape), self.stride()) if dims else ((1,), (1,))
    _fill[(programs,)](self, n, seed, first, lambd, shape, strides, DIMS=dims, BLOCK=block, DOUBLE=double)
    return self
