# outcome: wrong value
# breaks: It gives rows the scale of the first, and columns as they come.


def scaled(out, a, b, a_scales, b_scales, bias):
    value = a_scales[:1] * b_scales * (a.float() @ b.float())
    out.copy_(value if bias is None else value + bias)


cutlass_scaled_mm_int8 = cutlass_scaled_mm_fp8 = scaled
