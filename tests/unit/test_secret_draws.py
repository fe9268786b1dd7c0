"""Numbers that a candidate cannot tell beforehand, from a short seed or from those that it was given."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.harness.verdict.secret_draws import SecretGenerator, renewed  # noqa: E402

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")


def drawn(generator: torch.Generator) -> torch.Tensor:
    return torch.randint(1 << 31, (2000,), generator=generator)


def test_the_same_key_gives_the_same_numbers_and_another_others() -> None:
    assert torch.equal(drawn(SecretGenerator(CPU, b"key")), drawn(SecretGenerator(CPU, b"key")))
    assert not torch.equal(drawn(SecretGenerator(CPU, b"key")), drawn(SecretGenerator(CPU, b"kez")))


def test_no_seed_of_32_bits_has_the_state() -> None:
    """Every state that torch makes of a seed follows from its first word; this one's words do not."""
    words = SecretGenerator(CPU, b"key").get_state().view(torch.int64)[3:627].tolist()
    seeded = torch.Generator().manual_seed(words[0]).get_state().view(torch.int64)[3:627].tolist()
    assert seeded[0] == words[0]
    assert sum(a == b for a, b in zip(seeded[1:], words[1:], strict=True)) == 0
    assert len(set(words)) == 624
    assert all(0 <= word < 1 << 32 for word in words)


def test_what_it_gave_does_not_go_on_after_it_is_renewed() -> None:
    generator = SecretGenerator(CPU, b"key")
    state = generator.get_state()
    follower = torch.Generator()
    follower.set_state(state)
    assert torch.equal(drawn(generator), drawn(follower))
    assert not torch.equal(drawn(renewed(generator)), drawn(follower))


def test_its_numbers_are_evenly_distributed() -> None:
    values = torch.rand(100_000, generator=SecretGenerator(CPU, b"key"), dtype=torch.float64)
    assert abs(float(values.mean()) - 0.5) < 0.01
    assert abs(float(values.var()) - 1 / 12) < 0.005


def test_a_generator_without_a_key_is_left_alone() -> None:
    generator = torch.Generator().manual_seed(5)
    state = generator.get_state()
    assert torch.equal(renewed(generator).get_state(), state)
