"""A model folder's configuration says all of the mathematics: what contradicts itself must not become a firmware."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from colibri_build.artifacts import ModelConfig, Scoring
from colibri_build.pack.model_object import ModelObjectError, model_object, read_model_object
from support.features import FEATURES, NO_EXPERTS
from support.tiny_quantized import AWKWARD_CONFIG

MIXER = {"scoring": Scoring.SPARSEMIXER, "norm_topk": False}


@pytest.mark.parametrize("name", FEATURES)
def test_a_configuration_survives_its_json(name: str) -> None:
    config = replace(AWKWARD_CONFIG, **FEATURES[name])
    assert read_model_object(json.loads(json.dumps(model_object(config)))) == config


def test_a_plain_configuration_names_no_feature() -> None:
    """The files of models that were made before a feature existed stay what they were."""
    required = {field.name for field in fields(ModelConfig) if field.default is MISSING}
    assert set(model_object(AWKWARD_CONFIG)) == required


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "mixer of three": ({**MIXER, "top_k": 3}, '"model.scoring" is "sparsemixer", not without'),
    "mixer that normalises": ({**MIXER, "norm_topk": True}, '"model.scoring" is "sparsemixer", not without'),
    "mixer with groups": ({**MIXER, "n_groups": 3, "top_groups": 2}, '"model.scoring" is "sparsemixer", not without'),
    "mixer with a bias": ({**MIXER, "selection_bias": True}, '"model.scoring" is "sparsemixer", not without'),
    "jitter alone": ({"router_jitter": 0.01}, '"model.router_jitter" is 0.01, not 0 without sparsemixer'),
    "limit alone": ({"swiglu_limit": 7.0}, '"model.swiglu_alpha" is 0.0, not above 0 with swiglu_limit'),
    "alpha alone": ({"swiglu_alpha": 1.7}, '"model.swiglu_alpha" is 1.7, not above 0 with swiglu_limit'),
    "negative limit": ({"swiglu_limit": -7.0, "swiglu_alpha": 1.7}, '"model.swiglu_limit" is -7.0, not a finite'),
    "router without experts": ({**NO_EXPERTS, "router_bias": True}, '"model.router_bias" is true, not false where no'),
    "no experts but biases": ({**NO_EXPERTS, "expert_bias": True}, '"model.expert_bias" is true, not false where no'),
    "number as flag": ({"layer_norm": 1}, '"model.layer_norm" is 1, not true or false'),
    "text as flag": ({"attention_sinks": "yes"}, '"model.attention_sinks" is "yes", not true or false'),
    "null as flag": ({"head_bias": None}, '"model.head_bias" is null, not true or false'),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_refused_by_name(name: str) -> None:
    changes, message = CONTRADICTIONS[name]
    value = json.loads(json.dumps(model_object(replace(AWKWARD_CONFIG, **changes))))
    with pytest.raises(ModelObjectError) as caught:
        read_model_object(value)
    assert str(caught.value).startswith(message)
