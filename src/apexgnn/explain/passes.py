"""One pass of a polynomial through the user's model.

The input is the path itself, shifted as a whole by δ: γ(τ) + δ, a polynomial of degree 1 in τ. The model's own
code carries it to the output, of degree D. No numbers but those at the wanted points are ever needed at the end, so

    wanted = {1}                       gives f(X) and the degree D: the certificate, for the price of a forward pass
    wanted = Gauss–Legendre points     gives f(γ(τ_k) + δ), whose derivative in δ at 0 is ∇f(γ(τ_k))
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from apexgnn.attribution import Certificate
from apexgnn.errors import GraphError
from apexgnn.explain.followed import followed
from apexgnn.explain.question import Question
from apexgnn.explain.untouched import one_call
from apexgnn.path.path import Path
from apexgnn.path.resolution import Grid, Resolution
from apexgnn.path.tensor import PathTensor


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The outputs [K, G, C] at the wanted points, and the degree that the model's operations give them.

    `entries` counts the entries of all tensors on the way by their degree.
    """

    values: Tensor
    certificate: Certificate
    entries: Counter[int]

    def memory(self, points: int) -> int:
        """Bytes that a pass at this many points takes: each tensor with its samples, and their gradient."""
        samples = sum(n * min(degree + 1, points) for degree, n in self.entries.items() if degree > 0)
        return 2 * samples * self.values.element_size()


def carry(question: Question, wanted: Resolution, shift: Tensor) -> Carried:
    """Carry the path, shifted by δ, through the model as it was found."""
    with followed(question.model) as follower:
        path = Path(Grid(wanted), follower.where)
        resolution = path.grid.at(1)
        tau = torch.tensor(resolution.points, dtype=shift.dtype, device=shift.device).view(-1, 1, 1)
        samples = question.baseline + tau * (question.x - question.baseline) + shift
        dice = torch.get_rng_state()
        try:
            with one_call(question.model), torch.compiler.set_stance("force_eager"):
                output = question.output(PathTensor(samples, 1, resolution, path))
                if not torch.equal(dice, torch.get_rng_state()):
                    why = "are drawn, so that the score is another one at every call; call model.eval()"
                    raise path.refuse("random numbers", why)
        except Exception as error:
            told = _told(question, path, error)
            if told is error:
                raise
            raise told from error
        if path.refusal is not None:
            raise path.refusal
        if not isinstance(output, PathTensor) or output.degree == 0:
            kind = "a constant" if isinstance(output, Tensor) else type(output).__name__
            raise path.refuse(
                "the output", f"is {kind}, not a tensor that depends on x through known operations"
            )
        values = question.rows(output.at(wanted))
        return Carried(values, Certificate(output.degree, follower.trace), path.entries)


def _told(question: Question, path: Path, error: Exception) -> Exception:
    """What an exception in the pass means: a refusal, features of a wrong width, or the model's own failure."""
    if path.refusal is not None:
        return path.refusal
    if isinstance(error, RuntimeError) and re.search("shapes cannot be multiplied|size mismatch", str(error)):
        got = f"{question.x.size(1)} features"
        return GraphError("data.x", got=got, expected=f"the width the model was built for ({error})")
    try:
        question.logits(question.x)
    except Exception:
        return error
    why = f"runs on plain tensors, but not on polynomials ({type(error).__name__}: {error})"
    return path.refuse("the code", why)
