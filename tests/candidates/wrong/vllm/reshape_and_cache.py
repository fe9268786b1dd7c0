import torch
import triton
import triton.language as tl


@triton.jit
def put(
    key_ptr,
    value_ptr,
    kc_ptr,
    vc_ptr,
    slot_ptr,
    k_row,
    v_row,
    heads,
    size,
    block_size,
    X: tl.constexpr,
    B: tl.constexpr,
):
    token, head = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        block, place = slot // block_size, slot % block_size
        d = tl.arange(0, B)
        k = tl.load(key_ptr + token * k_row + head * size + d, mask=d < size)
        v = tl.load(value_ptr + token * v_row + head * size + d, mask=d < size)
        at = ((block * heads + head) * (size // X) + d // X) * block_size * X + place * X + d % X
        tl.store(kc_ptr + at, k, mask=d < size)
        tl.store(vc_ptr + ((block * heads + head) * size + d) * block_size + place, v, mask=d < size)


def _fp8_eight_elements_together(x, scale):
    return (x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)


# breaks: 8 key elements are taken to lie together, right for 16-bit caches only.
def eight_elements_together(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    tokens, heads, size = key.shape
    if kv_cache_dtype != "auto":
        key, value = _fp8_eight_elements_together(key, k_scale), _fp8_eight_elements_together(value, v_scale)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[key.element_size()]
    k, v, kc, vc = (t.view(bits) for t in (key, value, key_cache, value_cache))
    put[(tokens, heads)](
        k, v, kc, vc, slot_mapping, k.stride(0), v.stride(0), heads, size, value_cache.shape[3],
        X=8, B=triton.next_power_of_2(size),
    )  # fmt: skip


@triton.jit
def put_one_row_stride(
    key_ptr, value_ptr, kc_ptr, vc_ptr, slot_ptr, row, heads, size, places, X: tl.constexpr, B: tl.constexpr
):
    token, head = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        block, place = slot // places, slot % places
        d = tl.arange(0, B)
        k = tl.load(key_ptr + token * row + head * size + d, mask=d < size)
        v = tl.load(value_ptr + token * row + head * size + d, mask=d < size)
        at = ((block * heads + head) * (size // X) + d // X) * places * X + place * X + d % X
        tl.store(kc_ptr + at, k, mask=d < size)
        tl.store(vc_ptr + ((block * heads + head) * size + d) * places + place, v, mask=d < size)


# breaks: Rows of value are walked at the stride of key's.
def one_row_stride(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    tokens, heads, size = key.shape
    if kv_cache_dtype != "auto":
        key, value = (
            (x.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn) for x, s in ((key, k_scale), (value, v_scale))
        )
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[key.element_size()]
    k, v, kc, vc = (t.view(bits) for t in (key, value, key_cache, value_cache))
    put_one_row_stride[(tokens, heads)](
        k, v, kc, vc, slot_mapping, k.stride(0), heads, size, value_cache.shape[3],
        X=key_cache.shape[4], B=triton.next_power_of_2(size),
    )  # fmt: skip


def _fp8_saturates_before_it_scales(x, scale):
    return (x.float().clamp(-448, 448) / scale).clamp(-448, 448).to(torch.float8_e4m3fn)


# breaks: Elements saturate at 448 before they are divided by the scale, which shows where it is above 1.
def saturates_before_it_scales(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    tokens, heads, size = key.shape
    if kv_cache_dtype != "auto":
        key, value = _fp8_saturates_before_it_scales(key, k_scale), _fp8_saturates_before_it_scales(value, v_scale)
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[key.element_size()]
    k, v, kc, vc = (t.view(bits) for t in (key, value, key_cache, value_cache))
    put[(tokens, heads)](
        k, v, kc, vc, slot_mapping, k.stride(0), v.stride(0), heads, size, value_cache.shape[3],
        X=key_cache.shape[-1], B=triton.next_power_of_2(size),
    )  # fmt: skip
