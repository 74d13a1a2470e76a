"""What an explanation is: frozen data, nothing that plots, saves or computes again."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One module's part in the certificate: the degree in τ that came in and the degree that went out.

    A row whose `calls` is above 1 stands for a module that ran several times; the degrees are its last call's.
    """

    module: str
    kind: str
    degree_in: int
    degree_out: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why an attribution is exact: the score is a polynomial of at most this degree along the path.

    The gradient then has degree `degree` − 1, and a Gauss–Legendre rule of `points` = ⌈degree/2⌉ points
    integrates it without error. The degree is an upper bound read off the model's own operations.

    >>> print(Certificate(degree=2, trace=(TraceRow("head.1", "PolyActivation", 1, 2),)))
    degree 2 in τ along the path: exact with 1 Gauss–Legendre point
      module   kind             degree
      head.1   PolyActivation    1 → 2
    """

    degree: int
    trace: tuple[TraceRow, ...] = ()

    @property
    def points(self) -> int:
        """Gauss–Legendre points that make the path integral exact: ⌈degree/2⌉."""
        return max(1, -(-self.degree // 2))

    def __str__(self) -> str:
        plural = "" if self.points == 1 else "s"
        lines = [
            f"degree {self.degree} in τ along the path: exact with {self.points} Gauss–Legendre point{plural}"
        ]
        if self.trace:
            names = [row.module or "(model)" for row in self.trace]
            wide = max(len("module"), *map(len, names))
            kind = max(len("kind"), *(len(row.kind) for row in self.trace))
            lines.append(f"  {'module':<{wide}}   {'kind':<{kind}}   degree")
            lines += [
                f"  {name:<{wide}}   {row.kind:<{kind}}   {row.degree_in:>2} → {row.degree_out}"
                for name, row in zip(names, self.trace, strict=True)
            ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """A signed share of the score for every node and feature.

    With G graphs in the batch (G = 1 for a node task), N nodes and F features:

    Attributes:
        features: [N, F], signed shares φ; (X − X′) ⊙ ∫ ∇f dτ for the path methods.
        nodes: [N], the features summed (or a peer's own node score).
        target: [G], the explained output column.
        score: [G], f(X) at the target.
        baseline_score: [G], f(X′) at the target.
        residual: [G], Σφ − (f(X) − f(X′)), the completeness residual.
        evaluations: gradient evaluations per graph that were spent along the path.
        exact: True only where a certificate proves it.
        certificate: that proof, or None.
        method: the name of the algorithm.
        edges: [E], one score per column of edge_index, from methods that score edges.
        condition: [G], Σ|φ| / |Σφ|: how much of the shares cancels.
        subset: [N], the nodes that the rows speak of, where that is a part of the graph.
    """

    features: Tensor | None
    nodes: Tensor
    target: Tensor
    score: Tensor
    baseline_score: Tensor
    residual: Tensor
    evaluations: int
    exact: bool
    certificate: Certificate | None
    condition: Tensor | None = None
    method: str = ""
    edges: Tensor | None = None
    subset: Tensor | None = None

    def __repr__(self) -> str:
        size = tuple(self.features.shape if self.features is not None else self.nodes.shape)
        worst = float(self.residual.abs().max()) if self.residual.numel() else 0.0
        kind = "exact" if self.exact else "approximate"
        return (
            f"Attribution({self.method}, {kind}, shape={size}, graphs={self.residual.numel()}, "
            f"evaluations={self.evaluations}, max|residual|={worst:.1e})"
        )
