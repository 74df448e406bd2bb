"""Print the second table of docs/quantization.md: output error of the experts on held-out text, AWQ against RTN.

    python tests/quantize/measure_output_errors.py examples/cabin_voice/model examples/cabin_voice/calibration.txt \
        examples/cabin_voice/heldout.jsonl --group-size 128

Unlike the mean divergence of the answers it is not ruled by a few hard positions.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from measure_formats import argument_parser, read_inputs

from colibri_build.artifacts import F32, Format
from colibri_build.quantize import QuantizeOptions
from colibri_build.quantize.awq import LayerInput, LayerPlan, plan_layer
from colibri_build.quantize.float_forward import ExpertActivations, Layer, embed, layer_forward, take_layer
from colibri_build.quantize.policy import default_formats
from colibri_build.quantize.rtn import round_trip
from colibri_build.tensor_specs import FFN_PARTS

Energies = dict[tuple[str, str], float]


def add_errors(
    total: Energies, layer: Layer, plan: LayerPlan, ffn_in: F32, seen: ExpertActivations, group_size: int
) -> None:
    """Squared output errors of one expert; stored weights are unfolded, so that the original inputs fit them."""
    for part in FFN_PARTS:
        name = f"experts.{seen.expert}.{part}"
        wanted, folded = layer[name], plan.weights[name]
        unfold = np.divide(wanted, folded, out=np.ones_like(wanted), where=folded != 0)
        stored = {
            "rtn": round_trip(wanted, Format.W4, group_size),
            "awq, scales only": round_trip(folded, Format.W4, group_size) * unfold,
            "awq": round_trip(folded, Format.W4, group_size, plan.shrink.get(name)) * unfold,
        }
        x = (seen.hidden if part == "down" else ffn_in[seen.tokens]) * seen.weights[:, None]
        for label, values in stored.items():
            total[part, label] += float(np.sum(np.square(x @ (wanted - values).T, dtype=np.float64)))


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--group-size", type=int, default=128)
    args = parser.parse_args()
    model, held_out, calibration = read_inputs(args)
    config, options = model.config, QuantizeOptions(group_size=args.group_size, calibration_ids=calibration)
    x, y = (embed(config, model.tensors["embedding"], ids) for ids in (calibration, held_out.sequences))
    lengths, total = [len(ids) for ids in held_out.sequences], defaultdict(float)
    for index in range(config.n_layers):
        layer = take_layer(model.tensors, config, index)
        entrance = LayerInput(index, layer, x, [len(ids) for ids in calibration])
        x, plan = plan_layer(config, entrance, default_formats(4), options)
        experts: list[ExpertActivations] = []
        y, activations = layer_forward(config, index, layer, y, lengths, experts.append)
        for seen in experts:
            add_errors(total, layer, plan, activations.ffn_in, seen, args.group_size)
    for (part, label), energy in total.items():
        print(f"{part:5} {label:17} {energy / total[part, 'rtn']:.3f}")


if __name__ == "__main__":
    main()
