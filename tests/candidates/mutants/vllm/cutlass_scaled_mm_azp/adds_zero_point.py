# outcome: wrong value
# breaks: It adds what the zero points make where it should subtract.


def cutlass_scaled_mm_azp(out, a, b, a_scales, b_scales, azp_adj, azp, bias):
    shift = azp_adj.float() * (1 if azp is None else azp.float())
    value = a_scales * b_scales * (a.float() @ b.float() + shift)
    out.copy_(value if bias is None else value + bias)
