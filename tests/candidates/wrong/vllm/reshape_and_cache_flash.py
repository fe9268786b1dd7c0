import torch
import triton
import triton.language as tl


@triton.jit
def put_rows_dense_token_rows(
    x_ptr, cache_ptr, slot_ptr, size, block_size, s_block, s_place, s_head, heads, B: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        i = tl.arange(0, B)
        inside = i < heads * size
        x = tl.load(x_ptr + token * heads * size + i, mask=inside)
        target = (slot // block_size) * s_block + (slot % block_size) * s_place + (i // size) * s_head + i % size
        tl.store(cache_ptr + target, x, mask=inside)


# breaks: A token's row is taken to be heads * head_size long, whatever its stride.
def dense_token_rows(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    heads, size = key.shape[1:]
    for x, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        if kv_cache_dtype != "auto":
            x = (x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[x.element_size()]
        s = cache.stride()
        put_rows_dense_token_rows[(slot_mapping.numel(),)](
            x.view(bits), cache.view(bits), slot_mapping, size, cache.shape[1], s[0], s[1], s[2], heads,
            B=triton.next_power_of_2(heads * size),
        )  # fmt: skip


@triton.jit
def put(
    key_ptr, value_ptr, kc_ptr, vc_ptr, slot_ptr, row, size, places, s_block, s_place, s_head, heads, B: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        i = tl.arange(0, B)
        inside = i < heads * size
        target = slot // places * s_block + slot % places * s_place + i // size * s_head + i % size
        tl.store(kc_ptr + target, tl.load(key_ptr + token * row + i, mask=inside), mask=inside)
        tl.store(vc_ptr + target, tl.load(value_ptr + token * row + i, mask=inside), mask=inside)


# breaks: Rows of value are walked at the stride of key's.
def one_row_stride(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    heads, size = key.shape[1:]
    if kv_cache_dtype != "auto":
        key, value = (
            (x.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn) for x, s in ((key, k_scale), (value, v_scale))
        )
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[key.element_size()]
    k, v, kc, vc = (t.view(bits) for t in (key, value, key_cache, value_cache))
    put[(slot_mapping.numel(),)](
        k, v, kc, vc, slot_mapping, k.stride(0), size, kc.shape[1], *kc.stride()[:3], heads,
        B=triton.next_power_of_2(heads * size),
    )  # fmt: skip


@triton.jit
def put_rows_saturates_before_it_scales(
    x_ptr, cache_ptr, slot_ptr, size, block_size, s_block, s_place, s_head, heads, row, B: tl.constexpr
):
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token)
    if slot >= 0:
        i = tl.arange(0, B)
        inside = i < heads * size
        x = tl.load(x_ptr + token * row + i, mask=inside)
        target = (slot // block_size) * s_block + (slot % block_size) * s_place + (i // size) * s_head + i % size
        tl.store(cache_ptr + target, x, mask=inside)


# breaks: Elements saturate at 448 before they are divided by the scale, which shows where it is above 1.
def saturates_before_it_scales(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    heads, size = key.shape[1:]
    for x, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        if kv_cache_dtype != "auto":
            x = (x.float().clamp(-448, 448) / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[x.element_size()]
        s = cache.stride()
        put_rows_saturates_before_it_scales[(slot_mapping.numel(),)](
            x.view(bits), cache.view(bits), slot_mapping, size, cache.shape[1], s[0], s[1], s[2], heads, x.stride(0),
            B=triton.next_power_of_2(heads * size),
        )  # fmt: skip
