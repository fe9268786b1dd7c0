# outcome: wrong value
# breaks: It swaps the lower and the upper eight rows of every sixteen.

import torch


def columns(values):
    return values.reshape(-1, 8, 4).mT.reshape(1, -1)


def allspark_w8a16_gemm(a, packed, scales, zeros, n, *rest):
    k = a.shape[1]
    codes = packed.reshape((-1, 8, k // 16, 4, 4, 2, 2)).permute((2, 5, 3, 6, 0, 4, 1)).reshape(k // 16, 2, 8, -1).flip(1).reshape(k, -1)[:, :n].float() - 128
    if zeros is not None:
        codes = codes - columns(zeros)[:, :n].float()
    return (a.float() @ (codes * columns(scales)[:, :n].float())).to(a.dtype)
