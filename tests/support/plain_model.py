"""The decoder written once more from docs/numerics.md alone: plain Python numbers, no array library, no code of ours.

Python computes in binary64; f32() rounds each result of + - * / and sqrt of binary32 numbers as binary32 would have.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from support.model_folder_decoder import Part

Vector = list[float]
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
SIN = (
    1.58969099521155010221e-10, -2.50507602534068634195e-8, 2.75573137070700676789e-6, -1.98412698298579493134e-4,
    8.33333333332248946124e-3, -1.66666666666666324348e-1,
)  # fmt: skip
COS = (
    -1.13596475577881948265e-11, 2.08757232129817482790e-9, -2.75573143513906633035e-7, 2.48015872894767294178e-5,
    -1.38888888888741095749e-3, 4.16666666666666019037e-2,
)  # fmt: skip


def f32(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def f16(x: float) -> float:
    return float(struct.unpack("<e", struct.pack("<e", x))[0])


def lane_sum(terms: Sequence[float]) -> float:
    lanes = [0.0] * 8
    for i, term in enumerate(terms):
        lanes[i % 8] = f32(lanes[i % 8] + term)
    a, b, c, d = (f32(lanes[i] + lanes[i + 4]) for i in range(4))
    return f32(f32(a + c) + f32(b + d))


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return lane_sum([f32(x * y) for x, y in zip(a, b, strict=True)])


def exp(x: float) -> float:
    x = min(max(x, -87.0), 88.0)
    n = f32(f32(f32(x * float.fromhex("0x1.715476p+0")) + 12582912) - 12582912)
    r = f32(x - f32(n * 0.693359375))
    r = f32(r - f32(n * f32(-2.12194440e-4)))
    p = f32(EXP[0])
    for c in EXP[1:]:
        p = f32(f32(p * r) + f32(c))
    p = f32(f32(p * f32(r * r)) + r)
    return f32(f32(p + 1) * math.ldexp(1.0, int(n)))


def silu(x: float) -> float:
    return f32(x / f32(1 + exp(-x)))


def horner(z: float, coefficients: Sequence[float]) -> float:
    p = coefficients[0]
    for c in coefficients[1:]:
        p = p * z + c
    return p


def sincos(a: float) -> tuple[float, float]:
    magic = 6755399441055744.0
    n = (a * 0.63661977236758134308 + magic) - magic
    r = a - n * 1.57079632673412561417
    r = r - n * 6.07710050650619224932e-11
    z = r * r
    s = r + (r * z) * horner(z, SIN)
    c = 1 - (0.5 * z - (z * z) * horner(z, COS))
    sine, cosine = ((s, c), (c, -s), (-s, -c), (-c, s))[int(n) % 4]
    return f32(sine), f32(cosine)


def rms_norm(x: Vector, weight: Vector, eps: float) -> Vector:
    r = f32(1 / f32(math.sqrt(f32(f32(dot(x, x) / len(x)) + f32(eps)))))
    return [f32(f32(v * r) * w) for v, w in zip(x, weight, strict=True)]


def power_of_minus(t: int) -> int:
    """2^-t in Q30, t in Q12.20."""
    n, i, f = t >> 20, (t >> 14) & 63, t & 16383
    if n > 30:
        return 0
    y = (f * 744261118) >> 20
    y2 = (y * y) >> 31
    m = (1 << 30) - y + y2 - (((y2 * y) // 3) >> 30)
    e = (round(2**30 * 2 ** (-i / 64)) * m + (1 << 29)) >> 30
    return (e + ((1 << n) >> 1)) >> n


class PlainModel:
    """`model` and `group` as in a model folder's config.json, `parts` as decode_folder gives them."""

    def __init__(self, model: dict[str, Any], group: int, parts: dict[str, Part], bits: int) -> None:
        self.m, self.group, self.parts = model, group, parts
        self.largest = 127.0 if bits == 8 else 32512.0
        self.cache: list[list[tuple[list[Vector], list[Vector]]]] = [[] for _ in range(model["n_layers"])]

    def step(self, token: int) -> tuple[Vector, list[tuple[list[int], Vector]]]:
        """Logits behind one token, and experts and weights of each layer."""
        routing = []
        x = self._embedding(token)
        for layer in range(self.m["n_layers"]):
            x = self._plus(x, self._attention(layer, self._norm(f"layers.{layer}.attn_norm", x)))
            h = self._norm(f"layers.{layer}.ffn_norm", x)
            routing.append(self._route(self._biased(f"layers.{layer}.router", h)))
            x = self._plus(x, self._experts(layer, h, *routing[-1]))
        return self._biased("lm_head", self._norm("final_norm", x)), routing

    def _plus(self, a: Vector, b: Vector) -> Vector:
        return [f32(v + w) for v, w in zip(a, b, strict=True)]

    def _norm(self, name: str, x: Vector) -> Vector:
        weight, eps = self.parts[name].codes[0], self.m["rms_eps"]
        if not self.m.get("layer_norm"):
            return rms_norm(x, weight, eps)
        mean = f32(lane_sum(x) / len(x))
        return self._plus(rms_norm([f32(v - mean) for v in x], weight, eps), self.parts[f"{name}_bias"].codes[0])

    def _biased(self, name: str, x: Vector) -> Vector:
        """A product, plus its bias where the model has one."""
        bias = self.parts.get(f"{name}_bias")
        return self._plus(self._product(name, x), bias.codes[0]) if bias else self._product(name, x)

    def _embedding(self, token: int) -> Vector:
        part = self.parts["embedding"]
        row = part.codes[token]
        return [f32(c * part.scales[token][i // self.group]) for i, c in enumerate(row)] if part.scales else row

    def _quantized(self, x: Vector) -> list[tuple[list[int], float]]:
        """Codes and scale of each group."""
        groups = []
        for start in range(0, len(x), self.group):
            part = x[start : start + self.group]
            amax = max(map(abs, part))
            if amax < f32(1e-30):
                groups.append(([0] * len(part), 0.0))
                continue
            inverse = f32(self.largest / amax)
            groups.append(([round(f32(v * inverse)) for v in part], f32(amax / self.largest)))
        return groups

    def _product(self, name: str, x: Vector) -> Vector:
        part = self.parts[name]
        if not part.scales:
            return [dot(row, x) for row in part.codes]
        groups = self._quantized(x)
        y = []
        for n, row in enumerate(part.codes):
            total = 0.0
            for g, (codes, scale) in enumerate(groups):
                weights = row[g * self.group :]
                zero = part.zeros[n][g] if part.format == "w4" else 0
                d = sum((int(weights[k]) - zero) * code for k, code in enumerate(codes))
                total = f32(total + f32(f32(d) * f32(part.scales[n][g] * scale)))
            y.append(total)
        return y

    def _heads(self, name: str, h: Vector, rotation: list[tuple[float, float]] | None) -> list[Vector]:
        flat, size = self._biased(name, h), self.m["head_dim"]
        heads = [flat[i : i + size] for i in range(0, len(flat), size)]
        for v in heads if rotation else []:
            for i, (sine, cosine) in enumerate(rotation or []):
                x0, x1 = v[i], v[i + size // 2]
                v[i] = f32(f32(x0 * cosine) - f32(x1 * sine))
                v[i + size // 2] = f32(f32(x1 * cosine) + f32(x0 * sine))
        return heads

    def _attention(self, layer: int, h: Vector) -> Vector:
        size, cache = self.m["head_dim"], self.cache[layer]
        pos = float(len(cache))
        frequencies = self.m.get("rope_frequencies") or [
            1 / self.m["rope_theta"] ** (2 * i / size) for i in range(size // 2)
        ]
        grown = f32(self.m.get("rope_factor", 1.0))
        turns = [sincos(f32(pos * f32(frequency))) for frequency in frequencies]
        rotation = [(f32(sine * grown), f32(cosine * grown)) for sine, cosine in turns]
        q = self._heads(f"layers.{layer}.q", h, rotation)
        k = self._heads(f"layers.{layer}.k", h, rotation)
        v = self._heads(f"layers.{layer}.v", h, None)
        cache.append(([[f16(e) for e in head] for head in k], [[f16(e) for e in head] for head in v]))
        window = 0 if layer in self.m.get("full_layers", ()) else self.m["sliding_window"]
        seen = cache[-window:] if window else cache
        out: Vector = []
        for head, query in enumerate(q):
            shared = head // (self.m["n_heads"] // self.m["n_kv_heads"])
            sink = self.parts[f"layers.{layer}.sinks"].codes[0][head] if self.m.get("attention_sinks") else None
            out += self._mixed(query, sink, [keys[shared] for keys, _ in seen], [values[shared] for _, values in seen])
        return self._biased(f"layers.{layer}.o", out)

    def _mixed(self, query: Vector, sink: float | None, keys: list[Vector], values: list[Vector]) -> Vector:
        scale = f32(1 / math.sqrt(self.m["head_dim"]))
        scores = [f32(dot(query, key) * scale) for key in keys]
        most = max(scores if sink is None else [*scores, sink])
        e = [exp(f32(score - most)) for score in scores]
        divisor = lane_sum(e) if sink is None else f32(lane_sum(e) + exp(f32(sink - most)))
        mixed = []
        for i in range(len(query)):
            total = 0.0
            for weight, value in zip(e, values, strict=True):
                total = f32(total + f32(weight * value[i]))
            mixed.append(f32(total / divisor))
        return mixed

    def _route(self, logits: Vector) -> tuple[list[int], Vector]:
        chosen = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[: self.m["top_k"]]
        if self.m.get("scoring") == "sparsemixer":
            return chosen, [self._mixer_weight(logits, chosen, rank) for rank in range(2)]
        return chosen, self._weights(logits, chosen, chosen if self.m["norm_topk"] else list(range(len(logits))))

    def _mixer_weight(self, logits: Vector, chosen: list[int], rank: int) -> float:
        best, limit = logits[chosen[rank]], f32(2 * self.m.get("router_jitter", 0.0))
        near = []
        for i, logit in enumerate(logits):
            larger = max(abs(logit), best)
            far = larger != 0 and f32(f32(best - logit) / larger) > limit
            if i not in chosen[:rank] and not far:
                near.append(i)
        return self._weights(logits, [chosen[rank]], near)[0]

    def _weights(self, logits: Vector, chosen: list[int], over: list[int]) -> Vector:
        most, q30 = max(logits[i] for i in over), []
        for logit in logits:
            d = f32(max(most - logit, 0.0))
            t = 2**31 - 1 if d > 24 else int(f32(f32(d * 1512775.375) + 0.5))
            q30.append(power_of_minus(t))
        total = sum(q30[i] for i in over)
        return [f32(((q30[i] << 30) + total // 2) // total) * 2.0**-30 for i in chosen]

    def _experts(self, layer: int, h: Vector, chosen: list[int], weights: Vector) -> Vector:
        y = [0.0] * self.m["dim"]
        for expert, weight in zip(chosen, weights, strict=True):
            prefix = f"layers.{layer}.experts.{expert}"
            gate, up = self._biased(f"{prefix}.gate", h), self._biased(f"{prefix}.up", h)
            hidden = [self._hidden(g, u) for g, u in zip(gate, up, strict=True)]
            y = [f32(a + f32(weight * b)) for a, b in zip(y, self._biased(f"{prefix}.down", hidden), strict=True)]
        return y

    def _hidden(self, gate: float, up: float) -> float:
        if not self.m.get("swiglu_limit"):
            return f32(silu(gate) * up)
        limit, alpha = f32(self.m["swiglu_limit"]), f32(self.m["swiglu_alpha"])
        g, u = min(gate, limit), min(max(up, -limit), limit)
        return f32(f32(u + 1) * f32(g / f32(1 + exp(-f32(alpha * g)))))
