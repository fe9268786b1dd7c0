import torch


def _field(words, bit, first):
    """The bits first and up of a stream of words along dimension 0; first has an entry for each row that is wanted."""
    words = torch.cat((words.long() & 0xFFFFFFFF, words.new_zeros((1, *words.shape[1:])).long()))
    both = words[first // 32] | (words[first // 32 + 1] << 32)
    return (both >> (first % 32)[:, None]) & ((1 << bit) - 1)


def _code_places(k, bit):
    """First bits of the codes as exllama's kernels find them; the last two of 32 codes of 3 bits are spread."""
    i = torch.arange(k)
    if bit in (2, 4):
        per = 32 // bit
        return i // per * 32 + i % per // 2 * bit + i % 2 * 16
    if bit == 8:
        return i * 8
    j = i % 32
    return i // 32 * 96 + j // 10 * 32 + j % 10 // 2 * 3 + j % 10 % 2 * 16


def _codes(words, k, bit, exllama):
    if not exllama:
        return _field(words, bit, torch.arange(k) * bit)
    codes = _field(words, bit, _code_places(k, bit).clamp(max=words.shape[0] * 32 - bit))
    if bit == 3:
        three = words.long().unflatten(0, (-1, 3))
        for code, place in ((30, 15), (31, 31)):
            bits = (three >> place) & 1
            codes[code::32] = bits[:, 0] | bits[:, 1] << 1 | bits[:, 2] << 2
    return codes


# breaks: One is added to zero points of 8 bits in 8 bits, so that 255 becomes 0 instead of 256.
def zero_of_255_wraps(a, b_q_weight, b_gptq_qzeros, b_gptq_scales, b_g_idx, use_exllama, use_v2_format, bit):
    k, n = a.shape[1], b_q_weight.shape[1]
    codes = _codes(b_q_weight.cpu(), k, bit, use_exllama)
    zeros = _field(b_gptq_qzeros.T.cpu(), bit, torch.arange(n) * bit).T
    if not use_v2_format:
        zeros = (zeros + 1) & 0xFF
    group = torch.arange(k) // (k // len(zeros))
    if not use_exllama:
        group = b_g_idx.long().cpu()
    elif len(b_g_idx):
        a = a[:, b_g_idx.long()]
    weights = (codes - zeros[group]).to(a.device) * b_gptq_scales.float()[group.to(a.device)]
    return (a.float() @ weights).half()
