"""t: the transpose of a matrix as a view; no data moves, so there is no kernel."""

import torch


def t(self):
    """``self`` (rows, columns) seen as (columns, rows); of fewer dimensions as it is. Shares the storage."""
    if self.ndim < 2:
        return self.view(self.shape)
    (rows, columns), (down, across) = self.shape, self.stride()
    return torch.as_strided(self, (columns, rows), (across, down), self.storage_offset())
