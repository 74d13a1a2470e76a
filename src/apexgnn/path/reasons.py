"""Why the best-known operations that are not polynomial are refused, and what to do instead."""

from __future__ import annotations

_UNKNOWN = "has no rule, and an unknown operation is never taken for harmless"

_PIECEWISE = "is piecewise, not polynomial; a polynomial activation such as z + θz² is"
_EXPONENTIAL = "is not polynomial; explain the logits, before any probability"
_ORDER = "depends on the order of the values, which is not polynomial; use a sum or mean"
_DIVIDES = "divides by a function of the input"
_BRANCH = "turns values into decisions, and a branch on values is not polynomial"
_LEAVES = "takes the numbers out of the tensor, where no degree can be followed"
_CUTS = "cuts the derivative with respect to the input"
_RANDOM = "is random"

_REASONS = {
    _PIECEWISE: "relu relu_ relu6 leaky_relu leaky_relu_ elu elu_ selu celu prelu rrelu hardtanh hardswish "
    "hardsigmoid threshold abs abs_ clamp clamp_ clip sign round floor ceil softshrink hardshrink",
    _EXPONENTIAL: "softmax log_softmax sigmoid logsigmoid exp expm1 log log1p log2 softplus gelu silu mish tanh "
    "softsign logsumexp sin cos erf cross_entropy nll_loss scaled_dot_product_attention "
    "multi_head_attention_forward",
    _ORDER: "max min amax amin argmax argmin sort argsort topk median quantile kthvalue max_pool1d max_pool2d "
    "cummax maximum minimum",
    _DIVIDES: "layer_norm group_norm instance_norm normalize rms_norm reciprocal __rdiv__ __rtruediv__ rsqrt sqrt "
    "norm std var cosine_similarity",
    _BRANCH: "__bool__ gt ge lt le eq ne isnan isfinite isinf any all nonzero equal allclose isclose "
    "masked_select bincount logical_not bool",
    _LEAVES: "item __float__ __int__ __index__ numpy tolist __array__ data_ptr untyped_storage storage __dlpack__ "
    "__complex__ as_subclass __deepcopy__ __reduce_ex__",
    _CUTS: "detach detach_ Tensor.data requires_grad_",
    _RANDOM: "bernoulli multinomial rand_like randn_like normal_ uniform_ dropout_ alpha_dropout gumbel_softmax",
    "writes in place, where another tensor may share the memory": "__setitem__ copy_ fill_ index_put_ masked_fill_",
}
_REASON = {name: why for why, names in _REASONS.items() for name in names.split()}


def reason(name: str) -> str:
    """Why this operation is refused.

    >>> reason("relu")
    'is piecewise, not polynomial; a polynomial activation such as z + θz² is'
    """
    return _REASON.get(name, _UNKNOWN)
