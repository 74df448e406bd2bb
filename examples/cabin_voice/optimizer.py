"""The optimizers of the training: Muon for the matrices of the layers, AdamW for all other weights.

Muon's step is the momentum with all its singular values brought near 1, so that directions which are rarely
seen (a seldom word) are learned as fast as common ones.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn

# Newton-Schulz: x <- a x + b (x x^T) x + c (x x^T)^2 x moves every singular value of x in (0, 1] towards 1.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ROUNDS = 5
# Makes a step as large as one of AdamW, so that both share one learning rate.
_AS_ADAMW = 0.2


def orthogonal(matrices: Tensor) -> Tensor:
    """Bring the singular values of matrices [count, rows, columns] near 1; bf16 is exact enough for this."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.transpose(1, 2) if tall else matrices).to(torch.bfloat16)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_ROUNDS):
        square = torch.bmm(x, x.transpose(1, 2))
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=_B, alpha=_C), x, beta=_A)
    return (x.transpose(1, 2) if tall else x).float()


class Muon(torch.optim.Optimizer):
    """Nesterov momentum with orthogonal steps and decoupled weight decay; equal shapes are done at once."""

    def __init__(self, weights: list[nn.Parameter], lr: float, decay: float, momentum: float = 0.95) -> None:
        shapes: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for weight in weights:
            shapes[weight.shape].append(weight)
        super().__init__([{"params": same} for same in shapes.values()], {"lr": lr, "decay": decay})
        self.momentum = momentum

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Do one step on all weights."""
        for group in self.param_groups:
            weights, rate = group["params"], group["lr"]
            grads = torch.stack([weight.grad for weight in weights])
            state = self.state[weights[0]]
            mean = state.setdefault("mean", torch.zeros_like(grads)).lerp_(grads, 1 - self.momentum)
            steps = orthogonal(grads.lerp(mean, self.momentum))
            size = _AS_ADAMW * max(weights[0].shape) ** 0.5
            torch._foreach_mul_(weights, 1 - rate * group["decay"])
            torch._foreach_add_(weights, list(steps.unbind()), alpha=-rate * size)


def optimizers_for(model: nn.Module, rate: float, decay: float) -> list[torch.optim.Optimizer]:
    """Muon for what the layers multiply by, except the routers; AdamW for embedding, head, routers and norms."""
    inner, outer = [], []
    for name, weight in model.named_parameters():
        (inner if "layers" in name and weight.dim() == 2 and "gate" not in name else outer).append(weight)
    matrices = [weight for weight in outer if weight.dim() > 1]
    vectors = [weight for weight in outer if weight.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return [Muon(inner, rate, decay), torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True)]
