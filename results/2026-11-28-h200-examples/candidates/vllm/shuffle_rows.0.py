"""shuffle_rows: row i of the output is row dst2src_map[i] of the input, copied in the widest words that fit."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy_rows(
    from_ptr, to_ptr, map_ptr, rows, n, blocks, WORD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """A tile of ROWS rows and COLUMNS of their n words of WORD bytes."""
    word = tl.int32 if WORD == 4 else tl.int16 if WORD == 2 else tl.int8
    from_ptr = from_ptr.to(tl.pointer_type(word))
    to_ptr = to_ptr.to(tl.pointer_type(word))
    row = tl.program_id(0) // blocks * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    source = tl.load(map_ptr + row, mask=row < rows, other=0).to(tl.int64)
    inside = (row < rows)[:, None] & (column < n)[None, :]
    x = tl.load(from_ptr + (source * n)[:, None] + column[None, :], mask=inside, other=0)
    tl.store(to_ptr + (row.to(tl.int64) * n)[:, None] + column[None, :], x, mask=inside)


def shuffle_rows(input_tensor, dst2src_map, output_tensor):
    """input_tensor: (any, n), output_tensor: (rows, n), dense and alike in dtype; dst2src_map: (rows,) int32."""
    rows, n = output_tensor.shape
    if rows == 0 or n == 0:
        return
    row_bytes = n * input_tensor.element_size()
    bits = row_bytes | input_tensor.data_ptr() | output_tensor.data_ptr()
    word = 4 if bits % 4 == 0 else 2 if bits % 2 == 0 else 1
    words = row_bytes // word
    # Whole blocks where there is a length that gives them.
    columns = next((block for block in (1024, 512, 256, 128) if words % block == 0), None)
    columns = columns or min(1024, triton.next_power_of_2(words))
    per_program = max(1, 4096 // columns)
    blocks = triton.cdiv(words, columns)
    _copy_rows[(triton.cdiv(rows, per_program) * blocks,)](
        input_tensor.view(torch.uint8), output_tensor.view(torch.uint8), dst2src_map, rows, words, blocks,
        WORD=word, ROWS=per_program, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
