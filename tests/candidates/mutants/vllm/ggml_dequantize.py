import torch

TABLE = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


BYTES = {2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 10: 84, 11: 110, 12: 144, 13: 176, 14: 210, 20: 18, 23: 136}


def nibbles(raw, run):
    """Of every run of bytes the low nibbles, then the high ones."""
    split = raw.reshape(len(raw), -1, 1, run)
    return torch.cat([split & 15, split >> 4], 2).flatten(1)


def planes(raw, bits, count):
    """(blocks, n): plane c is bits c * bits and up of every byte; (blocks, count * n)."""
    return torch.cat([raw >> bits * c & (1 << bits) - 1 for c in range(count)], 1)


def signed(raw):
    return torch.where(raw >= 128, raw - 256, raw)


def six_four_bits_of_minimum(raw):
    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = torch.cat([first & 63, (third & 15) | (first >> 6 << 4)], 1)
    return scales, torch.cat([second & 63, third >> 4], 1)


def dequantized_four_bits_of_minimum(packed, type):
    raw = packed.reshape(-1, BYTES[type])
    halves = raw.contiguous().view(torch.float16).float()
    first, second, raw = halves[:, :1], halves[:, 1:2], raw.long()
    table = torch.tensor(TABLE, device=packed.device)
    if type in (2, 20):
        codes = nibbles(raw[:, 2:], 16)
        return first * (table[codes] if type == 20 else codes - 8)
    if type == 3:
        return first * nibbles(raw[:, 4:], 16) + second
    if type in (6, 7):
        begin = 2 if type == 6 else 4
        fifth = (raw[:, begin : begin + 4, None] >> torch.arange(8, device=raw.device) & 1).flatten(1)
        codes = nibbles(raw[:, begin + 4 :], 16) | fifth << 4
        return first * (codes - 16) if type == 6 else first * codes + second
    if type == 8:
        return first * signed(raw[:, 2:])
    if type in (12, 13):
        scales, minima = six_four_bits_of_minimum(raw[:, 4:16])
        codes = nibbles(raw[:, -128:], 32)
        if type == 13:
            codes = codes | planes(raw[:, 16:48], 1, 8) << 4
        return first * scales.repeat_interleave(32, 1) * codes - second * minima.repeat_interleave(32, 1)
    if type == 23:
        high = torch.stack([raw[:, 2 + b // 4] >> 2 * (b % 4) & 3 for b in range(8)], 1)
        scales = nibbles(raw[:, 4:8], 1) | high << 4
        return first * (scales - 32).repeat_interleave(32, 1) * table[nibbles(raw[:, 8:], 16)]
    last, before = halves[:, -1:], halves[:, -2:-1]
    if type == 10:
        codes = torch.cat([planes(raw[:, 16:48], 2, 4), planes(raw[:, 48:80], 2, 4)], 1)
        scales, minima = (raw[:, :16] & 15).repeat_interleave(16, 1), (raw[:, :16] >> 4).repeat_interleave(16, 1)
        return before * scales * codes - last * minima
    if type == 11:
        codes = (
            torch.cat([planes(raw[:, 32:64], 2, 4), planes(raw[:, 64:96], 2, 4)], 1) | planes(raw[:, :32], 1, 8) << 2
        )
        scales = nibbles(raw[:, 96:104], 8) | planes(raw[:, 104:108], 2, 4) << 4
        return last * (scales - 32).repeat_interleave(16, 1) * (codes - 4)
    high = torch.cat([planes(raw[:, 128:160], 2, 4), planes(raw[:, 160:192], 2, 4)], 1)
    codes = nibbles(raw[:, :128], 64) | high << 4
    return last * signed(raw[:, 192:208]).repeat_interleave(16, 1) * (codes - 32)


# breaks: It leaves the high two bits of the last four minima of Q4_K and Q5_K.
def four_bits_of_minimum(packed, type, m, n, dtype):
    return dequantized_four_bits_of_minimum(packed, type).reshape(m, n).to(dtype or torch.float16)


# breaks: It takes the two nibbles of a byte for neighbouring values.
def neighbouring_nibbles(packed, type, m, n, dtype):
    if type not in (2, 3, 20):
        return torch.zeros(m, n, dtype=dtype or torch.float16, device=packed.device)
    blocks = packed.reshape(-1, 20 if type == 3 else 18)
    halves = blocks[:, : 4 if type == 3 else 2].contiguous().view(torch.float16).float()
    codes = torch.stack([blocks[:, -16:] & 15, blocks[:, -16:] >> 4], 2).flatten(1).float()
    values = halves[:, :1] * codes + halves[:, 1:] if type == 3 else halves[:, :1] * (codes - 8)
    return values.reshape(m, n).to(dtype or torch.float16)


def six_unsigned_bytes(raw):
    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = torch.cat([first & 63, (third & 15) | (first >> 6 << 4)], 1)
    return scales, torch.cat([second & 63, third >> 4 | second >> 6 << 4], 1)


def dequantized_unsigned_bytes(packed, type):
    raw = packed.reshape(-1, BYTES[type])
    halves = raw.contiguous().view(torch.float16).float()
    first, second, raw = halves[:, :1], halves[:, 1:2], raw.long()
    table = torch.tensor(TABLE, device=packed.device)
    if type in (2, 20):
        codes = nibbles(raw[:, 2:], 16)
        return first * (table[codes] if type == 20 else codes - 8)
    if type == 3:
        return first * nibbles(raw[:, 4:], 16) + second
    if type in (6, 7):
        begin = 2 if type == 6 else 4
        fifth = (raw[:, begin : begin + 4, None] >> torch.arange(8, device=raw.device) & 1).flatten(1)
        codes = nibbles(raw[:, begin + 4 :], 16) | fifth << 4
        return first * (codes - 16) if type == 6 else first * codes + second
    if type == 8:
        return first * raw[:, 2:]
    if type in (12, 13):
        scales, minima = six_unsigned_bytes(raw[:, 4:16])
        codes = nibbles(raw[:, -128:], 32)
        if type == 13:
            codes = codes | planes(raw[:, 16:48], 1, 8) << 4
        return first * scales.repeat_interleave(32, 1) * codes - second * minima.repeat_interleave(32, 1)
    if type == 23:
        high = torch.stack([raw[:, 2 + b // 4] >> 2 * (b % 4) & 3 for b in range(8)], 1)
        scales = nibbles(raw[:, 4:8], 1) | high << 4
        return first * (scales - 32).repeat_interleave(32, 1) * table[nibbles(raw[:, 8:], 16)]
    last, before = halves[:, -1:], halves[:, -2:-1]
    if type == 10:
        codes = torch.cat([planes(raw[:, 16:48], 2, 4), planes(raw[:, 48:80], 2, 4)], 1)
        scales, minima = (raw[:, :16] & 15).repeat_interleave(16, 1), (raw[:, :16] >> 4).repeat_interleave(16, 1)
        return before * scales * codes - last * minima
    if type == 11:
        codes = (
            torch.cat([planes(raw[:, 32:64], 2, 4), planes(raw[:, 64:96], 2, 4)], 1) | planes(raw[:, :32], 1, 8) << 2
        )
        scales = nibbles(raw[:, 96:104], 8) | planes(raw[:, 104:108], 2, 4) << 4
        return last * (scales - 32).repeat_interleave(16, 1) * (codes - 4)
    high = torch.cat([planes(raw[:, 128:160], 2, 4), planes(raw[:, 160:192], 2, 4)], 1)
    codes = nibbles(raw[:, :128], 64) | high << 4
    return last * signed(raw[:, 192:208]).repeat_interleave(16, 1) * (codes - 32)


# breaks: It takes the codes of Q8_0 for unsigned ones.
def unsigned_bytes(packed, type, m, n, dtype):
    return dequantized_unsigned_bytes(packed, type).reshape(m, n).to(dtype or torch.float16)
