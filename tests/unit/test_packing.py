"""Packed weight formats: round trips, and the layouts as their descriptions say it, code by code."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from kgbench.baselines.packing import allspark, awq, ggml, gptq, marlin, words  # noqa: E402

pytestmark = pytest.mark.torch


def codes(shape: tuple[int, ...], bits: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, 1 << bits, shape, generator=torch.Generator().manual_seed(seed))


def field(word: int, begin: int, bits: int) -> int:
    return ((word & 0xFFFFFFFF) >> begin) & ((1 << bits) - 1)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_words_hold_the_first_code_in_the_lowest_bits(bits: int) -> None:
    given = codes((3, 64), bits)
    packed = words.pack(given, bits)
    assert packed.dtype == torch.int32
    assert torch.equal(words.unpack(packed, bits), given)
    assert field(int(packed[1, 1]), bits, bits) == int(given[1, 32 // bits + 1])


@pytest.mark.parametrize("bits", [4, 8])
def test_awq_round_trip_and_order(bits: int) -> None:
    given = codes((5, 32), bits)
    packed = awq.pack(given, bits)
    assert torch.equal(awq.unpack(packed, bits), given)
    fields = [field(int(packed[2, 0]), begin, bits) for begin in range(0, 32, bits)]
    assert fields == [int(given[2, column]) for column in awq.ORDER[bits]]


def test_awq_weights_subtract_the_group_s_zero() -> None:
    given, zeros = codes((64, 16), 4), codes((2, 16), 4, seed=2)
    scales = torch.rand(2, 16)
    weights = awq.weights(awq.pack(given), scales, awq.pack(zeros))
    assert weights[40, 3] == (given[40, 3] - zeros[1, 3]) * scales[1, 3]


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("order", [gptq.sequential, gptq.shuffled])
def test_gptq_round_trip(bits: int, order: object) -> None:
    places = order(bits)  # type: ignore[operator]
    given = codes((96, 7), bits)
    packed = gptq.pack_rows(given, bits, places)
    assert packed.shape == (3 * bits, 7)
    assert torch.equal(gptq.unpack_rows(packed, bits, places), given)
    assert sorted(bit for each in places for bit in each) == list(range(len(places) * bits))


def test_three_bits_run_across_words() -> None:
    given = torch.zeros(32, 1, dtype=torch.int64)
    given[10], given[21] = 0b101, 0b110
    first, second, third = (int(word) & 0xFFFFFFFF for word in gptq.pack_rows(given, 3)[:, 0])
    assert (first, second, third) == (0b01 << 30, 0b1 | 0b0 << 31, 0b11)


def test_shuffled_nibbles_are_even_codes_then_odd_ones() -> None:
    given = torch.arange(8)[:, None]
    assert int(gptq.pack_rows(given, 4, gptq.shuffled(4))[0, 0]) == 0x75316420


def test_shuffled_three_bits() -> None:
    """v9997775 55333111 u8886664 44222000 in the first word, the last two codes' bits on top of both halves."""
    given = torch.zeros(32, 1, dtype=torch.int64)
    given[5], given[12], given[30], given[31] = 7, 7, 0b010, 0b100
    first, second, third = (int(word) & 0xFFFFFFFF for word in gptq.pack_rows(given, 3, gptq.shuffled(3))[:, 0])
    assert (first, second, third) == (7 << 22, 7 << 3 | 1 << 15, 1 << 31)


def test_gptq_shuffle_takes_rows_in_the_order_of_the_permutation() -> None:
    given, perm = codes((64, 5), 4), torch.randperm(64, generator=torch.Generator().manual_seed(3))
    shuffled = gptq.shuffle(gptq.pack_rows(given, 4), perm, 4)
    assert torch.equal(gptq.unpack_rows(shuffled, 4, gptq.shuffled(4)), given[perm])


def test_gptq_zero_points_are_a_stream_along_the_row() -> None:
    zeros = codes((3, 64), 3)
    packed = gptq.pack_columns(zeros, 3)
    assert packed.shape == (3, 6)
    assert torch.equal(gptq.unpack_columns(packed, 3), zeros)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("order", [marlin.PLAIN, marlin.EIGHT_BIT, marlin.SPARSE])
def test_marlin_round_trip(bits: int, order: str) -> None:
    given = codes((64, 128), bits)
    packed = marlin.pack(given, bits, order)
    assert packed.shape == (4, 64 * bits)
    assert torch.equal(marlin.unpack(packed, bits, order), given)


@pytest.mark.parametrize("bits", [4, 8])
def test_marlin_tiles(bits: int) -> None:
    """Thread 13 of warp 2 in the second tile along n: rows 2, 3, 10, 11 of columns 35 and 43."""
    given = codes((32, 192), bits)
    words_of_tile = marlin.pack(given, bits).reshape(2, 3, -1)[0, 1]
    held = [int(given[row, 64 + column]) for column in (35, 43) for row in (2, 3, 10, 11)]
    order = (0, 2, 4, 6, 1, 3, 5, 7) if bits == 4 else (0, 2, 1, 3, 4, 6, 5, 7)
    begin = (4 * 13 + 2) if bits == 4 else (8 * 13 + 4)
    found = [
        field(int(word), low, bits) for word in words_of_tile[begin : begin + bits // 4] for low in range(0, 32, bits)
    ]
    assert found == [held[value] for value in order]


def test_marlin_columns() -> None:
    row = torch.arange(128)[None]
    grouped = marlin.permute_columns(row, marlin.GROUP_SCALES)
    single = marlin.permute_columns(row, marlin.SINGLE_SCALES)
    assert grouped[0, 64:74].tolist() == [64, 72, 80, 88, 96, 104, 112, 120, 65, 73]
    assert single[0, 32:42].tolist() == [32, 33, 40, 41, 48, 49, 56, 57, 34, 35]
    assert torch.equal(marlin.restore_columns(grouped, marlin.GROUP_SCALES), row)
    assert torch.equal(marlin.restore_columns(single, marlin.SINGLE_SCALES), row)


@pytest.mark.parametrize("bits", [4, 8])
def test_marlin_zero_points(bits: int) -> None:
    zeros = codes((3, 128), bits)
    packed = marlin.pack_zeros(zeros, bits)
    assert packed.shape == (3, 4 * bits)
    assert torch.equal(marlin.unpack_zeros(packed, bits), zeros)
    assert field(int(packed[1, 0]), bits, bits) == int(zeros[1, 16])


def test_sparse_metadata() -> None:
    generator = torch.Generator().manual_seed(5)
    kept = torch.rand(32, 4, 128, generator=generator).argsort(1)[:, :2].sort(1).values
    meta = marlin.pack_meta(kept)
    assert meta.shape == (4, 256)
    assert torch.equal(marlin.unpack_meta(meta), kept)
    dense = marlin.spread(torch.ones(64, 128), kept, 0)
    assert torch.equal(dense.reshape(32, 4, 128).nonzero()[:, 1].unique(), torch.arange(4))
    assert bool((dense.reshape(32, 4, 128).sum(1) == 2).all())


@pytest.mark.parametrize("n", [32, 48, 160])
def test_allspark_round_trip_and_place(n: int) -> None:
    given = codes((48, n), 8)
    packed = allspark.pack(given)
    assert packed.shape == (allspark.round_up_32(n), 48)
    assert torch.equal(allspark.unpack(packed, n), given)
    # Row 27 = 16 + 8 + 2 + 1, column 29 = 3 * 8 + 5.
    assert int(packed.reshape(-1)[5 * 4 * 48 + 64 + 16 + 12 + 2 + 1]) == int(given[27, 29])
    scales = torch.arange(n, dtype=torch.float32)[None]
    assert torch.equal(allspark.unpack_columns(allspark.pack_columns(scales), n), scales)
    assert allspark.pack_columns(scales)[0, 4 * 5 + 3] == 29


def random_block(number: int, blocks: int = 6) -> ggml.Block:
    form = ggml.FORMATS[number]
    generator = torch.Generator().manual_seed(number)
    subs = form.values // form.sub if form.sub else 0
    low = -(1 << form.scale_bits) // 2 if form.signed_scales else 0

    def integers(first: int, bits: int, width: int) -> torch.Tensor:
        return torch.randint(first, first + (1 << bits), (blocks, width), generator=generator)

    halves = torch.randn(2, blocks, generator=generator).half()
    return ggml.Block(
        d=halves[0],
        codes=integers(-128 if form.name == "Q8_0" else 0, form.code_bits, form.values),
        m=halves[1] if len(form.halves) == 2 else None,
        scales=integers(low, form.scale_bits, subs) if subs else None,
        minima=integers(0, form.scale_bits, subs) if form.minima else None,
    )


@pytest.mark.parametrize("number", sorted(ggml.FORMATS))
def test_ggml_round_trip(number: int) -> None:
    block = random_block(number)
    packed = ggml.pack(block, number)
    assert packed.shape == (6, ggml.FORMATS[number].nbytes)
    found = ggml.unpack(packed, number)
    for name in ("d", "codes", "m", "scales", "minima"):
        wanted, got = getattr(block, name), getattr(found, name)
        assert (wanted is None) == (got is None), name
        assert wanted is None or torch.equal(wanted, got), name


@pytest.mark.parametrize("number", sorted(ggml.FORMATS))
def test_every_bit_of_a_ggml_block_is_somebody_s(number: int) -> None:
    raw = torch.randint(0, 256, (4, ggml.FORMATS[number].nbytes), generator=torch.Generator().manual_seed(9))
    raw = raw.to(torch.uint8)
    ggml.set_halves(raw, number, torch.ones(4), torch.ones(4))
    assert torch.equal(ggml.pack(ggml.unpack(raw, number), number), raw)


def value_by_bytes(raw: list[int], number: int, i: int) -> float:
    """One value of a block whose d and m are 1, read byte by byte as llama.cpp describes its blocks."""
    h, j, low, b, s = i // 128, i % 128 // 32, i % 32, i // 32, i // 16
    if number in (2, 3, 6, 7, 20):
        start = 2 if number in (2, 6, 20) else 4
        begin = start + (4 if number in (6, 7) else 0)
        code = raw[begin + i % 16] >> (4 if i >= 16 else 0) & 15
        if number in (6, 7):
            code |= (raw[start + i // 8] >> i % 8 & 1) << 4
        return ggml.NONLINEAR[code] if number == 20 else code + {2: -8, 3: 1, 6: -16, 7: 1}[number]
    if number == 8:
        return raw[2 + i] - 256 if raw[2 + i] >= 128 else raw[2 + i]
    if number == 10:
        return (raw[s] & 15) * (raw[16 + 32 * h + low] >> 2 * j & 3) - (raw[s] >> 4)
    if number == 11:
        code = (raw[32 + 32 * h + low] >> 2 * j & 3) - (0 if raw[low] >> (4 * h + j) & 1 else 4)
        nibble = raw[96 + s] & 15 if s < 8 else raw[96 + s - 8] >> 4
        return ((nibble | (raw[104 + s % 4] >> 2 * (s // 4) & 3) << 4) - 32) * code
    if number in (12, 13):
        scale, minimum = raw[4 + b] & 63, raw[8 + b] & 63
        if b >= 4:
            scale = raw[8 + b] & 15 | raw[b] >> 6 << 4
            minimum = raw[8 + b] >> 4 | raw[4 + b] >> 6 << 4
        qs = 16 if number == 12 else 48
        code = raw[qs + 32 * (b // 2) + low] >> 4 * (b % 2) & 15
        if number == 13:
            code |= (raw[16 + low] >> b & 1) << 4
        return scale * code - minimum
    if number == 14:
        code = raw[64 * h + 32 * (j % 2) + low] >> 4 * (j // 2) & 15 | (raw[128 + 32 * h + low] >> 2 * j & 3) << 4
        scale = raw[192 + s] - 256 if raw[192 + s] >= 128 else raw[192 + s]
        return scale * (code - 32)
    scale = raw[4 + b // 2] >> 4 * (b % 2) & 15 | (raw[2 + b // 4] >> 2 * (b % 4) & 3) << 4
    return (scale - 32) * ggml.NONLINEAR[raw[8 + 16 * b + i % 16] >> (4 if low >= 16 else 0) & 15]


@pytest.mark.parametrize("number", sorted(ggml.FORMATS))
def test_ggml_values_byte_by_byte(number: int) -> None:
    form = ggml.FORMATS[number]
    raw = torch.randint(0, 256, (2, form.nbytes), generator=torch.Generator().manual_seed(number)).to(torch.uint8)
    ggml.set_halves(raw, number, torch.ones(2), torch.ones(2))
    found = ggml.dequantize(raw.reshape(1, -1), number)
    wanted = [value_by_bytes(block, number, i) for block in raw.tolist() for i in range(form.values)]
    assert found.shape == (1, 2 * form.values)
    assert found[0].tolist() == wanted
