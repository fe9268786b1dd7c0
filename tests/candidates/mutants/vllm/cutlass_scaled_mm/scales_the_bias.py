# outcome: wrong value
# breaks: It adds the bias before it scales.


def scaled(out, a, b, a_scales, b_scales, bias):
    value = a.float() @ b.float()
    out.copy_(a_scales * b_scales * (value if bias is None else value + bias))


cutlass_scaled_mm_int8 = cutlass_scaled_mm_fp8 = scaled
