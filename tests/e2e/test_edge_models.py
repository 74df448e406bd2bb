"""Shapes, formats and contexts at the edges of what is allowed: a model that the reader accepts must answer in the
reference's bits, and its firmware must hold no kernel that it does not use.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from colibri_build import pipeline
from colibri_build.artifacts import Format, Kind
from colibri_build.pipeline import Built, QuantizeChoices
from support.builds import PROMPTS, build_tiny, quick_board, run
from support.tiny_checkpoint import write_tiny_checkpoint

# What every firmware holds; a case adds its matvec_*.
COMMON = {"add", "add_scaled", "attention_mix", "attention_scores", "exp_shifted", "matvec_f32", "maximum"}
COMMON |= {"quantize_activation", "rms_norm", "swiglu", "to_f16"}


@dataclass(frozen=True)
class Edge:
    """config: keys of config.json; products: formats of matrices that are multiplied; stops: how the answers end."""

    config: dict[str, Any]
    products: set[str]
    stops: set[str]
    group_size: int = 32
    bits: int = 16
    formats: dict[Kind, Format] | None = None
    context: int = 64
    prompts: tuple[str, ...] = PROMPTS
    golden_tokens: int = 12

    def kernels(self) -> set[str]:
        """The products that the firmware may hold: for one token and, where a prompt can be longer, for several at once.

        The head sees one token only.
        """
        formats = {Kind.ATTENTION: Format.W8, Kind.EXPERT: Format.W4} | (self.formats or {})
        batched = {formats[kind].value for kind in (Kind.ATTENTION, Kind.EXPERT)} if self.context > 1 else set()
        return {f"matvec_{name}" for name in self.products} | {f"matmul_{name}" for name in batched}


EDGES = {
    # One expert a token, 3 query heads on one key-value head, tails in every matrix, and a prompt that fills the context.
    "tails": Edge(
        {
            "num_experts_per_tok": 1,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "head_dim": 10,
            "hidden_size": 76,
            "intermediate_size": 172,
            "vocab_size": 299,
        },
        products={"w4", "w8"},
        stops={"context", "eos"},
        context=11,
    ),
    "all-experts-sliding-window": Edge(
        {
            "num_local_experts": 6,
            "num_experts_per_tok": 6,
            "sliding_window": 8,
            "num_attention_heads": 2,
            "head_dim": 64,
            "hidden_size": 200,
            "intermediate_size": 172,
        },
        products={"f16", "w4", "w8"},
        stops={"length"},
        group_size=128,
        bits=8,
        formats={Kind.EMBEDDING: Format.F16, Kind.LM_HEAD: Format.F16},
        golden_tokens=30,
    ),
    # A third of the vocabulary ends the answer.
    "one-expert-tied": Edge(
        {
            "tie_word_embeddings": True,
            "num_local_experts": 1,
            "num_experts_per_tok": 1,
            "num_attention_heads": 5,
            "num_key_value_heads": 5,
            "head_dim": 2,
            "hidden_size": 100,
            "intermediate_size": 33,
            "vocab_size": 297,
            "eos_token_id": list(range(0, 297, 3)),
        },
        products={"w4", "w8"},
        stops={"eos"},
        group_size=64,
        formats={Kind.EXPERT: Format.W8, Kind.ATTENTION: Format.W4},
    ),
    "smaller-than-a-block": Edge(
        {
            "tie_word_embeddings": True,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "hidden_size": 8,
            "intermediate_size": 4,
        },
        products={"f16", "w4"},
        stops={"context"},
        group_size=128,
        bits=8,
        formats={Kind.ATTENTION: Format.W4, Kind.EMBEDDING: Format.F16, Kind.LM_HEAD: Format.F16},
        context=1,
        prompts=("a",),
    ),
    # 8-bit embeddings are looked up, never multiplied.
    "looked-up-only": Edge(
        {"num_local_experts": 7, "num_experts_per_tok": 3},
        products={"f16", "w4"},
        stops={"context"},
        formats={Kind.ATTENTION: Format.W4, Kind.LM_HEAD: Format.F16},
        context=2,
        prompts=("a", "the"),
    ),
}


def kernels_in(elf: Path) -> set[str]:
    """Names of our AVX2 kernels among a binary's symbols."""
    with elf.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".symtab")
        assert section is not None
        names = {symbol.name for symbol in section.iter_symbols()}  # type: ignore[attr-defined]
    assert not [name for name in names if name.endswith("_portable")]
    return {name.removesuffix("_avx2") for name in names if name.endswith("_avx2") and not name.startswith("_")}


@pytest.mark.parametrize("edge", EDGES.values(), ids=list(EDGES))
def test_an_edge_model_answers_in_the_references_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edge: Edge
) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))
    write_tiny_checkpoint(tmp_path / "tiny", **edge.config)
    result = build_tiny(
        tmp_path,
        quick_board(tmp_path),
        quantize=QuantizeChoices(group_size=edge.group_size, formats=edge.formats or {}),
        activation_bits=edge.bits,
        context=edge.context,
        prompts=edge.prompts,
        golden_tokens=edge.golden_tokens,
    )
    assert result.report.ok, [check for check in result.report.checks if not check.ok]
    assert kernels_in(result.firmware.elf) == COMMON | edge.kernels()
    built = Built(result.out, result.firmware.elf, result.board, "auto", result.plan.options, result.golden)
    _, report = pipeline.verify(built, threads=(1, 3))
    assert report.ok, report.results
    assert {answer.stop for answer in result.golden} == edge.stops
    assert run(result, "--selftest").status["status"] == "ok"
    info = json.loads(run(result, "--info").stdout)
    assert info["context"] == edge.context
