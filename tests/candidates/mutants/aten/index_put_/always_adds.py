# outcome: wrong value
# breaks: It adds also where it is not told to.


def index_put_(self, indices, values, accumulate=False):
    return self.index_put_(indices, values, accumulate=True)
