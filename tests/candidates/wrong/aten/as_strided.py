# breaks: storage_offset is counted from self's first element, not from the storage's.
# outcome: wrong shape
def offset_from_self(self, size, stride, storage_offset=None):
    start = self.storage_offset()
    if storage_offset is not None:
        start = start + storage_offset
    return self.as_strided(tuple(size), tuple(stride), start)
