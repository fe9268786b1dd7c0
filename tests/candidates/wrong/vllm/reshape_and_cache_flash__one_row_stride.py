# outcome: wrong value
# breaks: Rows of value are walked at the stride of key's.

import torch
import triton
import triton.language as tl


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


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
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
