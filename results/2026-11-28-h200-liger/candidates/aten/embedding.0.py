"""aten/embedding by liger_kernel 0.8.5, as `--model liger` has it judged."""

import torch
import triton  # of its kernels: on a CPU they run in the interpreter
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction



def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if not (not sparse):
        raise NotImplementedError("only calls with not sparse")
    return LigerEmbeddingFunction.apply(weight, indices)