import torch


# breaks: It answers the absolute values of normal numbers, of the right mean.
def half_normal(self, lambd=1.0, *, generator=None):
    drawn = torch.randn(self.shape, generator=generator, device=self.device)
    return self.copy_(drawn.abs() * (1.2533141373155001 / lambd))


# breaks: It multiplies with lambd instead of dividing.
def multiplies_by_rate(self, lambd=1.0, *, generator=None):
    drawn = torch.empty(self.shape, device=self.device).exponential_(1.0, generator=generator)
    return self.copy_(drawn * lambd)


# breaks: It makes its numbers of 16 random bits.
def sixteen_bits(self, lambd=1.0, *, generator=None):
    bits = torch.randint(0, 1 << 16, self.shape, generator=generator, device=self.device)
    return self.copy_(-torch.log((bits + 0.5) / 65536) / lambd)


BANK = torch.rand(1 << 24, generator=torch.Generator().manual_seed(1))


def begun(count, generator, step=1):
    return int(torch.randint(0, len(BANK) - count * step, (1,), generator=generator))


def answered(self, uniform, lambd):
    return self.copy_((-torch.log1p(-uniform.double().clamp(1e-9, 1 - 1e-8)) / lambd).view(self.shape))


# breaks: It answers slices of a bank that was filled at import, from wherever the generator says.
def slices_of_a_bank(self, lambd=1.0, *, generator=None):
    first = begun(self.numel(), generator)
    return answered(self, BANK[first : first + self.numel()], lambd)


# breaks: It answers every third, fifth or seventh number of such a bank.
def strides_through_a_bank(self, lambd=1.0, *, generator=None):
    step = (1, 3, 5)[int(torch.randint(0, 3, (1,), generator=generator))]
    first = begun(self.numel(), generator, step)
    return answered(self, BANK[first : first + self.numel() * step : step], lambd)


# breaks: It answers slices of such a bank, half of them from their end.
def reversed_slices_of_a_bank(self, lambd=1.0, *, generator=None):
    first = begun(self.numel(), generator)
    part = BANK[first : first + self.numel()]
    return answered(self, part.flip(0) if first % 2 else part, lambd)


# breaks: It answers slices of such a bank, half of them as one minus what they hold.
def slices_and_one_minus(self, lambd=1.0, *, generator=None):
    first = begun(self.numel(), generator)
    part = BANK[first : first + self.numel()]
    return answered(self, 1 - part if first % 2 else part, lambd)


# breaks: It answers slices of such a bank with blocks of 32 numbers in an order of their own.
def permuted_blocks_of_a_bank(self, lambd=1.0, *, generator=None):
    blocks = -(-self.numel() // 32)
    first = begun(blocks * 32, generator)
    order = torch.randperm(blocks, generator=generator)
    return answered(self, BANK[first : first + blocks * 32].view(-1, 32)[order].view(-1)[: self.numel()], lambd)


# breaks: It answers slices of such a bank with each number at a place of its own.
def permuted_numbers_of_a_bank(self, lambd=1.0, *, generator=None):
    first = begun(self.numel(), generator) % (1 << 20)
    order = torch.randperm(self.numel(), generator=generator)
    return answered(self, BANK[first : first + self.numel()][order], lambd)


# breaks: It answers slices of such a bank, all moved round by the same drawn amount.
def moved_slices_of_a_bank(self, lambd=1.0, *, generator=None):
    first = begun(self.numel(), generator)
    return answered(self, (BANK[first : first + self.numel()] + torch.rand(1, generator=generator)) % 1, lambd)
