# breaks: It returns a copy of the range, not a view.
# outcome: wrong value
# right: nothing
def copies(self, dim, start, length):
    dim %= self.ndim
    if start < 0:
        start += self.shape[dim]
    index = [slice(None)] * self.ndim
    index[dim] = slice(start, start + length)
    return self[tuple(index)].contiguous().clone()
