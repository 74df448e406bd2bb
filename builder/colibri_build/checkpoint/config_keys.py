"""Reads config.json key by key, so that what nobody read is known at the end and refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from colibri_build.errors import CheckpointError
from colibri_build.files import unique_keys

LARGEST_SIZE = 2**31 - 1  # the runtime's sizes are 32-bit

# What transformers writes that says nothing about the logits: bookkeeping, training, and defaults of `generate`.
_BENIGN = """
_attn_implementation_autoset _commit_hash _model_name_or_path _name_or_path attention_dropout bad_words_ids
begin_suppress_tokens chunk_size_feed_forward decoder_start_token_id diversity_penalty do_sample dtype early_stopping
encoder_no_repeat_ngram_size exponential_decay_length_penalty finetuning_task forced_bos_token_id forced_eos_token_id
id2label initializer_range label2id length_penalty max_length min_length no_repeat_ngram_size num_beam_groups
num_beams num_return_sequences output_attentions output_hidden_states output_router_logits output_scores pad_token_id
prefix problem_type remove_invalid_values repetition_penalty return_dict return_dict_in_generate router_aux_loss_coef
router_jitter_noise sep_token_id suppress_tokens task_specific_params temperature tf_legacy_loss tokenizer_class top_k
top_p torch_dtype torchscript transformers_version typical_p unk_token_id use_bfloat16 use_cache
"""
BENIGN_KEYS = frozenset(_BENIGN.split())


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON object in UTF-8 without duplicate keys. Raises CheckpointError."""
    try:
        value = json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=unique_keys)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: no valid JSON ({error})", hint="download the file again") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: holds a JSON {type(value).__name__}, not an object")
    return value


class ConfigKeys:
    """One JSON object of a checkpoint. Every method takes a key; `finish` refuses the keys that none took.

    `where` names the object in messages ("config.json"). All methods raise CheckpointError.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = values
        self._taken: set[str] = set()
        self.where = where

    def has(self, key: str) -> bool:
        """Whether the key is there, null included."""
        return key in self._values

    def take(self, key: str, default: Any = None) -> Any:
        """The raw value; `default` where the key is absent."""
        self._taken.add(key)
        return self._values.get(key, default)

    def size(self, key: str, *, default: int | None = None, low: int = 1, high: int = LARGEST_SIZE) -> int:
        """An integer low..high. A null or absent key gives `default`, or is refused where there is none."""
        value = self.take(key)
        if value is None:
            if default is not None:
                return default
            state = "null" if key in self._values else "missing"
            raise CheckpointError(f'{self.where}: "{key}" is {state}', hint=f"an integer {low}..{high} is needed")
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.refused(key, value, f"an integer {low}..{high}")
        return value

    def positive(self, key: str, default: float, *, low: float = 0.0) -> float:
        """A finite number above 0 and not below `low`; `default` where the key is absent or null."""
        value = self.take(key)
        if value is None:
            return default
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value <= sys.float_info.max or value < low:
            raise self.refused(key, value, f"a finite number, {low} or more" if low else "a finite number above 0")
        return float(value)

    def number(self, key: str, default: float) -> float:
        """A finite number, 0 or more; `default` where the key is absent or null."""
        value = self.take(key)
        return 0.0 if value == 0 and not isinstance(value, bool) else self.positive(key, default)

    def flag(self, key: str, default: bool) -> bool:
        """true or false; `default` where the key is absent."""
        value = self.take(key, default)
        if not isinstance(value, bool):
            raise self.refused(key, value, "true or false")
        return value

    def only(self, key: str, *supported: Any) -> None:
        """Refuse any value but these. An absent key is fine."""
        if key in self._values and not any(_same(self.take(key), value) for value in supported):
            raise self.refused(key, self._values[key], " or ".join(json.dumps(value) for value in supported))

    def ids(self, key: str, default: Any) -> tuple[int, ...]:
        """A token id, a list of them, or null (no id)."""
        value = self.take(key, default)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in ids):
            raise self.refused(key, value, "a token id, a list of token ids or null")
        return tuple(dict.fromkeys(ids))

    def finish(self, benign: Iterable[str] = ()) -> None:
        """Refuse the first key that was neither taken nor is known to be without effect."""
        for key in sorted(set(self._values) - self._taken - set(benign)):
            raise CheckpointError(
                f'{self.where}: unknown key "{key}" = {_short(self._values[key])} may change the mathematics',
                hint="remove the key if it has no effect on the logits; otherwise this checkpoint is not supported",
            )

    def refused(self, key: str, value: Any, supported: str) -> CheckpointError:
        """The error for a value that is not supported."""
        return CheckpointError(
            f'{self.where}: "{key}" = {_short(value)} is not supported', hint=f"supported: {supported}"
        )


def _same(a: Any, b: Any) -> bool:
    """Equality that keeps true apart from 1."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
