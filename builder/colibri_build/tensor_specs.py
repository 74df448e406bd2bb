"""Which tensors a model of a configuration has: names, shapes and order (pack/FORMAT.md).

Base module: the reader, the quantizer and the layout of the model folder list the same tensors.
"""

from __future__ import annotations

from collections.abc import Iterator

from colibri_build.artifacts import Kind, ModelConfig, QkNorm, TensorSpec

FFN_PARTS = ("gate", "up", "down")
# Fields whose tensors are of kind BIAS.
_WITH_BIASES = "layer_norm attention_sinks qkv_bias o_bias router_bias selection_bias expert_bias head_bias".split()


def _ffn_specs(prefix: str, kind: Kind, dim: int, hidden_dim: int) -> tuple[TensorSpec, ...]:
    """Gate, up and down projection."""
    shapes = {"gate": (hidden_dim, dim), "up": (hidden_dim, dim), "down": (dim, hidden_dim)}
    return tuple(TensorSpec(f"{prefix}.{part}", kind, *shapes[part]) for part in FFN_PARTS)


def _vector(name: str, kind: Kind, size: int) -> TensorSpec:
    return TensorSpec(name, kind, 1, size)


def expert_specs(config: ModelConfig, layer: int, expert: int) -> tuple[TensorSpec, ...]:
    """Gate, up and down projection of one expert, then their biases, in file order."""
    specs = _ffn_specs(f"layers.{layer}.experts.{expert}", Kind.EXPERT, config.dim, config.hidden_dim)
    biases = tuple(_vector(f"{spec.name}_bias", Kind.BIAS, spec.rows) for spec in specs)
    return (*specs, *biases) if config.expert_bias else specs


def _norm_specs(config: ModelConfig, name: str) -> Iterator[TensorSpec]:
    """A norm of the residual stream."""
    yield _vector(name, Kind.NORM, config.dim)
    if config.layer_norm:
        yield _vector(f"{name}_bias", Kind.BIAS, config.dim)


def attention_specs(config: ModelConfig, layer: int) -> Iterator[TensorSpec]:
    """Norm, projections and their vectors of one layer, in file order."""
    prefix, dim, q_dim, k_dim, v_dim = f"layers.{layer}", config.dim, config.q_dim, config.k_dim, config.v_dim
    yield from _norm_specs(config, f"{prefix}.attn_norm")
    if config.kv_rank:
        yield from _latent_specs(config, prefix)
    else:
        yield TensorSpec(f"{prefix}.q", Kind.ATTENTION, q_dim, dim)
        yield TensorSpec(f"{prefix}.k", Kind.ATTENTION, k_dim, dim)
        yield TensorSpec(f"{prefix}.v", Kind.ATTENTION, v_dim, dim)
    yield TensorSpec(f"{prefix}.o", Kind.ATTENTION, dim, config.out_dim)
    if config.qkv_bias:
        for name, size in (("q", q_dim), ("k", k_dim), ("v", v_dim)):
            yield _vector(f"{prefix}.{name}_bias", Kind.BIAS, size)
    if config.o_bias:
        yield _vector(f"{prefix}.o_bias", Kind.BIAS, dim)
    if config.qk_norm is not QkNorm.NONE:
        whole = config.qk_norm is QkNorm.WHOLE
        yield _vector(f"{prefix}.q_norm", Kind.NORM, q_dim if whole else config.head_dim)
        yield _vector(f"{prefix}.k_norm", Kind.NORM, k_dim if whole else config.head_dim)
    if config.attention_sinks:
        yield _vector(f"{prefix}.sinks", Kind.BIAS, config.n_heads)


def _latent_specs(config: ModelConfig, prefix: str) -> Iterator[TensorSpec]:
    """Multi-head latent attention: q_a and kv_a go down to the latent vectors, q, k and v up from them.

    A head's first rotary_dim elements turn; of the keys these come from k_rope, and are the same for all heads.
    """
    if config.q_rank:
        yield TensorSpec(f"{prefix}.q_a", Kind.ATTENTION, config.q_rank, config.dim)
        yield _vector(f"{prefix}.q_a_norm", Kind.NORM, config.q_rank)
    yield TensorSpec(f"{prefix}.q", Kind.ATTENTION, config.q_dim, config.q_rank or config.dim)
    yield TensorSpec(f"{prefix}.kv_a", Kind.ATTENTION, config.kv_rank, config.dim)
    yield _vector(f"{prefix}.kv_a_norm", Kind.NORM, config.kv_rank)
    yield TensorSpec(f"{prefix}.k_rope", Kind.ATTENTION, config.rotary_dim, config.dim)
    still = config.n_heads * (config.head_dim - config.rotary_dim)
    yield TensorSpec(f"{prefix}.k", Kind.ATTENTION, still, config.kv_rank)
    yield TensorSpec(f"{prefix}.v", Kind.ATTENTION, config.v_dim, config.kv_rank)


def layer_specs(config: ModelConfig, layer: int) -> Iterator[TensorSpec]:
    """Every tensor of one layer in dense.bin, in file order: all but its routing and its experts."""
    prefix = f"layers.{layer}"
    yield from attention_specs(config, layer)
    yield from _norm_specs(config, f"{prefix}.ffn_norm")
    if config.is_dense(layer):
        yield from _ffn_specs(f"{prefix}.dense", Kind.DENSE, config.dim, config.dense_hidden_dim)
    elif config.shared_hidden_dim:
        yield from _ffn_specs(f"{prefix}.shared", Kind.DENSE, config.dim, config.shared_hidden_dim)


def routing_specs(config: ModelConfig, layer: int) -> Iterator[TensorSpec]:
    """Every tensor of one layer in routing.bin, in file order; none for a dense layer."""
    if config.is_dense(layer):
        return
    prefix = f"layers.{layer}"
    yield TensorSpec(f"{prefix}.router", Kind.ROUTER, config.n_experts, config.dim)
    if config.router_bias:
        yield _vector(f"{prefix}.router_bias", Kind.BIAS, config.n_experts)
    if config.selection_bias:
        yield _vector(f"{prefix}.selection_bias", Kind.BIAS, config.n_experts)
    if config.shared_gate:
        yield TensorSpec(f"{prefix}.shared_gate", Kind.ROUTER, 1, config.dim)


def dense_specs(config: ModelConfig) -> Iterator[TensorSpec]:
    """Every tensor of dense.bin, in file order. `lm_head` is absent where it is tied to `embedding`."""
    yield TensorSpec("embedding", Kind.EMBEDDING, config.vocab_size, config.dim)
    for layer in range(config.n_layers):
        yield from layer_specs(config, layer)
    yield from _norm_specs(config, "final_norm")
    if not config.tied_embeddings:
        yield TensorSpec("lm_head", Kind.LM_HEAD, config.vocab_size, config.dim)
    if config.head_bias:
        yield _vector("lm_head_bias", Kind.BIAS, config.vocab_size)


def layer_tensor_specs(config: ModelConfig, layer: int) -> Iterator[TensorSpec]:
    """Every tensor of one layer, whatever file it is in."""
    yield from layer_specs(config, layer)
    yield from routing_specs(config, layer)
    if not config.is_dense(layer):
        for expert in range(config.n_experts):
            yield from expert_specs(config, layer, expert)


def tensor_specs(config: ModelConfig) -> Iterator[TensorSpec]:
    """Every tensor of a model: dense.bin, then each layer's routing and experts."""
    yield from dense_specs(config)
    for layer in config.expert_layers:
        yield from routing_specs(config, layer)
        for expert in range(config.n_experts):
            yield from expert_specs(config, layer, expert)


def kinds_of(config: ModelConfig) -> tuple[Kind, ...]:
    """The kinds of tensor that a model of this configuration may have a format for, in the order of `Kind`.

    Embedding, attention, expert, router, norm and lm_head always have one, dense and bias only where there are any.
    """
    optional = {
        Kind.DENSE: bool(config.dense_layers or config.shared_hidden_dim),
        Kind.BIAS: any(getattr(config, name) for name in _WITH_BIASES),
    }
    return tuple(kind for kind in Kind if optional.get(kind, True))
