"""transformers in fp32 on dequantized weights: the judge of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import MixtralConfig, MixtralForCausalLM

from colibri_build.artifacts import ModelConfig, QuantizedModel
from colibri_build.quantize.rtn import dequantize_tensor
from support.golden import ROUTER_TIE, RouterTie

F32 = NDArray[np.float32]

_LAYER_NAMES = {
    "attn_norm": "input_layernorm.weight",
    "ffn_norm": "post_attention_layernorm.weight",
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "router": "mlp.gate.weight",
}


def _config(config: ModelConfig) -> MixtralConfig:
    return MixtralConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.dim,
        intermediate_size=config.hidden_dim,
        num_hidden_layers=config.n_layers,
        num_attention_heads=config.n_heads,
        num_key_value_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        num_local_experts=config.n_experts,
        num_experts_per_tok=config.top_k,
        rms_norm_eps=config.rms_eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        sliding_window=config.sliding_window or None,
        tie_word_embeddings=config.tied_embeddings,
        max_position_embeddings=config.max_context,
        bos_token_id=config.bos_id,
        eos_token_id=list(config.eos_ids),
        attn_implementation="eager",
    )


def _state(model: QuantizedModel) -> dict[str, torch.Tensor]:
    """Weights by the names that the model has in memory, a layer's experts fused in one tensor, gate rows before up rows."""
    config = model.config

    def load(name: str) -> torch.Tensor:
        tensor = model.tensors[name]
        values = np.ascontiguousarray(dequantize_tensor(tensor, model.group_size), np.float32)
        return torch.from_numpy(values.reshape(tensor.spec.shape))

    state = {"model.embed_tokens.weight": load("embedding"), "model.norm.weight": load("final_norm")}
    state["lm_head.weight"] = state["model.embed_tokens.weight"] if config.tied_embeddings else load("lm_head")
    for layer in range(config.n_layers):
        for ours, theirs in _LAYER_NAMES.items():
            state[f"model.layers.{layer}.{theirs}"] = load(f"layers.{layer}.{ours}")
        experts = [f"layers.{layer}.experts.{e}" for e in range(config.n_experts)]
        gate_up = [torch.cat([load(f"{e}.gate"), load(f"{e}.up")]) for e in experts]
        state[f"model.layers.{layer}.mlp.experts.gate_up_proj"] = torch.stack(gate_up)
        state[f"model.layers.{layer}.mlp.experts.down_proj"] = torch.stack([load(f"{e}.down") for e in experts])
    return state


@dataclass(frozen=True)
class Verdict:
    """A teacher-forced pass: logits [n, vocab_size], chosen experts by rank [n][n_layers], smallest margin between the
    last chosen and the first rejected router logit, and the choices whose margin is a near tie."""

    logits: F32
    routing: list[list[list[int]]]
    router_margin: float
    router_ties: list[RouterTie]


class Judge:
    """transformers' Mixtral with the dequantized weights of a quantized model."""

    def __init__(self, model: QuantizedModel) -> None:
        torch.manual_seed(0)
        self._config = model.config
        self._model = MixtralForCausalLM(_config(model.config)).float().eval()
        missing, unexpected = self._model.load_state_dict(_state(model), strict=False)
        assert not unexpected, unexpected
        assert not [name for name in missing if "inv_freq" not in name], missing
        self._router_logits: dict[int, torch.Tensor] = {}
        for index, layer in enumerate(self._model.model.layers):
            layer.mlp.gate.register_forward_hook(self._keep(index))

    def _keep(self, index: int):  # type: ignore[no-untyped-def]
        def hook(_module: object, inputs: tuple[torch.Tensor, ...], _output: object) -> None:
            weight = self._model.model.layers[index].mlp.gate.weight
            self._router_logits[index] = inputs[0].reshape(-1, weight.shape[1]) @ weight.T

        return hook

    @torch.no_grad()
    def greedy(self, ids: Sequence[int], max_tokens: int) -> list[int]:
        """Greedy tokens, end of sequence included."""
        tokens = list(ids)
        for _ in range(max_tokens):
            logits = self._model(torch.tensor([tokens])).logits[0, -1]
            tokens.append(int(torch.argmax(logits)))
            if tokens[-1] in self._config.eos_ids or len(tokens) >= self._config.max_context:
                break
        return tokens[len(ids) :]

    @torch.no_grad()
    def forward(self, ids: Sequence[int]) -> Verdict:
        """Teacher-forced pass over one sequence."""
        logits = self._model(torch.tensor([list(ids)])).logits[0].numpy().astype(np.float32)
        k = self._config.top_k
        per_layer, ties = [], []
        margin = float("inf")
        for layer in range(self._config.n_layers):
            values, order = torch.sort(self._router_logits[layer], dim=-1, descending=True, stable=True)
            per_layer.append(order[:, :k].tolist())
            if k < self._config.n_experts:
                margins = (values[:, k - 1] - values[:, k]).numpy()
                margin = min(margin, float(margins.min()))
                near = np.flatnonzero(margins < ROUTER_TIE)
                ties += [RouterTie(int(t), layer, int(order[t, k]), round(float(margins[t]), 7)) for t in near]
        routing = [[layer[t] for layer in per_layer] for t in range(len(ids))]
        return Verdict(logits, routing, margin, ties)


def versions() -> Mapping[str, str]:
    """What made the goldens."""
    import transformers

    return {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
