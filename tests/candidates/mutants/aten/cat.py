import torch


# breaks: It answers in the first tensor's dtype.
# outcome: wrong dtype
def dtype_of_first(tensors, dim=0):
    return torch.cat([each.to(tensors[0].dtype) for each in tensors], dim)


# breaks: It takes no more than eight tensors.
# outcome: wrong shape
def eight_tensors(tensors, dim=0):
    return torch.cat(tensors[:8], dim)


# breaks: It returns the tensor itself where there is only one.
# outcome: rejected
def one_tensor_itself(tensors, dim=0):
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim)
