"""A PolyGIN over one graph with a dense adjacency matrix, at many points of the path at once.

Read off the state dict by name, it shares no code with the package; its path integral is that of 64 points.
"""

import numpy as np
import torch

POINTS = 64


def logits(state, x, adjacency, readout):
    """x [P, N, F] to logits [P, C], or [P, N, C] where `readout` is None."""
    layer = 0
    while f"convs.{layer}.lin1.weight" in state:
        at = {
            key.split(".", 2)[2]: value for key, value in state.items() if key.startswith(f"convs.{layer}.")
        }
        a = (1 + at["eps"]) * x + adjacency @ x
        z = at["norm.scale"] * (a @ at["lin1.weight"].T + at["lin1.bias"]) + at.get("norm.bias", 0)
        x = (z + at["act.theta"] * z**2) @ at["lin2.weight"].T + at["lin2.bias"]
        layer += 1
    if readout is not None:
        x = x.mean(dim=1) if readout == "mean" else x.sum(dim=1)
    z = x @ state["head.0.weight"].T + state["head.0.bias"]
    return (z + state["head.1.theta"] * z**2) @ state["head.3.weight"].T + state["head.3.bias"]


def adjacency_of(edge_index, weight, nodes, dtype=torch.float64):
    matrix = torch.zeros(nodes, nodes, dtype=dtype)
    for e, (u, v) in enumerate(edge_index.t().tolist()):
        matrix[v, u] += 1.0 if weight is None else weight[e]
    return matrix


def shares(model, x, edge_index, *, weight=None, baseline=None, index=None, target=None, points=POINTS):
    """φ [N, F], the target, the scores at both ends and the largest along the path, in the dtype of the model."""
    state, dtype = model.state_dict(), x.dtype
    matrix = adjacency_of(edge_index, weight, len(x), dtype)
    start = torch.zeros_like(x) if baseline is None else baseline
    readout = None if model.task == "node" else model.readout

    def rows(points_of_path):
        out = logits(state, points_of_path, matrix, readout)
        return out if index is None else out[:, index]

    end, begin = rows(torch.stack([x, start]))
    target = int(end.argmax()) if target is None else target
    nodes, weights = np.polynomial.legendre.leggauss(points)
    t = torch.tensor((nodes + 1) / 2).to(dtype).view(-1, 1, 1)
    path = (start + t * (x - start)).requires_grad_()
    scores = rows(path)[:, target]
    (gradient,) = torch.autograd.grad(scores.sum(), path)
    mean = (torch.tensor(weights / 2).to(dtype).view(-1, 1, 1) * gradient).sum(dim=0)
    ends, largest = (float(end[target]), float(begin[target])), float(scores.detach().abs().max())
    return (x - start) * mean, target, ends, max(largest, *map(abs, ends))
