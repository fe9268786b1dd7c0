def columns(values):
    return values.reshape(-1, 8, 4).mT.reshape(1, -1)


# breaks: It swaps the lower and the upper eight rows of every sixteen.
def eight_rows_swapped(a, packed, scales, zeros, n, *rest):
    k = a.shape[1]
    codes = (
        packed.reshape((-1, 8, k // 16, 4, 4, 2, 2))
        .permute((2, 5, 3, 6, 0, 4, 1))
        .reshape(k // 16, 2, 8, -1)
        .flip(1)
        .reshape(k, -1)[:, :n]
        .float()
        - 128
    )
    if zeros is not None:
        codes = codes - columns(zeros)[:, :n].float()
    return (a.float() @ (codes * columns(scales)[:, :n].float())).to(a.dtype)


# breaks: It takes scales and zero points in the order of the columns.
def plain_scales(a, packed, scales, zeros, n, *rest):
    k = a.shape[1]
    codes = (
        packed.reshape((-1, 8, k // 16, 4, 4, 2, 2)).permute((2, 5, 3, 6, 0, 4, 1)).reshape(k, -1)[:, :n].float() - 128
    )
    if zeros is not None:
        codes = codes - zeros[:, :n].float()
    return (a.float() @ (codes * scales[:, :n].float())).to(a.dtype)


# breaks: It leaves the offset of 128 where there are zero points.
def zero_without_offset(a, packed, scales, zeros, n, *rest):
    k = a.shape[1]
    codes = packed.reshape((-1, 8, k // 16, 4, 4, 2, 2)).permute((2, 5, 3, 6, 0, 4, 1)).reshape(k, -1)[
        :, :n
    ].float() - (128 if zeros is None else 0)
    if zeros is not None:
        codes = codes - columns(zeros)[:, :n].float()
    return (a.float() @ (codes * columns(scales)[:, :n].float())).to(a.dtype)
