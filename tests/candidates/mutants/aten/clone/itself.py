# outcome: rejected
# breaks: It shares self's memory.


def clone(self, *, memory_format=None):
    return self.view(self.shape)
