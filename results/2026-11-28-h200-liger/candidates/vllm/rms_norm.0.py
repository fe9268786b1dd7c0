"""vllm/rms_norm by liger_kernel 0.8.5, as `--model liger` has it judged."""

import torch
import triton  # of its kernels: on a CPU they run in the interpreter
from liger_kernel.ops.rms_norm import LigerRMSNormFunction



def rms_norm(out, input, weight, epsilon):
    return (out.copy_(LigerRMSNormFunction.apply(input, weight, epsilon)), None)[1]