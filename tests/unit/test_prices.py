"""What tokens cost, with figures worked out by hand; short names for models; the user's files over the package's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.core.errors import UsageError
from kgbench.core.paths import problems_dir
from kgbench.llm.aliases import aliases, resolve
from kgbench.llm.conversation import Usage
from kgbench.llm.prices import FREE, Price, ceiling_usd, price_of, usd
from kgbench.models.provider import ModelError, provider_names, provider_of
from kgbench.problem.registry import load_problem

PRICE = Price(input=4.0, output=20.0, cache_read=0.2, cache_write=5.0, batch=0.5)
USAGE = Usage(input_tokens=1_000, cache_read_tokens=10_000, cache_write_tokens=2_000, output_tokens=3_000)


@pytest.fixture(autouse=True)
def no_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    for name in ("KGBENCH_ALIASES", "KGBENCH_PRICES"):
        monkeypatch.delenv(name, raising=False)


def test_a_reply_costs_what_its_four_kinds_of_tokens_cost() -> None:
    # 1000 × $4 + 10,000 × $0.20 + 2000 × $5 + 3000 × $20, per million
    assert usd(PRICE, USAGE, batch=False) == pytest.approx(0.004 + 0.002 + 0.01 + 0.06)
    assert usd(PRICE, USAGE, batch=True) == pytest.approx(0.038)


@pytest.mark.parametrize(
    ("price", "usage"),
    [
        (None, USAGE),
        (PRICE, Usage()),
        (PRICE, Usage(input_tokens=5)),  # it was cut off: nobody knows how many it wrote
        (Price(4.0, 20.0, batch=0.5), USAGE),  # cached tokens at a price that is not in the file
        (Price(4.0, 20.0, 0.2, 5.0, 0.5, up_to_input_tokens=12_999), USAGE),
    ],
)
def test_unknown_is_none_and_never_nothing(price: Price | None, usage: Usage) -> None:
    assert usd(price, usage, batch=False) is None


def test_a_batch_at_an_unknown_discount_is_unknown() -> None:
    assert usd(Price(4.0, 20.0, 0.2, 5.0), USAGE, batch=True) is None


def test_a_provider_that_says_nothing_of_a_cache_has_none() -> None:
    assert usd(Price(2.0, 8.0), Usage(input_tokens=500_000, output_tokens=250_000), batch=False) == pytest.approx(3.0)


def test_the_longest_prompt_at_the_price_still_has_it() -> None:
    assert usd(Price(4.0, 20.0, 0.2, 5.0, 0.5, up_to_input_tokens=13_000), USAGE, batch=False) is not None


def test_the_ceiling_takes_the_input_as_written_to_the_cache() -> None:
    # 100,000 tokens in at $5, and 50 × 1000 out at $20, per million
    assert ceiling_usd(PRICE, 100_000, 1_000, 50, batch=False) == pytest.approx(0.5 + 1.0)
    assert ceiling_usd(PRICE, 100_000, 1_000, 50, batch=True) == pytest.approx(0.75)
    assert ceiling_usd(None, 100_000, 1_000, 50, batch=False) is None
    short = Price(4.0, 20.0, 0.2, 5.0, 0.5, up_to_input_tokens=1_999)
    assert ceiling_usd(short, 100_000, 1_000, 50, batch=False) is None


def test_nothing_is_paid_on_this_machine() -> None:
    assert price_of("", "anything") is FREE
    assert usd(FREE, Usage(), batch=False) == 0.0
    assert ceiling_usd(FREE, 100_000, 1_000, 50, batch=False) == 0.0


def test_the_package_knows_what_its_own_aliases_cost() -> None:
    for spec in aliases().values():
        endpoint, _, model_id = spec.partition(":")
        price = price_of(endpoint, model_id)
        assert price is not None
        assert None not in (price.input, price.output, price.cache_read, price.cache_write, price.batch)
        assert price.as_of.startswith("20")


def test_an_id_with_a_date_has_the_price_of_the_one_without() -> None:
    assert price_of("anthropic", "claude-opus-5-5-20260922") == price_of("anthropic", "claude-opus-5-5")
    assert price_of("openai", "gpt-6.2-sol-2026-11-17") == price_of("openai", "gpt-6.2-sol")
    assert price_of("anthropic", "claude-opus-9") is None
    assert price_of("elsewhere.example", "claude-opus-5-5") is None


def test_the_users_prices_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / "settings" / "kgbench" / "prices.toml"
    usual.parent.mkdir(parents=True)
    usual.write_text('as_of = 2027-01-02\n["openrouter.ai"."a/b"]\ninput = 1\noutput = 2\n')
    assert price_of("openrouter.ai", "a/b") == Price(1.0, 2.0, as_of="2027-01-02")
    assert price_of("anthropic", "claude-opus-5-5") is not None
    named = tmp_path / "named.toml"
    named.write_text('["openrouter.ai"."a/b"]\ninput = 3\noutput = 4\n')
    monkeypatch.setenv("KGBENCH_PRICES", str(named))
    assert price_of("openrouter.ai", "a/b") == Price(3.0, 4.0)


@pytest.mark.parametrize(
    "text", ['[openai."m"]\ninput = -1\n', '[openai."m"]\ninput = true\n', '[openai."m"]\nimput = 1\n', "[openai"]
)
def test_a_file_of_prices_that_is_wrong_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    monkeypatch.setenv("KGBENCH_PRICES", str(file))
    with pytest.raises(UsageError, match=r"prices\.toml") as caught:
        price_of("openai", "m")
    assert caught.value.number == "KGB537"


def test_a_file_that_was_named_has_to_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KGBENCH_ALIASES", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"none\.toml"):
        aliases()


def test_a_providers_name_wins_over_an_alias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "aliases.toml"
    file.write_text('examples = "openai:gpt-6.2-sol"\nmine = "anthropic:claude-haiku-5-5"\nclaude = "anthropic:x"\n')
    monkeypatch.setenv("KGBENCH_ALIASES", str(file))
    assert resolve("examples", provider_names()) == "examples"
    assert resolve("mine", provider_names()) == "anthropic:claude-haiku-5-5"
    assert resolve("claude", provider_names()) == "anthropic:x"
    assert resolve("gpt", provider_names()).startswith("openai:")
    with pytest.raises(UsageError, match="write anthropic:claude-sonnet-5-5"):
        resolve("claude:claude-sonnet-5-5", provider_names())


def test_results_are_stored_under_the_name_that_was_typed() -> None:
    asker = provider_of("claude")
    assert asker.model == "claude"
    assert asker.model_id == aliases()["claude"].partition(":")[2]  # type: ignore[attr-defined]
    assert provider_of("openai-compatible:http://localhost:8000#m").model == "openai-compatible:http://localhost:8000#m"


def test_any_provider_may_have_a_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "aliases.toml"
    file.write_text('mine = "exec:sh -c true"\nnull = "baseline"\nshipped = "examples:cupy"\n')
    monkeypatch.setenv("KGBENCH_ALIASES", str(file))
    assert [provider_of(name).model for name in ("mine", "null", "shipped")] == ["mine", "null", "shipped"]
    [candidate] = provider_of("null").candidates(load_problem(problems_dir() / "aten/t.yaml"))  # type: ignore[union-attr]
    assert (candidate.model, candidate.trusted) == ("null", "baseline")


def test_an_unknown_name_lists_providers_and_aliases() -> None:
    with pytest.raises(ModelError, match="no provider 'clod'") as caught:
        provider_of("clod")
    assert all(
        word in str(caught.value) for word in ("openai-compatible:URL#MODEL", "anthropic:MODEL", "claude  ", "gpt  ")
    )
