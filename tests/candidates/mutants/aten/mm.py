import torch


# breaks: It rounds the running sum to bfloat16 after every 16 products.
def bfloat16_sums(self, mat2):
    total = torch.zeros((self.shape[0], mat2.shape[1]), dtype=torch.bfloat16, device=self.device)
    for first in range(0, self.shape[1], 16):
        total += (self[:, first : first + 16].double() @ mat2[first : first + 16].double()).bfloat16()
    return total.to(self.dtype)


# breaks: It takes a NaN or an infinity for 0.
def drops_nan(self, mat2):
    return (self.double().nan_to_num(0.0, 0.0, 0.0) @ mat2.double()).to(self.dtype).contiguous()


# breaks: It sums over the first half of k.
def first_half_of_depth(self, mat2):
    k = (self.shape[1] + 1) // 2
    return (self[:, :k].double() @ mat2[:k].double()).to(self.dtype).contiguous()


def _split(values):
    high = values.half().float()
    finite = torch.where(torch.isfinite(high), high, 0)
    return high, finite, ((values - high).nan_to_num(0, 0, 0) * 2048).half().float()


# breaks: Splits float32 into two float16, which is precise enough, but holds no number beyond 65504.
def float32_as_two_halves(self, mat2):
    if self.dtype != torch.float32:
        return torch.mm(self, mat2)
    (a, finite_a, c), (b, finite_b, d) = _split(self), _split(mat2)
    return torch.mm(a, b) + (torch.mm(finite_a, d) + torch.mm(c, finite_b)) / 2048


# breaks: It answers in float32 always.
# outcome: wrong dtype
def float32_result(self, mat2):
    return (self.double() @ mat2.double()).float().contiguous()


# breaks: It forgets what is left of k after tiles of 16.
def last_depth_tile(self, mat2):
    k = self.shape[1] // 16 * 16
    return (self[:, :k].double() @ mat2[:k].double()).to(self.dtype).contiguous()


# breaks: It forgets the rows that do not fill a tile of 16.
def last_row_tile(self, mat2):
    out = (self.double() @ mat2.double()).to(self.dtype)
    out[self.shape[0] // 16 * 16 :] = 0
    return out.contiguous()


# breaks: It multiplies with the first operand's rows and columns mixed up.
def transposed_operand(self, mat2):
    return (self.t().reshape(self.shape).double() @ mat2.double()).to(self.dtype).contiguous()


# breaks: It answers the transposed product.
# outcome: wrong shape
def transposed_result(self, mat2):
    return (self.double() @ mat2.double()).to(self.dtype).t().contiguous()


# breaks: It clears an operand when it is done.
# outcome: input changed
def zeroes_operand(self, mat2):
    out = (self.double() @ mat2.double()).to(self.dtype)
    mat2.zero_()
    return out
