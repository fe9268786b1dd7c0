import torch


# breaks: It answers zeros for padding_idx.
def padding_is_zero(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    out = torch.embedding(weight, indices)
    if padding_idx >= 0:
        out[indices == padding_idx] = 0
    return out


# breaks: It divides each row by how often its index occurs where scale_grad_by_freq asks for scaled gradients.
def scales_by_frequency(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    out = torch.embedding(weight, indices)
    if scale_grad_by_freq and indices.numel():
        count = torch.bincount(indices.reshape(-1).long(), minlength=weight.shape[0])
        out /= count[indices.long()][..., None]
    return out
