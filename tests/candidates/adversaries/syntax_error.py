# problem: aten/add
# outcome: compile error
# device: any
"""Is no Python."""

def add_Tensor(self, other, *, alpha=1:
    return self
