"""The data on the arrows between the stages: frozen dataclasses without behaviour of their own.

checkpoint -> Model -> QuantizedModel -> model folder -> BuildPlan -> SourceTree -> Firmware -> BuildReport
                                                                                 -> Transcript
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

# In files without NumPy, so that a command that computes nothing starts at once.
from colibri_build.build_report import BuildReport as BuildReport
from colibri_build.build_report import Check as Check
from colibri_build.kinds import DEBUG_NAMES as DEBUG_NAMES
from colibri_build.kinds import Format as Format
from colibri_build.kinds import Kind as Kind

F32 = NDArray[np.float32]


class QkNorm(enum.StrEnum):
    """Over what queries and keys are normalised before RoPE."""

    NONE = "none"
    HEAD = "head"  # each head, one weight [head_dim] for all
    WHOLE = "whole"  # all heads as one vector


class Scoring(enum.StrEnum):
    """How the router's logits become scores."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"
    SPARSEMIXER = "sparsemixer"  # two experts, each weighed by a softmax over those that come close to it


class GroupScore(enum.StrEnum):
    """What a group of experts is judged by."""

    MAX = "max"  # its best expert
    BEST_TWO = "best_two"  # the sum of its two best


@dataclass(frozen=True)
class ModelConfig:
    """The mathematics of a decoder, whatever family it came from."""

    family: str
    n_layers: int
    dim: int
    hidden_dim: int  # width of one expert
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    n_experts: int
    top_k: int
    norm_topk: bool  # router weights are normalised over the chosen experts (else over all)
    rms_eps: float  # of every norm, whatever its kind
    rope_theta: float
    sliding_window: int  # positions that a token sees, itself included; 0: all
    max_context: int  # positions that the checkpoint was trained for
    tied_embeddings: bool  # lm_head is the embedding matrix
    bos_id: int | None
    eos_ids: tuple[int, ...]
    # What only some families have. A default means: without it.
    full_layers: tuple[int, ...] = ()  # layers that see every position although there is a sliding window
    rotary_dim: int = 0  # leading elements of a head that RoPE turns; 0: all
    rope_interleaved: bool = False  # RoPE pairs elements 2i and 2i+1, else i and i + rotary_dim/2
    rope_frequencies: tuple[float, ...] = ()  # [rotary_dim / 2] of a scaled RoPE; (): from rope_theta
    rope_factor: float = 1.0  # multiplies sine and cosine
    attention_scale: float = 0.0  # of the scores; 0: 1/sqrt(head_dim)
    kv_rank: int = 0  # multi-head latent attention: keys and values come from a vector of this size; 0: plain attention
    q_rank: int = 0  # with it, queries come from a vector of this size; 0: from the residual stream
    value_dim: int = 0  # elements of a value head; 0: head_dim
    layer_norm: bool = False  # the residual stream's norms take off the mean and have a bias; else RMSNorm
    attention_sinks: bool = False  # each head's softmax has one more logit, whose share is dropped
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    clip_qkv: float = 0.0  # q, k and v are clamped to +-this; 0: no clamp
    dense_layers: tuple[int, ...] = ()  # layers without experts: one feed-forward part that every token takes
    dense_hidden_dim: int = 0  # its width
    shared_hidden_dim: int = 0  # width of the shared experts together; 0: none
    shared_gate: bool = False  # the shared experts' output is weighed by sigmoid(shared_gate . h)
    scoring: Scoring = Scoring.SOFTMAX
    router_bias: bool = False  # added to the router's logits
    router_jitter: float = 0.0  # of the sparse mixer: experts farther from the best than twice this do not count
    expert_bias: bool = False  # every projection of an expert has a bias
    swiglu_limit: float = 0.0  # F is down((u + 1) * g * sigmoid(swiglu_alpha * g)), g up to this, u in +-this; 0: plain
    swiglu_alpha: float = 0.0
    selection_bias: bool = False  # experts are chosen by score + bias, and weighed by score
    n_groups: int = 1  # of experts, equal runs of them; a token chooses among the experts of `top_groups` groups
    top_groups: int = 1
    group_score: GroupScore = GroupScore.MAX
    routed_scale: float = 1.0  # multiplies the router's weights
    embedding_scale: float = 1.0  # multiplies the embedding
    residual_scale: float = 1.0  # multiplies what a block adds to the residual stream
    logits_divisor: float = 1.0
    head_bias: bool = False  # added to the logits, before they are divided

    def is_dense(self, layer: int) -> bool:
        """Whether a layer has no experts."""
        return layer in self.dense_layers

    @property
    def n_expert_layers(self) -> int:
        """How many layers have experts."""
        return self.n_layers - len(self.dense_layers)

    @property
    def expert_layers(self) -> tuple[int, ...]:
        """The layers that have experts, in order."""
        return tuple(layer for layer in range(self.n_layers) if layer not in self.dense_layers)

    @property
    def q_dim(self) -> int:
        """Elements of all query heads."""
        return self.n_heads * self.head_dim

    @property
    def k_dim(self) -> int:
        """Elements of all key heads."""
        return self.n_kv_heads * self.head_dim

    @property
    def v_head_dim(self) -> int:
        """Elements of a value head."""
        return self.value_dim or self.head_dim

    @property
    def v_dim(self) -> int:
        """Elements of all value heads."""
        return self.n_kv_heads * self.v_head_dim

    @property
    def out_dim(self) -> int:
        """Elements of all heads' outputs together."""
        return self.n_heads * self.v_head_dim


@dataclass(frozen=True)
class TensorSpec:
    """One tensor of a model by our name. Vectors have `rows` = 1. Matrices are [outputs, inputs]."""

    name: str
    kind: Kind
    rows: int
    cols: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(cols,) for a vector, (rows, cols) otherwise."""
        return (self.cols,) if self.kind in (Kind.NORM, Kind.BIAS) else (self.rows, self.cols)


@dataclass(frozen=True)
class AddedToken:
    """A token that is matched in the text before pre-tokenization."""

    id: int
    content: bytes
    special: bool
    normalized: bool = False  # matched only in the normalized text that the tokens without this flag leave
    lstrip: bool = False  # takes white space on that side with it
    rstrip: bool = False


CodePoints = tuple[tuple[int, int], ...]  # a set: ranges (first, last), ascending and apart
UNBOUNDED = 0xFFFFFFFF


@dataclass(frozen=True)
class SplitAtom:
    """A greedy run of `least` to `most` characters of a set."""

    chars: CodePoints
    least: int
    most: int


@dataclass(frozen=True)
class SplitAlternative:
    """Atoms one after the other; no character of `not_before` after them; then the first of `tail` that fits, if any."""

    atoms: tuple[SplitAtom, ...]
    not_before: CodePoints = ()
    tail: tuple[SplitAlternative, ...] = ()


SplitStage = tuple[SplitAlternative, ...]  # tried in order


@dataclass(frozen=True)
class CharacterVocabulary:
    """What a SentencePiece-style vocabulary has beside a byte-level one. In its tokens, U+2581 is written as a space."""

    byte_ids: tuple[int, ...]  # [256]: the token for a byte of a character that is no token
    prefix_space: str  # "always", "unless", "first" or "plain": as the runtime's prepare_spaces_*
    strip_space: bool  # decoding drops a space at the start


@dataclass(frozen=True)
class Tokenizer:
    """A BPE tokenizer, reduced to what encode and decode need."""

    tokens: tuple[bytes, ...]  # id -> raw bytes; b"" for an id that no token has
    merges: tuple[tuple[int, int, int], ...]  # (left id, right id, result id) by rank
    added: tuple[AddedToken, ...]
    pretokenizer: str  # name of the family whose expressions `splits` are; "" if it is none that we know by name
    add_prefix_space: bool
    ignore_merges: bool  # a pre-token that is itself in the vocabulary is taken whole
    prefix_ids: tuple[int, ...]  # put before every prompt (beginning of sequence)
    suffix_ids: tuple[int, ...]
    json_bytes: bytes = field(repr=False)  # tokenizer.json as it was read
    splits: tuple[SplitStage, ...] = ()  # what a stage matches is a word, and what is between; none: text is one word
    nfc: bool = False  # text is brought into Unicode's composed form first
    characters: CharacterVocabulary | None = None  # None: byte-level


@dataclass(frozen=True)
class GroupCodes:
    """A matrix as the checkpoint's own quantization holds it: value = (code - zero) * scale, exactly.

    4 bits: codes and zeros uint8 0..15. 8 bits: codes int8 -127..127, no zeros. Scales fp16, finite, of either sign.
    codes [rows, cols], scales and zeros [rows, ceil(cols / group_size)].
    """

    group_size: int  # 32, 64 or 128
    codes: NDArray[Any]
    scales: NDArray[np.float16]
    zeros: NDArray[np.uint8] | None


@dataclass(frozen=True)
class PackedTensor:
    """A tensor that the checkpoint holds as codes. `load` gives them; None where w4 and w8 cannot hold them."""

    bits: int  # 4 or 8
    group_size: int  # 32, 64 or 128; 0: its groups are not made of these, and `load` gives None
    load: Callable[[], GroupCodes | None]
    misfit: Callable[[], str]  # why `load` gives None, in a few words


@runtime_checkable
class ByRows(Protocol):
    """Tensors that need not be loaded whole."""

    def rows_of(self, name: str) -> Callable[[slice], F32]:
        """A function from a run of rows to their values [rows, cols]. Threads may call it at the same time."""


@dataclass(frozen=True)
class ChatTemplate:
    """How a conversation is written for the model: a Jinja template, and the texts of the tokens that it names."""

    template: str
    tokens: Mapping[str, str]  # "bos_token" -> "<s>" and the like


@dataclass(frozen=True)
class ChatForm:
    """A chat template as far as one question needs it: prefix, the user's text, suffix; encoded as a whole."""

    prefix: str
    suffix: str
    trim: bool  # the text is written without the white space around it (str.strip)
    n_tokens: int = 0  # of the context, that prefix and suffix take without a text


@dataclass(frozen=True)
class Model:
    """A checkpoint, read and checked. Values of `tensors` are loaded when they are asked for."""

    config: ModelConfig
    tensors: Mapping[str, F32]  # by TensorSpec.name; those of a checkpoint are `ByRows`, too
    tokenizer: Tokenizer
    source: str  # name of the checkpoint folder, without its path
    digest: str  # SHA-256 over every input file
    packed: Mapping[str, PackedTensor] = field(default_factory=dict)  # by TensorSpec.name; `tensors` has these too
    chat: ChatTemplate | None = None


@dataclass(frozen=True)
class QuantizedTensor:
    """One tensor in its storage format.

    F32, F16: `codes` holds the values [rows, cols]. W4: codes uint8 0..15 [rows, cols], scales fp16 and zeros
    uint8 0..15 [rows, n_groups]. W8: codes int8 -127..127 [rows, cols], scales fp16 [rows, n_groups].
    """

    spec: TensorSpec
    format: Format
    codes: NDArray[Any]
    scales: NDArray[np.float16] | None = None
    zeros: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class QuantizedModel:
    """What the model folder stores, and what the reference computes with."""

    config: ModelConfig
    group_size: int
    formats: Mapping[Kind, Format]
    tensors: Mapping[str, QuantizedTensor]
    tokenizer: Tokenizer
    provenance: Mapping[str, Any]
    chat: ChatTemplate | None = None


@dataclass(frozen=True)
class FileRecord:
    """One file of a model folder."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ModelFolder:
    """A model folder whose hashes, sizes and shapes were checked."""

    path: Path
    config: ModelConfig
    group_size: int
    formats: Mapping[Kind, Format]
    files: Mapping[str, FileRecord]  # by name: routing.bin, dense.bin, expert_{layer}_{expert}.bin, *.json
    provenance: Mapping[str, Any]
    digest: str  # SHA-256 of config.json, which names the hash of every other file
    chat: ChatTemplate | None = None


@dataclass(frozen=True)
class BuildOptions:
    """What the user may choose for one firmware."""

    context: int
    max_threads: int
    activation_bits: int = 16
    embed: str = "incbin"  # or "xxd"
    debug: tuple[str, ...] = ()  # of DEBUG_NAMES, sorted: what the firmware can record; () is a firmware for use
    chat: ChatForm | None = None  # what is written around every prompt; None: nothing
    prefill_batch: int = 1  # most prompt tokens that are computed together; no result depends on it

    @property
    def batch(self) -> int:
        """Tokens in the largest batch: no more than the context holds."""
        return min(self.prefill_batch, self.context)


@dataclass(frozen=True)
class Region:
    """One line of the budget."""

    name: str
    flash_bytes: int
    ram_bytes: int
    sum: str  # how the figure came about, for a person


@dataclass(frozen=True)
class BuildPlan:
    """What the firmware will need and what the board has."""

    board: str
    model: str
    options: BuildOptions
    regions: tuple[Region, ...]
    flash_budget_bytes: int
    ram_budget_bytes: int
    active_weight_bytes: int  # read once for each token
    bound_tokens_per_s: float | None  # read bandwidth / active_weight_bytes; None where the board has no figure
    ways_out: tuple[str, ...] = ()  # where it does not fit: command options that would make it fit, each enough

    @property
    def flash_bytes(self) -> int:
        """Sum over the regions."""
        return sum(region.flash_bytes for region in self.regions)

    @property
    def ram_bytes(self) -> int:
        """Sum over the regions."""
        return sum(region.ram_bytes for region in self.regions)


@dataclass(frozen=True)
class RoutingStep:
    """The choice of one layer for one token: expert ids by rank, and their weights."""

    experts: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Generation:
    """What the reference says for one prompt: greedy tokens, hash of the logits they were chosen from."""

    prompt: str
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logits_hash: str  # 16 hexadecimal digits
    stop: str  # "eos", "length" or "context"


@dataclass(frozen=True)
class SourceTree:
    """A complete C tree: `make` in `path` rebuilds the firmware without Python."""

    path: Path
    files: tuple[str, ...]  # relative to path
    sources: tuple[str, ...] = ()  # the translation units among `files`, in link order
    compile_flags: tuple[str, ...] = ()  # beside the toolchain's; paths in them are relative to `path`
    link_flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Firmware:
    """A linked binary, and the commands that made it."""

    elf: Path
    commands: tuple[str, ...]  # as run


@dataclass(frozen=True)
class Transcript:
    """One run of a firmware. `status` is its COLIBRI_STATUS object."""

    command: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: str
    status: Mapping[str, Any]
    seconds: float
