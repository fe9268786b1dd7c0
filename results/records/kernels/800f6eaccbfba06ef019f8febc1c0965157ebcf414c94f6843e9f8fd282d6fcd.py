import torch
import triton
import triton.language as tl


@triton.jit
def _fp8_bits(y, SOFT: tl.constexpr):
    # bits of the nearest float8_e4m3fn, saturating
    y = tl.minimum(tl.maximum(y, -448.0), 448.0)
    if SOFT:
        bits = y.to(tl.int32, bitcast=True)
        sign = (bits >> 24) & 0x80
        mag = bits & 0x7FFFFFFF
        a = mag.to(tl.float32, bitcast=True)
        nrm = ((mag + 0x7FFFF + ((mag >> 20) & 1)) >> 20) - 960
        sub = (tl.where(a < 0.015625, a, 0.0) + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
        code = tl.where(a < 0.015625, sub, nrm)
        return (code | sign).to(tl.uint8)
    else:
        return y.to(tl.float8e4nv).to(tl.uint8, bitcast=True)


@triton.jit
def _factors(s):
    # x / s as (x * f) * inv, where neither 1 / s overflows nor loses digits
    f = tl.where(s < 1e-30, 18446744073709551616.0, tl.where(s > 1e30, 5.421010862427522e-20, 1.0))
    inv = 1.0 / (s * f)
    return f.to(tl.float32), inv.to(tl.float32)


@triton.jit
def _static_kernel(
    o_ptr, x_ptr, s_ptr, hidden, n_blocks, xs, os, m, n, S1, ss0, ss1,
    MODE: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr, SOFT: tl.constexpr,
):
    pid = tl.program_id(0)
    row = pid // n_blocks
    cb = (pid % n_blocks).to(tl.int64)
    s_row = s_ptr + (row // m).to(tl.int64) * ss0
    x_row = x_ptr + row.to(tl.int64) * xs
    o_row = o_ptr + row.to(tl.int64) * os
    if MODE == 0:
        j = cb * BLOCK + tl.arange(0, BLOCK)
        msk = j < hidden
        x = tl.load(x_row + j, mask=msk, other=0.0).to(tl.float32)
        f, inv = _factors(tl.load(s_row))
        tl.store(o_row + j, _fp8_bits(x * f * inv, SOFT), mask=msk)
    elif MODE == 1:
        G: tl.constexpr = BLOCK // N
        g = cb * G + tl.arange(0, G)
        k = tl.arange(0, N)
        gm = g < S1
        j = g[:, None] * N + k[None, :]
        msk = gm[:, None] & (k >= 0)[None, :]
        x = tl.load(x_row + j, mask=msk, other=0.0).to(tl.float32)
        f, inv = _factors(tl.load(s_row + g.to(tl.int64) * ss1, mask=gm, other=1.0))
        tl.store(o_row + j, _fp8_bits(x * f[:, None] * inv[:, None], SOFT), mask=msk)
    else:
        j = cb * BLOCK + tl.arange(0, BLOCK)
        msk = j < hidden
        x = tl.load(x_row + j, mask=msk, other=0.0).to(tl.float32)
        f, inv = _factors(tl.load(s_row + (j // n).to(tl.int64) * ss1, mask=msk, other=1.0))
        tl.store(o_row + j, _fp8_bits(x * f * inv, SOFT), mask=msk)


@triton.jit
def _absmax_kernel(x_ptr, part_ptr, hidden, n_blocks, items, n_prog, xs, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for it in range(pid, items, n_prog):
        row = it // n_blocks
        j = (it % n_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row.to(tl.int64) * xs + j, mask=j < hidden, other=0.0).to(tl.float32)
        acc = tl.maximum(acc, tl.abs(x))
    tl.store(part_ptr + pid, tl.max(acc, axis=0))


@triton.jit
def _dynamic_kernel(
    o_ptr, x_ptr, s_ptr, part_ptr, hidden, n_blocks, items, n_prog, n_part, xs, os,
    BLOCK: tl.constexpr, PP: tl.constexpr, SOFT: tl.constexpr,
):
    pid = tl.program_id(0)
    pi = tl.arange(0, PP)
    amax = tl.max(tl.load(part_ptr + pi, mask=pi < n_part, other=0.0), axis=0)
    s = amax / 448.0
    if pid == 0:
        tl.store(s_ptr, s)
    f, inv = _factors(s)
    for k in range(pid, items, n_prog):
        it = items - 1 - k          # last rows first: they are still in L2
        row = it // n_blocks
        j = (it % n_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        msk = j < hidden
        x = tl.load(x_ptr + row.to(tl.int64) * xs + j, mask=msk, other=0.0).to(tl.float32)
        tl.store(o_ptr + row.to(tl.int64) * os + j, _fp8_bits(x * f * inv, SOFT), mask=msk)


@triton.jit
def _token_kernel(
    o_ptr, x_ptr, s_ptr, ub_ptr, hidden, n_blocks, xs, os, ss,
    BLOCK: tl.constexpr, ONE: tl.constexpr, HAS_UB: tl.constexpr, SOFT: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * xs
    o_row = o_ptr + row * os
    j = tl.arange(0, BLOCK)
    if ONE:
        msk = j < hidden
        x = tl.load(x_row + j, mask=msk, other=0.0).to(tl.float32)
        b = tl.max(tl.abs(x), axis=0)
    else:
        acc = tl.zeros([BLOCK], dtype=tl.float32)
        for t in range(0, n_blocks):
            at = tl.cast(t, tl.int64) * BLOCK + j
            xo = tl.load(x_row + at, mask=at < hidden, other=0.0).to(tl.float32)
            acc = tl.maximum(acc, tl.abs(xo))
        b = tl.max(acc, axis=0)
    if HAS_UB:
        b = tl.minimum(b, tl.load(ub_ptr))
    s = tl.maximum(b / 448.0, 1.0 / (448.0 * 512.0))
    tl.store(s_ptr + row * ss, s)
    inv = 1.0 / s
    if ONE:
        tl.store(o_row + j, _fp8_bits(x * inv, SOFT), mask=msk)
    else:
        for k in range(0, n_blocks):
            at = tl.cast(k, tl.int64) * BLOCK + j
            mo = at < hidden
            xo = tl.load(x_row + at, mask=mo, other=0.0).to(tl.float32)
            tl.store(o_row + at, _fp8_bits(xo * inv, SOFT), mask=mo)


def _pick_block(tokens, hidden):
    if tokens * hidden < (1 << 22):
        block = 1024
    else:
        block = 1024
        for b in (4096, 2048):
            if hidden % b == 0:
                block = b
                break
    return max(32, min(block, triton.next_power_of_2(hidden)))


def _warps(block):
    return max(1, min(4, block // 512))


def scaled_fp8_quant_static(result, input, scale):
    tokens, hidden = input.shape
    if result.numel() == 0:
        return None
    if scale.numel() == 1:
        S0, S1, ss0, ss1 = 1, 1, 0, 0
    elif scale.dim() == 1:
        S0, S1, ss0, ss1 = scale.shape[0], 1, scale.stride(0), 0
    else:
        S0, S1 = scale.shape
        ss0, ss1 = scale.stride(0), scale.stride(1)
    m = tokens // S0
    n = hidden // S1
    block = _pick_block(tokens, hidden)
    N = 1
    if S1 == 1:
        mode = 0
    elif 16 <= n <= 1024 and (n & (n - 1)) == 0:
        mode = 1
        N = n
        block = max(block, n)
    else:
        mode = 2
    n_blocks = triton.cdiv(hidden, block)
    _static_kernel[(tokens * n_blocks,)](
        result.view(torch.uint8), input, scale, hidden, n_blocks,
        input.stride(0), result.stride(0), m, n, S1, ss0, ss1,
        MODE=mode, N=N, BLOCK=block, SOFT=(input.device.type == "cpu"), num_warps=_warps(block))
    return None


def scaled_fp8_quant_dynamic(result, input, scale):
    tokens, hidden = input.shape
    if result.numel() == 0:
        return None
    block = _pick_block(tokens, hidden)
    n_blocks = triton.cdiv(hidden, block)
    items = tokens * n_blocks
    n_part = min(items, 1024)
    part = torch.empty((n_part,), dtype=torch.float32, device=input.device)
    warps = _warps(block)
    _absmax_kernel[(n_part,)](
        input, part, hidden, n_blocks, items, n_part, input.stride(0), BLOCK=block, num_warps=warps)
    n_prog = min(items, 2048)
    _dynamic_kernel[(n_prog,)](
        result.view(torch.uint8), input, scale, part, hidden, n_blocks, items, n_prog, n_part,
        input.stride(0), result.stride(0),
        BLOCK=block, PP=max(32, triton.next_power_of_2(n_part)),
        SOFT=(input.device.type == "cpu"), num_warps=warps)
    return None


def scaled_fp8_quant_per_token(result, input, scale, scale_ub=None):
    tokens, hidden = input.shape
    if result.numel() == 0:
        return None
    has_ub = scale_ub is not None
    one = hidden <= 16384
    if one:
        block = max(32, triton.next_power_of_2(hidden))
        per = 16 if tokens <= 264 else 32
        warps = max(1, min(16, block // (32 * per)))
    else:
        block, warps = 8192, 8
    _token_kernel[(tokens,)](
        result.view(torch.uint8), input, scale, scale_ub if has_ub else scale,
        hidden, triton.cdiv(hidden, block), input.stride(0), result.stride(0), scale.stride(0),
        BLOCK=block, ONE=one, HAS_UB=has_ub, SOFT=(input.device.type == "cpu"), num_warps=warps)
    return None

