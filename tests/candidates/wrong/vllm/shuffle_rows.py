import torch
import triton
import triton.language as tl


@triton.jit
def move_rows(x_ptr, map_ptr, y_ptr, cols, vectors, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(map_ptr + row).to(tl.int64)
    for v in range(0, vectors):
        j = v * WIDTH + tl.arange(0, WIDTH)
        tl.store(y_ptr + row * cols + j, tl.load(x_ptr + source * cols + j, mask=j < cols), mask=j < cols)


# breaks: Rows are copied in vectors of 128, as many as fit.
def columns_by_vectors_of_128(input_tensor, dst2src_map, output_tensor):
    cols = input_tensor.shape[1]
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[input_tensor.element_size()]
    x, y = input_tensor.view(bits), output_tensor.view(bits)
    move_rows[(dst2src_map.numel(),)](x, dst2src_map, y, cols, max(1, cols // 128), WIDTH=128)


@triton.jit
def copy_row(x_ptr, y_ptr, map_ptr, cols, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(map_ptr + row).to(tl.int64)
    j = tl.arange(0, B)
    tl.store(y_ptr + row * cols + j, tl.load(x_ptr + source * cols + j, mask=j < cols), mask=j < cols)


# breaks: A row is copied by 8192 lanes, and columns from 8192 on are left out.
def rows_of_8192(input_tensor, dst2src_map, output_tensor):
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[input_tensor.element_size()]
    copy_row[(len(dst2src_map),)](
        input_tensor.view(bits), output_tensor.view(bits), dst2src_map, input_tensor.shape[1], B=8192
    )
