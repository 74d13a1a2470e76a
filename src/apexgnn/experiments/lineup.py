"""Who takes part, with which settings, and under which name in the results.

    apex              exact attribution from the zero baseline, the paper's method
    apex-permutation  the mean of 20 exact attributions, each from the graph's own rows shuffled: the baseline that the
                      metric itself masks with
    ig                50 points of the right Riemann sum, which the paper writes down for integrated gradients
    captum-gl8        Captum's Gauss–Legendre rule with the 8 points that the certificate asks for
    flowx             Monte Carlo marginal contributions of flows over 30 orders; its two learned variants (500 epochs
                      per graph) cost six times as much and are left to `apexgnn compare`; on BA-Shapes, where a node
                      sees 230 others, 10 orders in 20 steps instead of 30 in 100
    gnnexplainer      100 epochs, the authors' number
    pgexplainer       learned on 50 training graphs (15 nodes of BA-Shapes), 30 epochs
    occlusion         one node at a time to zero
    gradcam, saliency, random

SubgraphX (2.5 s for a molecule, minutes for a subgraph of BA-Shapes) is not affordable here on one core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apexgnn import peers
from apexgnn.explain.baselines import Permutation
from apexgnn.peers import Explainer


@dataclass(frozen=True, slots=True)
class Method:
    """A method as it takes part.

    Attributes:
        name: in the results.
        peer: in `apexgnn.peers`.
        options: of the peer.
        costly: other options on data sets where these would take too long.
        learns: fitted on training graphs first.
        exact: needs a polynomial model.
        signed: gives scores of both signs, so that ranking by |φ| is another ranking.

    >>> METHODS["captum-gl8"].explainer()
    CaptumIG(baseline=None, conversion=<Conversion.ENDPOINTS: 'endpoints'>, method='gausslegendre', steps=8)
    """

    name: str
    peer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    costly: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    learns: bool = False
    exact: bool = False
    signed: bool = False

    def explainer(self, dataset: str = "") -> Explainer:
        """The explainer with the options for a data set, not fitted."""
        return peers.get(self.peer, **{**self.options, **self.costly.get(dataset, {})})


METHODS = {
    method.name: method
    for method in (
        Method("apex", "apex", exact=True, signed=True),
        Method("apex-permutation", "apex", {"baseline": Permutation(draws=20)}, exact=True),
        Method("ig", "ig", {"rule": "right", "steps": 50}, signed=True),
        Method("captum-gl8", "captum_ig", {"steps": 8}),
        Method("saliency", "saliency"),
        Method("gradcam", "gradcam"),
        Method("occlusion", "occlusion", signed=True),
        Method("pgexplainer", "pgexplainer", learns=True),
        Method("gnnexplainer", "gnnexplainer"),
        Method("flowx", "flowx", costly={"ba-shapes": {"samples": 10, "chunks": 20}}),
        Method("random", "random"),
    )
}

LABELS = {
    "apex": "APEX",
    "apex-permutation": "APEX, permutation baseline",
    "ig": "IG, 50 points",
    "captum-gl8": "Captum GL, 8 points",
    "saliency": "Saliency",
    "gradcam": "Grad-CAM",
    "occlusion": "Occlusion",
    "pgexplainer": "PGExplainer",
    "gnnexplainer": "GNNExplainer",
    "flowx": "FlowX",
    "random": "Random (control)",
}


def methods_of(kind: str) -> tuple[Method, ...]:
    """The methods that take part on a "polygin" or a "gin".

    >>> "apex" in [m.name for m in methods_of("polygin")], "apex" in [m.name for m in methods_of("gin")]
    (True, False)
    """
    return tuple(m for m in METHODS.values() if kind == "polygin" or not m.exact)
