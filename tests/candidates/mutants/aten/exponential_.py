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
