"""A model that overflows at run time must say so and where, on the desk as on the board, instead of talking nonsense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colibri_build.artifacts import Format, Kind
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.pack.reader import load_quantized
from colibri_build.pipeline import QuantizeChoices
from colibri_build.reference.model import NotFiniteError, ReferenceModel
from support.builds import build_tiny, portable_board, run
from support.tiny_checkpoint import Tensors, write_tiny_checkpoint

# (norm that overflows, where the reference finds it, layer of the firmware's status; 2 is the output head). Norm i acts
# on input i, which token FIRST_TOKEN + i alone has.
FAULTS = [
    ("model.layers.0.input_layernorm.weight", "the key cache of layer 0", 0),
    ("model.layers.1.input_layernorm.weight", "the key cache of layer 1", 1),
    ("model.layers.1.post_attention_layernorm.weight", "the router of layer 1", 1),
    ("model.norm.weight", "the logits", 2),
]
FIRST_TOKEN = 10
HARMLESS = (30, 40)


def poison(tensors: Tensors) -> None:
    """Reserve an input for each fault: no other token has it, and no layer writes it."""
    embedding = tensors["model.embed_tokens.weight"]
    embedding[:, : len(FAULTS)] = 0
    for name, values in tensors.items():
        if name.endswith(("o_proj.weight", "w2.weight")):
            values[: len(FAULTS), :] = 0
    for i, (norm, _, _) in enumerate(FAULTS):
        tensors[norm][i] = 3e38
        embedding[FIRST_TOKEN + i] = 0
        embedding[FIRST_TOKEN + i, i] = 100


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("board", ["x86-64-v3", "portable", "cortex-a53"])
def test_overflow_ends_the_run_and_names_the_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str) -> None:
    monkeypatch.setenv("COLIBRI_CACHE", str(tmp_path / "cache"))
    write_tiny_checkpoint(tmp_path / "tiny", edit=poison)
    name = portable_board(tmp_path) if board == "portable" else board
    quantize = QuantizeChoices(group_size=32, formats={Kind.EMBEDDING: Format.F16})
    result = build_tiny(tmp_path, name, quantize=quantize, prompts=("the window on",), golden_tokens=2)
    reference = ReferenceModel(load_quantized(result.folder, read_tokenizer_bytes))
    for token, (_, where, layer) in enumerate(FAULTS, FIRST_TOKEN):
        reference.reset()
        for harmless in HARMLESS:
            logits = reference.step(harmless).logits
            assert logits is not None
            assert np.all(np.isfinite(logits))
        with pytest.raises(NotFiniteError, match=f"in {where} are not finite"):
            reference.step(token)
        done = run(result, "--tokens", ",".join(map(str, (*HARMLESS, token))))
        assert (done.exit_code, done.status["status"], done.status["layer"]) == (5, "not_finite", layer)
        assert f"at position {len(HARMLESS)};" in done.status["message"]
    # Computed together, the later token's fault would come first: in layer 0, while its neighbour's is in layer 1.
    both = (*HARMLESS, FIRST_TOKEN + 1, FIRST_TOKEN)
    done = run(result, "--tokens", ",".join(map(str, both)))
    assert (done.status["status"], done.status["layer"]) == ("not_finite", 1)
    assert f"at position {len(HARMLESS)};" in done.status["message"]
