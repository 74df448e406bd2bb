"""A compact Mixtral for training on a CPU, with the weight names that are published for Mixtral.

It computes what transformers' MixtralForCausalLM computes, from the same names; it is faster at this
size, for it sorts the tokens by expert once and uses one matrix for all heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The sizes of the model."""

    vocab: int
    dim: int = 128
    hidden: int = 160
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    experts: int = 8
    top_k: int = 2
    context: int = 256
    rope_theta: float = 10_000.0
    eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        """Size of one attention head."""
        return self.dim // self.heads


class RMSNorm(nn.Module):
    """Root-mean-square norm with a weight."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotary(length: int, shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosines and sines for the positions, each as [length, head_dim]."""
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    angles = torch.outer(torch.arange(length, dtype=torch.float32), shape.rope_theta**-half)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs (i, i + head_dim / 2) by the angle of the position."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class Attention(nn.Module):
    """Causal attention with grouped key and value heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        kv = shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.dim, shape.dim, bias=False)
        self.k_proj = nn.Linear(shape.dim, kv, bias=False)
        self.v_proj = nn.Linear(shape.dim, kv, bias=False)
        self.o_proj = nn.Linear(shape.dim, shape.dim, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Attend to the earlier tokens of each row."""
        b, t, _ = x.shape
        s = self.shape
        q = self.q_proj(x).view(b, t, s.heads, s.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, t, s.kv_heads, s.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, t, s.kv_heads, s.head_dim).transpose(1, 2)
        group = s.heads // s.kv_heads
        k = rotate(k, cos, sin).repeat_interleave(group, dim=1)
        v = v.repeat_interleave(group, dim=1)
        out = functional.scaled_dot_product_attention(rotate(q, cos, sin), k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(b, t, s.dim))


class Expert(nn.Module):
    """Gated feed-forward network w2(silu(w1 x) * w3 x)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the expert to rows."""
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


@dataclass
class Routing:
    """What a router did: probabilities [tokens, experts] and the chosen experts [tokens, k]."""

    probs: Tensor
    chosen: Tensor


class SparseMoe(nn.Module):
    """Router with softmax over all experts, the best k of them renormalized."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.top_k = shape.top_k
        self.gate = nn.Linear(shape.dim, shape.experts, bias=False)
        self.experts = nn.ModuleList(Expert(shape.dim, shape.hidden) for _ in range(shape.experts))

    def forward(self, x: Tensor) -> tuple[Tensor, Routing]:
        """Send each row to its experts and add up what they return."""
        probs = self.gate(x).softmax(dim=-1)
        weight, chosen = probs.topk(self.top_k, dim=-1)
        weight = weight / weight.sum(dim=-1, keepdim=True)
        flat = chosen.flatten()
        order = flat.argsort(stable=True)
        rows = order // self.top_k
        counts = torch.bincount(flat, minlength=len(self.experts)).tolist()
        parts = x[rows].split(counts)
        out = torch.cat([expert(part) for expert, part in zip(self.experts, parts, strict=True)])
        out = out * weight.flatten()[order].unsqueeze(1)
        return torch.zeros_like(x).index_add(0, rows, out), Routing(probs, chosen)


class Layer(nn.Module):
    """Attention and experts, each after a norm and with a residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(shape)
        self.block_sparse_moe = SparseMoe(shape)
        self.input_layernorm = RMSNorm(shape.dim, shape.eps)
        self.post_attention_layernorm = RMSNorm(shape.dim, shape.eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Routing]:
        """Run one layer."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        out, routing = self.block_sparse_moe(self.post_attention_layernorm(x).flatten(0, 1))
        return x + out.view_as(x), routing


class Trunk(nn.Module):
    """Embedding, layers, final norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.dim)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.dim, shape.eps)


class Mixtral(nn.Module):
    """The whole model; its state dict has the published names."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Trunk(shape)
        self.lm_head = nn.Linear(shape.dim, shape.vocab, bias=False)
        cos, sin = rotary(shape.context, shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self._init_weights()

    def _init_weights(self) -> None:
        deep = (2 * self.shape.layers) ** -0.5
        for name, weight in self.named_parameters():
            if "norm" in name:
                continue
            std = 0.06 if "embed" not in name else 0.3
            if name.endswith(("o_proj.weight", "w2.weight")):
                std *= deep
            nn.init.normal_(weight, std=std)

    def forward(self, ids: Tensor) -> tuple[Tensor, list[Routing]]:
        """Return the hidden states after the final norm, and the routing of each layer."""
        x = self.model.embed_tokens(ids)
        length = ids.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        routings = []
        for layer in self.model.layers:
            x, routing = layer(x, cos, sin)
            routings.append(routing)
        return self.model.norm(x), routings


def balance_loss(routings: list[Routing], real: Tensor) -> Tensor:
    """Mixtral's load-balancing loss over the real (not padded) tokens; 1 is perfect balance."""
    total = torch.zeros(())
    for routing in routings:
        probs = routing.probs[real]
        experts = probs.shape[1]
        used = (
            functional.one_hot(routing.chosen[real], experts).sum(dim=1).float().mean(dim=0) / routing.chosen.shape[1]
        )
        total = total + experts * (used * probs.mean(dim=0)).sum()
    return total / len(routings)
