"""model_config.h: every size of the model as a compile-time constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from colibri_build.artifacts import (
    BuildOptions,
    ChatForm,
    Format,
    Generation,
    GroupScore,
    Kind,
    ModelConfig,
    ModelFolder,
    QkNorm,
    Scoring,
)
from colibri_build.errors import RenderError
from colibri_build.layout import expert_layout
from colibri_build.model_constants import LATENT_EPS, attention_scale, rotary_dim
from colibri_build.render.banner import banner
from colibri_build.render.c_text import c_float
from colibri_build.render.environment import render
from colibri_build.tensor_specs import kinds_of

TEMPLATE = "model_config.h.j2"
ABI = 1  # of the generated code; colibri.h carries the runtime's
FORMAT_NAMES: Mapping[Format, str] = {
    Format.F32: "FORMAT_F32",
    Format.F16: "FORMAT_F16",
    Format.W4: "FORMAT_W4",
    Format.W8: "FORMAT_W8",
}


@dataclass(frozen=True)
class Feature:
    """A macro that only models with a feature have, without its prefix MODEL_."""

    name: str
    value: str


@dataclass(frozen=True)
class ModelConfigContext:
    """Names of the template's values."""

    banner: str
    abi: int
    n_layers: int
    dim: int
    hidden_dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rotary_dim: int
    value_dim: int
    vocab_size: int
    n_experts: int
    top_k: int
    norm_topk: int
    sliding_window: int
    features: tuple[Feature, ...]
    rms_eps: str
    attention_scale: str
    context: int
    batch: int
    max_threads: int
    group_size: int
    activation_bits: int
    attention_format: str
    expert_format: str
    embedding_format: str
    lm_head_format: str
    uses_w4: int
    uses_w8: int
    uses_f16: int
    expert_bytes: int
    debug_routing: int
    debug_memory: int
    debug_timing: int
    n_eos: int
    n_golden: int


def model_config_source(folder: ModelFolder, options: BuildOptions, golden: Generation) -> str:
    """Text of model_config.h. Raises RenderError for a value that C cannot express."""
    return render(TEMPLATE, _context(folder, options, golden))


def _product_kinds(config: ModelConfig) -> Iterator[Kind]:
    """Kinds of matrix that are multiplied; an embedding is looked up."""
    yield Kind.ATTENTION
    yield Kind.LM_HEAD
    if config.n_expert_layers:
        yield Kind.EXPERT
    if Kind.DENSE in kinds_of(config):
        yield Kind.DENSE


def _features(config: ModelConfig, formats: Mapping[Kind, Format]) -> tuple[Feature, ...]:
    """What the model has, of all that a family may have. The runtime compiles a feature only where its macro is there."""
    c = config
    found: list[tuple[bool, str, str]] = [
        (c.n_expert_layers > 0, "HAS_EXPERTS", "1"),
        (bool(c.dense_layers), "DENSE_HIDDEN_DIM", f"{c.dense_hidden_dim}"),
        (c.shared_hidden_dim > 0, "SHARED_HIDDEN_DIM", f"{c.shared_hidden_dim}"),
        (c.shared_gate, "SHARED_GATE", "1"),
        (Kind.DENSE in formats, "DENSE_FORMAT", FORMAT_NAMES[formats.get(Kind.DENSE, Format.W8)]),
        (c.kv_rank > 0, "KV_RANK", f"{c.kv_rank}"),
        (c.q_rank > 0, "Q_RANK", f"{c.q_rank}"),
        (c.kv_rank > 0, "LATENT_EPS", c_float(LATENT_EPS)),
        (c.layer_norm, "LAYER_NORM", "1"),
        (c.attention_sinks, "ATTENTION_SINKS", "1"),
        (c.qkv_bias, "QKV_BIAS", "1"),
        (c.o_bias, "O_BIAS", "1"),
        (c.qk_norm is QkNorm.HEAD, "QK_NORM_HEAD", "1"),
        (c.qk_norm is QkNorm.WHOLE, "QK_NORM_WHOLE", "1"),
        (c.clip_qkv > 0, "CLIP_QKV", _float(c.clip_qkv)),
        (bool(c.sliding_window and c.full_layers), "MIXED_WINDOWS", "1"),
        (c.rope_interleaved, "ROPE_INTERLEAVED", "1"),
        (c.rope_factor != 1.0, "ROPE_FACTOR", _float(c.rope_factor)),
        (c.scoring is Scoring.SIGMOID, "SCORING_SIGMOID", "1"),
        (c.scoring is Scoring.SPARSEMIXER, "SCORING_SPARSEMIXER", "1"),
        (c.scoring is Scoring.SPARSEMIXER, "ROUTER_THRESHOLD", _float(2 * c.router_jitter)),
        (c.router_bias, "ROUTER_BIAS", "1"),
        (c.selection_bias, "SELECTION_BIAS", "1"),
        (c.expert_bias, "EXPERT_BIAS", "1"),
        (c.swiglu_limit > 0, "SWIGLU_LIMIT", _float(c.swiglu_limit)),
        (c.swiglu_limit > 0, "SWIGLU_ALPHA", _float(c.swiglu_alpha)),
        (c.top_groups < c.n_groups, "N_GROUPS", f"{c.n_groups}"),
        (c.top_groups < c.n_groups, "TOP_GROUPS", f"{c.top_groups}"),
        (c.top_groups < c.n_groups and c.group_score is GroupScore.BEST_TWO, "GROUP_BEST_TWO", "1"),
        (c.routed_scale != 1.0, "ROUTED_SCALE", _float(c.routed_scale)),
        (c.embedding_scale != 1.0, "EMBEDDING_SCALE", _float(c.embedding_scale)),
        (c.residual_scale != 1.0, "RESIDUAL_SCALE", _float(c.residual_scale)),
        (c.head_bias, "HEAD_BIAS", "1"),
        (c.logits_divisor != 1.0, "LOGITS_DIVISOR", _float(c.logits_divisor)),
    ]
    return tuple(Feature(name, value) for present, name, value in found if present)


def _chat_features(chat: ChatForm | None) -> tuple[Feature, ...]:
    """Of a build with --chat: what app/chat.h is about."""
    if chat is None:
        return ()
    sizes = {"CHAT_PREFIX_BYTES": len(chat.prefix.encode()), "CHAT_SUFFIX_BYTES": len(chat.suffix.encode())}
    return tuple(Feature(name, str(value)) for name, value in {"CHAT": 1, **sizes, "CHAT_TRIM": int(chat.trim)}.items())


def _float(value: float) -> str:
    return c_float(value) if value else "0.0f"


def _context(folder: ModelFolder, options: BuildOptions, golden: Generation) -> ModelConfigContext:
    config, formats = folder.config, folder.formats
    if not golden.ids:
        raise RenderError(
            f"the golden prompt {golden.prompt[:40]!r} has no answer", hint="choose another golden prompt"
        )
    if options.debug and not config.n_expert_layers:
        raise RenderError(
            f"--debug {','.join(options.debug)}: this {config.family} model has no experts, whose work is what is traced",
            hint="build without --debug",
        )
    products = {formats[kind] for kind in _product_kinds(config)}
    return ModelConfigContext(
        banner=banner(TEMPLATE, folder),
        abi=ABI,
        n_layers=config.n_layers,
        dim=config.dim,
        hidden_dim=config.hidden_dim,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        rotary_dim=rotary_dim(config),
        value_dim=config.v_head_dim,
        vocab_size=config.vocab_size,
        n_experts=config.n_experts,
        top_k=config.top_k,
        norm_topk=int(config.norm_topk),
        sliding_window=config.sliding_window,
        features=_features(config, formats) + _chat_features(options.chat),
        rms_eps=c_float(config.rms_eps),
        attention_scale=c_float(attention_scale(config)),
        context=options.context,
        batch=options.batch,
        max_threads=options.max_threads,
        group_size=folder.group_size,
        activation_bits=options.activation_bits,
        attention_format=FORMAT_NAMES[formats[Kind.ATTENTION]],
        expert_format=FORMAT_NAMES[formats[Kind.EXPERT]],
        embedding_format=FORMAT_NAMES[formats[Kind.EMBEDDING]],
        lm_head_format=FORMAT_NAMES[formats[Kind.LM_HEAD]],
        uses_w4=int(Format.W4 in products),
        uses_w8=int(Format.W8 in products),
        uses_f16=int(Format.F16 in products),
        expert_bytes=expert_layout(config, formats, folder.group_size).bytes if config.n_expert_layers else 0,
        debug_routing=int("routing" in options.debug),
        debug_memory=int("memory" in options.debug),
        debug_timing=int("timing" in options.debug),
        n_eos=len(config.eos_ids),
        n_golden=len(golden.ids),
    )
