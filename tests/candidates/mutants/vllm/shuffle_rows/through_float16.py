# outcome: wrong value
# breaks: It takes every row through float16.


def shuffle_rows(input_tensor, dst2src_map, output_tensor):
    output_tensor.copy_(input_tensor.half()[dst2src_map.long()])
