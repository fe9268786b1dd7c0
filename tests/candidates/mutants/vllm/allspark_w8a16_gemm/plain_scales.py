# outcome: wrong value
# breaks: It takes scales and zero points in the order of the columns.

import torch


def columns(values):
    return values.reshape(-1, 8, 4).mT.reshape(1, -1)


def allspark_w8a16_gemm(a, packed, scales, zeros, n, *rest):
    k = a.shape[1]
    codes = packed.reshape((-1, 8, k // 16, 4, 4, 2, 2)).permute((2, 5, 3, 6, 0, 4, 1)).reshape(k, -1)[:, :n].float() - 128
    if zeros is not None:
        codes = codes - zeros[:, :n].float()
    return (a.float() @ (codes * scales[:, :n].float())).to(a.dtype)
