# breaks: It adds the bias before it scales.
def scales_the_bias(out, a, b, a_scales, b_scales, bias):
    value = a.float() @ b.float()
    out.copy_(a_scales * b_scales * (value if bias is None else value + bias))


# breaks: It rounds the sums to bfloat16 before it scales them.
def sums_in_half(out, a, b, a_scales, b_scales, bias):
    value = a_scales * b_scales * (a.float() @ b.float()).bfloat16().float()
    out.copy_(value if bias is None else value + bias)


# breaks: It gives rows the scale of the first, and columns as they come.
def swapped_scales(out, a, b, a_scales, b_scales, bias):
    value = a_scales[:1] * b_scales * (a.float() @ b.float())
    out.copy_(value if bias is None else value + bias)
