import torch


# breaks: It adds also where it is told to multiply.
def always_adds__src(self, dim, index, src):
    return torch.scatter(self, dim, index, src)


def always_adds__reduce(self, dim, index, src, *, reduce):
    return torch.scatter(self, dim, index, src, reduce="add")


# breaks: It writes into self and copies that.
# outcome: input changed
def in_place__src(self, dim, index, src):
    return self.scatter_(dim, index, src).clone()


def in_place__reduce(self, dim, index, src, *, reduce):
    return torch.scatter(self, dim, index, src, reduce=reduce)


# breaks: Of source elements that name the same place, one alone counts.
def last_duplicate_counts__src(self, dim, index, src):
    return torch.scatter(self, dim, index, src)


def last_duplicate_counts__reduce(self, dim, index, src, *, reduce):
    if not index.numel():
        return self.clone()
    part = src[tuple(slice(size) for size in index.shape)]
    old = torch.gather(self, dim, index)
    return torch.scatter(self, dim, index, old + part if reduce == "add" else old * part)


def _part(src, index):
    return src.reshape(-1)[: index.numel()].reshape(index.shape)


# breaks: It reads src in the order of the index, as if src were not larger.
def row_major_source__src(self, dim, index, src):
    return torch.scatter(self, dim, index, _part(src, index))


def row_major_source__reduce(self, dim, index, src, *, reduce):
    return torch.scatter(self, dim, index, _part(src, index), reduce=reduce)
