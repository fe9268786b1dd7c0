# outcome: wrong value
# breaks: It takes the zero point of every row for 1.


def cutlass_scaled_mm_azp(out, a, b, a_scales, b_scales, azp_adj, azp, bias):
    value = a_scales * b_scales * (a.float() @ b.float() - azp_adj.float())
    out.copy_(value if bias is None else value + bias)
