"""One module a family: its config.json and its tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from colibri_build.artifacts import ModelConfig
from colibri_build.checkpoint.config_keys import ConfigKeys
from colibri_build.checkpoint.families import mixtral


class Family(Protocol):
    """What a family's module offers."""

    MODEL_TYPE: str

    def read_config(self, keys: ConfigKeys) -> ModelConfig:
        """config.json -> ModelConfig; raises CheckpointError for what is not supported."""

    def published_name(self, name: str) -> str:
        """Our name of a tensor -> its name in the checkpoint."""

    def is_buffer(self, published: str) -> bool:
        """Whether a tensor repeats what config.json says, and is not needed."""

    def is_fused(self, published: str) -> bool:
        """Whether a tensor belongs to the layout with all experts in one tensor."""


FAMILIES: Mapping[str, Family] = MappingProxyType({mixtral.MODEL_TYPE: mixtral})
