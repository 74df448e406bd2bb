"""The families that can be read, by `model_type` of config.json."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from colibri_build.checkpoint.families.deepseek import DEEPSEEK_V2, DEEPSEEK_V3
from colibri_build.checkpoint.families.deepseek_moe import DEEPSEEK_MOE
from colibri_build.checkpoint.families.dense import LLAMA, QWEN2, QWEN3
from colibri_build.checkpoint.families.family import Family
from colibri_build.checkpoint.families.glm4_moe import GLM4_MOE
from colibri_build.checkpoint.families.gpt_oss import GPT_OSS
from colibri_build.checkpoint.families.granite_moe import GRANITE_MOE, GRANITE_MOE_SHARED
from colibri_build.checkpoint.families.mixtral import MIXTRAL
from colibri_build.checkpoint.families.olmoe import OLMOE
from colibri_build.checkpoint.families.phimoe import PHIMOE
from colibri_build.checkpoint.families.qwen_moe import QWEN2_MOE, QWEN3_MOE

__all__ = ["FAMILIES", "Family"]

_ALL = (
    *(MIXTRAL, QWEN2_MOE, QWEN3_MOE, OLMOE, GRANITE_MOE, GRANITE_MOE_SHARED, GLM4_MOE, DEEPSEEK_MOE),
    *(DEEPSEEK_V2, DEEPSEEK_V3, GPT_OSS, PHIMOE),
    *(LLAMA, QWEN2, QWEN3),
)
FAMILIES: Mapping[str, Family] = MappingProxyType({family.model_type: family for family in _ALL})
