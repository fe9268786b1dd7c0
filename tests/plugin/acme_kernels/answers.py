"""References of Acme's problems."""

import torch


def triple(self: torch.Tensor) -> torch.Tensor:
    return 3 * self
