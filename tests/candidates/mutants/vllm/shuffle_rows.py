import torch


# breaks: It takes the map for the places that rows go to.
def scatters(input_tensor, dst2src_map, output_tensor):
    rows, count = dst2src_map.long(), len(input_tensor)
    output_tensor.copy_(input_tensor[torch.arange(len(rows), device=rows.device) % count])
    fits = rows < len(output_tensor)
    source = torch.arange(len(rows), device=rows.device) % count
    output_tensor[rows[fits]] = input_tensor[source[fits]]


# breaks: It takes every row through float16.
def through_float16(input_tensor, dst2src_map, output_tensor):
    output_tensor.copy_(input_tensor.half()[dst2src_map.long()])
