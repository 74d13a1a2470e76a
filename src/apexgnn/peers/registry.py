"""The explainers by name. A name loads its module when it is asked for."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import Any

from apexgnn.errors import InputError
from apexgnn.peers.explainer import Explainer

_HOME: dict[str, tuple[str, str, dict[str, Any]]] = {
    "apex": ("apex", "Apex", {}),
    "random": ("dice", "Random", {}),
    "occlusion": ("occlusion", "Occlusion", {}),
    "saliency": ("gradient", "Saliency", {}),
    "input_x_gradient": ("gradient", "InputXGradient", {}),
    "gradcam": ("gradcam", "GradCAM", {}),
    "ig": ("integrated", "IntegratedGradients", {}),
    "captum_ig": ("integrated", "CaptumIG", {}),
    "gnnexplainer": ("gnnexplainer", "GNNExplainer", {}),
    "pgexplainer": ("pgexplainer", "PGExplainer", {}),
    "flowx": ("flowx", "FlowX", {}),
    "flowx_plus": ("flowx", "FlowX", {"variant": "plus"}),
    "flowx_minus": ("flowx", "FlowX", {"variant": "minus"}),
    "subgraphx": ("subgraphx", "SubgraphX", {}),
}


def names() -> tuple[str, ...]:
    """All explainers.

    >>> names()[:3]
    ('apex', 'random', 'occlusion')
    """
    return tuple(_HOME)


def get(name: str, **options: Any) -> Explainer:
    """The explainer of that name, with its options.

    >>> get("captum_ig", steps=8)
    CaptumIG(baseline=None, conversion=<Conversion.ENDPOINTS: 'endpoints'>, method='gausslegendre', steps=8)
    """
    if name not in _HOME:
        raise InputError("explainer", got=repr(name), expected="one of " + ", ".join(map(repr, _HOME)))
    module, kind, preset = _HOME[name]
    explainer: type[Explainer] = getattr(import_module(f"apexgnn.peers.{module}"), kind)
    valid = sorted(field.name for field in fields(explainer))
    for option in options:
        if option not in valid:
            raise InputError(f"{name} option", got=repr(option), expected="one of " + ", ".join(valid))
    return explainer(**preset, **options)
