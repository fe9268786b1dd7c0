import triton
import triton.language as tl


@triton.jit
def copy_kernel(dst_ptr, src_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(src_ptr + i, mask=i < n)
    tl.store(dst_ptr + i, v, mask=i < n)


# breaks: Where both have the same shape they are walked side by side in memory, whatever their strides.
def same_count_is_same_order(self, src, non_blocking=False):
    if src.dtype == self.dtype and src.shape == self.shape and not src.is_complex() and src.element_size() > 1:
        n = self.numel()
        if n:
            copy_kernel[(triton.cdiv(n, 2048),)](self, src, n, BLOCK=2048)
        return self
    self[...] = src.expand(self.shape)
    return self
