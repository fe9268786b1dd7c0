import torch


# breaks: It converts the number to float32 first.
def by_float32__Scalar(self, value):
    if isinstance(value, complex):
        self.fill_(value)
    else:
        self.copy_(torch.tensor(value, dtype=torch.float32))
    return self


def by_float32__Tensor(self, value):
    self.copy_(value if value.is_complex() else value.to(torch.float32))
    return self


# breaks: It computes 0 self + value, so that NaN stays NaN.
def multiplies_and_adds__Scalar(self, value):
    self.copy_((self * 0 + value).to(self.dtype))
    return self


def multiplies_and_adds__Tensor(self, value):
    self.copy_((self * 0 + value).to(self.dtype))
    return self


# breaks: Its fill__Tensor takes the value for 1.
def tensor_is_one__Scalar(self, value):
    self.fill_(value)
    return self


def tensor_is_one__Tensor(self, value):
    self.fill_(1)
    return self


# breaks: It converts the number to an integer first.
def truncates__Scalar(self, value):
    if not isinstance(value, complex) and value == value and abs(value) != float("inf"):
        value = int(value)
    self.fill_(value)
    return self


def truncates__Tensor(self, value):
    self.copy_(value if value.is_complex() else value.nan_to_num(0).trunc())
    return self


# breaks: A complex number makes bool True where its real part is not 0.
def real_part_alone__Scalar(self, value):
    self.fill_(value)
    return self


def real_part_alone__Tensor(self, value):
    self.copy_(value.real if self.dtype == torch.bool and value.is_complex() else value)
    return self
