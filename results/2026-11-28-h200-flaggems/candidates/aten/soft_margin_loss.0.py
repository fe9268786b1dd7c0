"""aten/soft_margin_loss by flag_gems 5.0.2, as `--model flaggems` has it judged."""

import torch

if not torch.cuda.is_available():
    # Its kernels are wrapped in classes that Triton's interpreter does not know.
    raise NotImplementedError("its kernels run on a GPU alone")
import flag_gems
import triton  # of its kernels


soft_margin_loss = flag_gems.soft_margin_loss


def soft_margin_loss_out(self, target, reduction=1, *, out):
    raise NotImplementedError("it has no soft_margin_loss_out")