# outcome: rejected
# breaks: It changes self and returns a copy.


def index_put_(self, indices, values, accumulate=False):
    return self.index_put_(indices, values, accumulate=accumulate).clone()
