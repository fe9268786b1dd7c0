"""aten/pow by flag_gems 5.0.2, as `--model flaggems` has it judged."""

import torch

if not torch.cuda.is_available():
    # Its kernels are wrapped in classes that Triton's interpreter does not know.
    raise NotImplementedError("its kernels run on a GPU alone")
import flag_gems
import triton  # of its kernels


pow_Tensor_Tensor = flag_gems.pow_tensor_tensor

pow_Tensor_Scalar = flag_gems.pow_tensor_scalar

pow_Scalar = flag_gems.pow_scalar


def pow_Tensor_Tensor_out(self, exponent, *, out):
    raise NotImplementedError("it has no pow_Tensor_Tensor_out")