"""Every rule against the function itself: applied to the path, it must give the values along the path.

The values at the wanted points are compared with plain evaluations there, and the degree is checked from both
sides: the (D + 1)-th difference of the values vanishes, and the D-th does not.
"""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from apexgnn.path import Grid, Path, PathTensor, Resolution, lobatto

SHAPE = (4, 3)


def generator():
    return torch.Generator().manual_seed(5)


def along(function, *, wanted, shape=SHAPE, dtype=torch.float64):
    """The function of the path γ(τ) = a + τ b: as a PathTensor, and evaluated plainly at the wanted points."""
    a = torch.randn(shape, generator=generator(), dtype=dtype)
    b = torch.randn(shape, generator=torch.Generator().manual_seed(6), dtype=dtype)
    path = Path(Grid(Resolution(tuple(wanted))))
    resolution = path.grid.at(1)
    samples = torch.stack([a + tau * b for tau in resolution.points])
    moving = function(PathTensor(samples, 1, resolution, path))
    plain = [function(a + tau * b) for tau in wanted]
    return moving, plain


def pieces(result):
    return list(result) if isinstance(result, tuple | list) else [result]


M = torch.randn(3, 5, generator=generator(), dtype=torch.float64)
V3 = torch.randn(3, generator=generator(), dtype=torch.float64)
V4 = torch.randn(4, generator=generator(), dtype=torch.float64)
INDEX = torch.tensor([0, 2, 2, 1, 0])
TARGET = torch.tensor([1, 0, 1, 3])
MASK = torch.tensor([True, False, True, True])
with warnings.catch_warnings():  # torch calls its sparse layouts beta
    warnings.simplefilter("ignore", UserWarning)
    ENTRIES = torch.arange(1.0, 5, dtype=torch.float64)
    SPARSE = torch.sparse_coo_tensor([[0, 1, 3, 3], [1, 2, 0, 3]], ENTRIES, (4, 4))
    CSR = torch.sparse_csr_tensor([0, 1, 2, 2, 4], [1, 2, 0, 3], ENTRIES, (4, 4))
BATCH_NORM = (V3, V3.square() + 1, V3 + 2, V3)


def into_zeros(x):
    """What PyTorch Geometric's scatter does."""
    return x.new_zeros(5, 3).scatter_add_(0, TARGET.view(-1, 1).expand_as(x), x)


def into_zeros_written_before(x, write):
    """Zeros are fresh only until something is written into them, or into a view of them."""
    zeros = x.new_zeros(5, 3)
    write(zeros)
    return zeros.index_add(0, TARGET, x)


def by_an_index_that_changes(x):
    index = TARGET.clone()
    first = x.new_zeros(5, 3).index_add(0, index, x)
    return first - (x * x).new_zeros(5, 3).index_add(0, index.add_(1), x * x)


def into_the_same_zeros_twice(x):
    zeros = x.new_zeros(5, 3)
    return zeros.index_add_(0, TARGET, x).index_add_(0, TARGET, x * x)


def mean_by_counts(x):
    count = x.new_zeros(5).scatter_add_(0, TARGET, x.new_ones(4)).clamp(min=1)
    return into_zeros(x) / count.view(-1, 1)


def grown(x):
    y = x.clone()
    y += x
    y *= 2
    return y.mul_(x)


RULES = {  # name: (function, degree)
    "add": (lambda x: x + 2 * x, 1),
    "add a constant from the left": (lambda x: 1 + x, 1),
    "add with alpha": (lambda x: torch.add(x, x * x, alpha=3), 2),
    "add broadcasts up": (lambda x: x + torch.ones(2, 1, 1, dtype=x.dtype), 1),
    "add broadcasts rows": (lambda x: x.sum(0) + x, 1),
    "add mixed degrees": (lambda x: x + x * x + x**3, 3),
    "sub": (lambda x: x - x * x, 2),
    "rsub": (lambda x: 1 - x, 1),
    "negate": (lambda x: -x, 1),
    "clone": (lambda x: x.clone(), 1),
    "mul": (lambda x: x * x.flip(0), 2),
    "mul by a number": (lambda x: 3 * x, 1),
    "mul by a parameter": (lambda x: x * V3, 1),
    "mul broadcasts": (lambda x: x * x.sum(1, keepdim=True), 2),
    "mul broadcasts dimensions": (lambda x: x * (x @ V3).sum(), 2),
    "div by a number": (lambda x: x / 7, 1),
    "div by a constant": (lambda x: x / (V3 + 5), 1),
    "pow": (lambda x: x**3, 3),
    "pow of a float": (lambda x: x**2.0, 2),
    "torch.pow": (lambda x: torch.pow(x, 2), 2),
    "square": (lambda x: x.square(), 2),
    "square of a square": (lambda x: x.square().square(), 4),
    "addcmul": (lambda x: torch.addcmul(x, x, x, value=0.5), 2),
    "where": (lambda x: torch.where(MASK.view(-1, 1), x, x * x), 2),
    "in place": (grown, 2),
    "linear": (lambda x: F.linear(x, M.T, M[0]), 1),
    "linear of a moving weight": (lambda x: F.linear(x, x, x[:, 0]), 2),
    "matmul": (lambda x: x @ M, 1),
    "matmul from the left": (lambda x: M.T @ x.T, 1),
    "matmul with a vector": (lambda x: x @ V3, 1),
    "vector matmul": (lambda x: V4 @ x, 1),
    "vector by vector": (lambda x: x[0] @ x[1], 2),
    "matmul of both": (lambda x: x @ x.T, 2),
    "mm": (lambda x: torch.mm(x, M), 1),
    "mv": (lambda x: torch.mv(x, V3), 1),
    "bmm": (lambda x: torch.bmm(x.view(2, 2, 3), x.view(2, 3, 2)), 2),
    "batched matmul": (lambda x: x.view(2, 2, 3) @ M, 1),
    "matmul broadcasts batches": (lambda x: torch.stack([M.T, 2 * M.T]) @ x.T, 1),
    "addmm": (lambda x: torch.addmm(M[0], x, M, beta=2, alpha=3), 1),
    "sparse mm": (lambda x: torch.sparse.mm(SPARSE, x), 1),
    "sparse matmul": (lambda x: SPARSE @ x, 1),
    "sparse csr": (lambda x: CSR @ x, 1),
    "sparse by vector": (lambda x: CSR @ x[:, 0], 1),
    "einsum": (lambda x: torch.einsum("nf,fc->nc", x, M), 1),
    "einsum of two": (lambda x: torch.einsum("nf,mf->nm", x, x), 2),
    "einsum of three": (lambda x: torch.einsum("nf,nf,nf->n", x, x, x), 3),
    "einsum implicit": (lambda x: torch.einsum("ij,jk", x, M), 1),
    "einsum with dots": (lambda x: torch.einsum("...f,fc->...c", x.view(2, 2, 3), M), 1),
    "bilinear": (lambda x: F.bilinear(x, x, torch.ones(2, 3, 3, dtype=x.dtype), V3[:2]), 2),
    "batch norm, fixed": (lambda x: F.batch_norm(x, *BATCH_NORM, training=False), 1),
    "dropout, off": (lambda x: F.dropout(x * x, 0.5, training=False), 2),
    "cast": (lambda x: x.to(torch.float64).double().type_as(x), 1),
    "view": (lambda x: x.view(3, 4), 1),
    "reshape": (lambda x: x.reshape((-1,)), 1),
    "flatten": (lambda x: x.view(2, 2, 3).flatten(1), 1),
    "unflatten": (lambda x: x.unflatten(0, (2, 2)), 1),
    "unsqueeze": (lambda x: x.unsqueeze(0) + x.unsqueeze(-1).squeeze(-1), 1),
    "squeeze all": (lambda x: x.sum(0, keepdim=True).squeeze(), 1),
    "transpose": (lambda x: x.transpose(0, 1), 1),
    "t, T, mT": (lambda x: x.t() + x.T + x.mT, 1),
    "permute": (lambda x: x.view(2, 2, 3).permute(2, 0, 1), 1),
    "movedim": (lambda x: x.movedim(0, 1), 1),
    "expand": (lambda x: x.unsqueeze(0).expand(2, -1, -1), 1),
    "expand a new front": (lambda x: x.expand(2, 4, 3), 1),
    "expand_as": (lambda x: x.sum(0).expand_as(x), 1),
    "repeat": (lambda x: x.repeat(2, 1), 1),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, dim=0), 1),
    "cat": (lambda x: torch.cat([x, x * x, torch.ones_like(x), M.T[:4, :]]), 2),
    "cat columns": (lambda x: torch.cat((x, x), dim=-1), 1),
    "stack": (lambda x: torch.stack([x, x * x], dim=1), 2),
    "split": (lambda x: x.split([1, 3]), 1),
    "chunk": (lambda x: x.chunk(2, dim=1), 1),
    "unbind": (lambda x: x.unbind(1), 1),
    "unpack": (lambda x: [*x], 1),
    "narrow": (lambda x: x.narrow(0, 1, 2), 1),
    "select": (lambda x: x.select(1, 0), 1),
    "row": (lambda x: x[1], 1),
    "slice": (lambda x: x[1:, ::2], 1),
    "index": (lambda x: x[INDEX], 1),
    "index columns": (lambda x: x[:, INDEX], 1),
    "index, apart": (lambda x: x.view(2, 2, 3)[torch.tensor([0, 1]), :, torch.tensor([2, 0])], 1),
    "mask": (lambda x: x[MASK], 1),
    "ellipsis": (lambda x: x[..., None, 0], 1),
    "flip, roll": (lambda x: x.flip(0) + x.roll(1, 0), 1),
    "tril": (lambda x: x.tril(), 1),
    "masked_fill": (lambda x: x.masked_fill(MASK.view(-1, 1), 2.0), 1),
    "pad": (lambda x: F.pad(x, (1, 2), value=3.0), 1),
    "sum": (lambda x: x.sum(), 1),
    "sum over rows": (lambda x: x.sum(0), 1),
    "sum over both": (lambda x: x.sum((0, -1), keepdim=True), 1),
    "mean": (lambda x: x.mean(dim=-2), 1),
    "mean of all": (lambda x: x.mean(), 1),
    "cumsum": (lambda x: x.cumsum(0), 1),
    "index_select": (lambda x: x.index_select(0, INDEX), 1),
    "gather": (lambda x: x.gather(0, INDEX[:4].view(-1, 1).expand(4, 3)), 1),
    "scatter_add": (into_zeros, 1),
    "scatter mean": (mean_by_counts, 1),
    "scatter_add onto a square": (lambda x: (x * x).scatter_add(0, TARGET.view(-1, 1).expand(4, 3), x), 2),
    "index_add": (lambda x: x.new_zeros(5, 3).index_add(0, TARGET, x, alpha=2), 1),
    "index_add to one row": (lambda x: x.new_zeros(1, 3).index_add(0, torch.zeros_like(TARGET), x), 1),
    "index_add to ones": (lambda x: into_zeros_written_before(x, lambda z: z.add_(1)), 1),
    "index_add to a written view": (lambda x: into_zeros_written_before(x, lambda z: z[1].add_(V3)), 1),
    "index_add twice": (into_the_same_zeros_twice, 2),
    "index_add to plain zeros": (lambda x: torch.zeros(5, 3, dtype=x.dtype).index_add(0, TARGET, x), 1),
    "scatter_reduce": (
        lambda x: x.new_zeros(5, 3).scatter_reduce(
            0, TARGET.view(-1, 1).expand(4, 3), x, "mean", include_self=False
        ),
        1,
    ),
    "segment_reduce": (lambda x: torch.segment_reduce(x, "mean", offsets=torch.tensor([0, 1, 4]), axis=0), 1),
    "conv1d": (lambda x: F.conv1d(x.view(1, 4, 3), torch.ones(2, 4, 2, dtype=x.dtype)), 1),
    "a constant of it": (lambda x: x * torch.ones_like(x).sum() + x.new_full((3,), 2.0), 1),
    "asking for its shape": (lambda x: x.view(x.size(0) * x.shape[1]) * len(x) * x.dim() * x.numel(), 1),
}


@pytest.mark.parametrize("name", RULES)
def test_rule_gives_the_values_along_the_path(name):
    function, degree = RULES[name]
    wanted = np.linspace(0.1, 0.9, 7)
    moving, plain = along(function, wanted=wanted)
    for k, result in enumerate(pieces(moving)):
        values = torch.stack([pieces(p)[k] for p in plain])
        assert isinstance(result, PathTensor)
        assert result.degree == degree
        assert result.shape == values.shape[1:]
        torch.testing.assert_close(result.at(Resolution(tuple(wanted))), values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_degree_is_an_upper_bound_that_is_met(name):
    function, degree = RULES[name]
    _, plain = along(function, wanted=np.linspace(0, 1, degree + 2))
    values = torch.stack([torch.cat([p.flatten() for p in pieces(v)]) for v in plain])
    assert float(torch.diff(values, n=degree + 1, dim=0).abs().max()) < 1e-12 * float(1 + values.abs().max())
    assert float(torch.diff(values, n=degree, dim=0).abs().max()) > 1e-3


@pytest.mark.parametrize("name", RULES)
def test_gradient_flows_as_through_the_function_itself(name):
    """∂/∂δ of the values at γ(τ) + δ, which is what attribution needs."""
    function, _ = RULES[name]
    tau = 0.3
    base = torch.randn(SHAPE, generator=generator(), dtype=torch.float64)
    direction = torch.randn(SHAPE, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    plain = (base + tau * direction).requires_grad_()
    sum(p.sum() for p in pieces(function(plain))).backward()

    path = Path(Grid(Resolution((tau,))))
    shift = torch.zeros(SHAPE, dtype=torch.float64, requires_grad=True)
    samples = torch.stack([base + t * direction + shift for t in path.grid.at(1).points])
    sum(p.samples.sum() for p in pieces(function(PathTensor(samples, 1, path.grid.at(1), path)))).backward()
    torch.testing.assert_close(shift.grad, plain.grad, rtol=1e-12, atol=1e-12)


def test_an_index_written_into_is_another_index():
    moving, plain = along(by_an_index_that_changes, wanted=[0.1, 0.5, 0.8])
    torch.testing.assert_close(moving.samples, torch.stack(plain), rtol=1e-12, atol=1e-12)


def test_an_index_written_into_after_its_use_has_no_way_back_as_in_torch():
    path = Path(Grid(lobatto(1)))
    samples, index = torch.rand(2, 4, 3, requires_grad=True), TARGET.clone()
    for use in (lambda x: x.index_select(0, index), lambda x: x.new_zeros(5, 3).index_add(0, index, x)):
        used = use(PathTensor(samples, 1, lobatto(1), path))
        index.sub_(1).add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            used.samples.sum().backward()


def test_a_row_beyond_the_last_is_an_error_as_in_torch():
    for rows in (1, 3):
        with pytest.raises((IndexError, RuntimeError)):
            along(lambda x, rows=rows: x.new_zeros(rows, 3).index_add(0, TARGET, x), wanted=[0.1, 0.5])


def test_many_samples_when_no_points_are_wanted_yet():
    """With more wanted points than the degree needs, a polynomial is kept at its own d + 1 points."""
    moving, _ = along(lambda x: (x * x).sum(1), wanted=np.linspace(0, 1, 9))
    assert moving.resolution == lobatto(2)
    assert len(moving.samples) == 3


def test_the_wrapper_holds_no_numbers():
    moving, _ = along(lambda x: x, wanted=[0.5])
    with torch._C.DisableTorchFunctionSubclass():
        assert torch.Tensor.device.__get__(moving).type == "meta"
    assert repr(moving) == "PathTensor(shape=(4, 3), degree=1, samples=1)"
