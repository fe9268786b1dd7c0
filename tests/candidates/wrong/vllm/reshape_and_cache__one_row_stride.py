# outcome: wrong value
# breaks: Rows of value are walked at the stride of key's.

import torch
import triton
import triton.language as tl


@triton.jit
def put(key_ptr, value_ptr, kc_ptr, vc_ptr, slot_ptr, row, heads, size, places, X: tl.constexpr, B: tl.constexpr):
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


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    tokens, heads, size = key.shape
    if kv_cache_dtype != "auto":
        key, value = (
            (x.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn) for x, s in ((key, k_scale), (value, v_scale))
        )
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[key.element_size()]
    k, v, kc, vc = (t.view(bits) for t in (key, value, key_cache, value_cache))
    put[(tokens, heads)](
        k, v, kc, vc, slot_mapping, k.stride(0), heads, size, value_cache.shape[3],
        X=key_cache.shape[4], B=triton.next_power_of_2(size),
    )  # fmt: skip
