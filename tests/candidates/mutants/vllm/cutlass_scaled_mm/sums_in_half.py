# outcome: wrong value
# breaks: It rounds the sums to bfloat16 before it scales them.


def scaled(out, a, b, a_scales, b_scales, bias):
    value = a_scales * b_scales * (a.float() @ b.float()).bfloat16().float()
    out.copy_(value if bias is None else value + bias)


cutlass_scaled_mm_int8 = cutlass_scaled_mm_fp8 = scaled
