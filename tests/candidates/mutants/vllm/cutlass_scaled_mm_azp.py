# breaks: It adds what the zero points make where it should subtract.
def adds_zero_point(out, a, b, a_scales, b_scales, azp_adj, azp, bias):
    shift = azp_adj.float() * (1 if azp is None else azp.float())
    value = a_scales * b_scales * (a.float() @ b.float() + shift)
    out.copy_(value if bias is None else value + bias)


# breaks: It takes the zero point of every row for 1.
def ignores_zero_points_of_rows(out, a, b, a_scales, b_scales, azp_adj, azp, bias):
    value = a_scales * b_scales * (a.float() @ b.float() - azp_adj.float())
    out.copy_(value if bias is None else value + bias)
