"""The certificate: what degree the model's own operations give its score along the path."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from apexgnn.attribution import Certificate
from apexgnn.errors import NotPolynomialError
from apexgnn.explain.passes import Carried, carry
from apexgnn.explain.question import Call, Model, Question, ask
from apexgnn.explain.untouched import untouched
from apexgnn.path.resolution import Resolution

END = Resolution((1.0,))
BELIEVABLE = 2.0**-11  # relative: far beyond what rounding does, even in float32
_DIFFERS = "computes something else on polynomials than on plain tensors, or at every call"


def certify(
    model: Model, data: Data, *, index: int | Tensor | None = None, call: Call | None = None
) -> Certificate:
    """Prove that the model is polynomial in its node features, and of which degree.

    The proof is read off one forward pass on `data`, operation by operation. It holds for every input on which
    the model runs through the same operations.

    Args:
        model: called as PyTorch Geometric calls its models.
        data: a `Data` or `Batch`.
        index: the node to explain, for a node task; one in each graph of a batch, if there are several.
        call: `call(model, data)` for models with another signature.

    Raises:
        NotPolynomialError: naming the operation and the submodule that stand in the way.

    >>> from apexgnn.nn import PolyGIN
    >>> data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
    >>> certificate = certify(PolyGIN(2, 2, hidden_channels=4).eval(), data)
    >>> certificate.degree, certificate.points
    (16, 8)
    """
    question = ask(model, data, index=index, call=call)
    with untouched(model):
        carried, score = at_the_end(question), question.logits(question.x)
    found, size = carried.values[0], float(score.abs().max())
    if bool(((found - score).abs() > BELIEVABLE * size).any()):
        raise NotPolynomialError("the code", module="", reason=_DIFFERS)
    return carried.certificate


def at_the_end(question: Question) -> Carried:
    """A pass that asks for f(X) only: the certificate, and what a full pass will need."""
    return carry(question, END, torch.zeros_like(question.x))
