# outcome: rejected
# breaks: It changes self and returns a copy.


def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    return self.index_put_(indices, values, accumulate=accumulate).clone()
