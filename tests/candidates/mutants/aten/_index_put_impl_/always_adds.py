# outcome: wrong value
# breaks: It adds also where it is not told to.


def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    return self.index_put_(indices, values, accumulate=True)
