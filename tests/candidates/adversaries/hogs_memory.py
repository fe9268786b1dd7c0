# problem: aten/add
# outcome: out of memory
# device: any
"""Takes host memory, and touches it, until there is none."""


def add_Tensor(self, other, *, alpha=1):
    held = []
    while True:
        held.append(bytearray(b"x") * (256 << 20))


def add_Scalar(self, other, alpha=1):
    held = []
    while True:
        held.append(bytearray(b"x") * (256 << 20))
