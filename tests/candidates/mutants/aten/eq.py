import torch


def _narrowed(value):
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.int32, torch.int64) else value
    return float(torch.tensor(value, dtype=torch.float32)) if isinstance(value, int) and abs(value) > 1 << 24 else value


# breaks: Compares whole numbers as float32, where 16777216 and 16777217 are the same.
def integers_in_float(self, other):
    return torch.eq(_narrowed(self), _narrowed(other))
