"""Runs are functions of their arguments: seeds, kills, and the plain PyG loop in the same order of batches."""

import copy
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_mean_pool

from apexgnn.errors import InputError, TrainingError
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training import Keeping, Quotient, Recipe, fit, recipe
from apexgnn.training.recipes import MODELS
from apexgnn.training.state import restore_state
from training.toys import graphs, packed, split

FAST = Recipe(
    "r", 6, 3e-3, 16, schedule="one-cycle", clip=1.0, prepared=True, theta_init=0.5, average=0.9, settle=0.5
)
PLAIN = Recipe("plain", 5, 1e-3, 16, dropout=0.0)


def small(kind=PolyGIN, **options):
    return kind(4, 2, hidden_channels=8, **options)


def same(first, second):
    return all(
        torch.equal(a, b)
        for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


@pytest.fixture(scope="module")
def quotient():
    return Quotient.of(packed())


@pytest.mark.parametrize("kind", [PolyGIN, GIN])
def test_the_seed_decides_everything(quotient, kind):
    first, second = (fit(small(kind), quotient, split(), FAST, seed=3) for _ in range(2))
    other = fit(small(kind), quotient, split(), FAST, seed=4)
    assert same(first.model, second.model)
    assert first.history == second.history
    assert not same(first.model, other.model)


def test_the_callers_random_numbers_are_left_alone(quotient):
    model = small()
    torch.manual_seed(11)
    expected = torch.rand(2)
    torch.manual_seed(11)
    fit(model, quotient, split(), replace(FAST, epochs=1), seed=0)
    assert torch.equal(torch.rand(2), expected)


class PygGIN(nn.Module):
    """The reference as PyG users write it."""

    def __init__(self, width=8):
        super().__init__()
        sizes = [(4, width), (width, width), (width, width)]
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b), nn.ReLU())) for a, b in sizes
        )
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.0), nn.Linear(width, 2))

    def forward(self, data):
        x = data.x
        for conv in self.convs:
            x = conv(x, data.edge_index)
        return self.head(global_mean_pool(x, data.batch))


def test_the_loss_curve_is_that_of_the_plain_pyg_loop(quotient):
    run = fit(small(GIN, dropout=0.0), quotient, split(), PLAIN, seed=5)
    start = small(GIN, dropout=0.0)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        start.reset_parameters()
    model, data, train = PygGIN(), graphs(), split().train.numpy()
    model.load_state_dict(
        {re.sub(r"^(convs\.\d+)", r"\1.nn", k): v for k, v in start.state_dict().items()}, strict=False
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=PLAIN.learning_rate, weight_decay=PLAIN.weight_decay)
    curve = []
    for epoch in range(PLAIN.epochs):
        order = np.random.default_rng([5, epoch]).permutation(train)
        total = 0.0
        for batch in DataLoader([data[i] for i in order], batch_size=PLAIN.batch_size):
            loss = nn.functional.cross_entropy(model(batch), batch.y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * batch.num_graphs
        curve.append(total / len(train))
    np.testing.assert_allclose([row.train_loss for row in run.history], curve, rtol=2e-5)


CHILD = """
import sys, time
from pathlib import Path
import training.test_loop as t
from apexgnn.training import Keeping, Quotient, fit
import torch
torch.set_num_threads(1)
t.fit(t.small(), Quotient.of(t.packed()), t.split(), t.replace(t.FAST, epochs=120), seed=1,
      keeping=Keeping(Path(sys.argv[1]), every=0.0), report=lambda row: print(row.epoch, flush=True))
"""


def test_a_run_killed_in_mid_epoch_ends_at_the_same_weights(quotient, tmp_path):
    long = replace(FAST, epochs=120)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        whole = fit(small(), quotient, split(), long, seed=1)
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)], env=environment, stdout=subprocess.PIPE, text=True
        ) as child:
            for line in child.stdout:
                if int(line) >= 20:
                    break
            time.sleep(0.05)
            child.send_signal(signal.SIGKILL)
        assert child.returncode == -signal.SIGKILL
        resumed = fit(small(), quotient, split(), long, seed=1, keeping=Keeping(tmp_path))
    finally:
        torch.set_num_threads(threads)
    assert same(whole.model, resumed.model)
    assert whole.history == resumed.history


@pytest.mark.parametrize(
    "kind, options",
    [(PolyGIN, {}), (PolyGIN, {"batch_norm": True, "scale_each": True}), (GIN, {"average": 0.0})],
)
def test_every_single_step_can_be_the_last(quotient, tmp_path, monkeypatch, kind, options):
    """Stop after each step in turn, also in mid-epoch; the rest of the run is the same."""
    short = replace(FAST, epochs=2, **options)
    whole = fit(small(kind), quotient, split(), short, seed=2)
    from apexgnn.training import loop

    stepped = loop._Run._step
    for last in range(1, 6):

        def step(run, *args, last=last):
            if run.progress.step >= last:
                raise KeyboardInterrupt
            stepped(run, *args)

        folder = tmp_path / str(last)
        with monkeypatch.context() as patch:
            patch.setattr(loop._Run, "_step", step)
            with pytest.raises(KeyboardInterrupt):
                fit(small(kind), quotient, split(), short, seed=2, keeping=Keeping(folder, every=0.0))
        resumed = fit(small(kind), quotient, split(), short, seed=2, keeping=Keeping(folder))
        assert same(whole.model, resumed.model)
        assert whole.history == resumed.history


def test_another_runs_state_is_refused(quotient, tmp_path):
    fit(small(), quotient, split(), FAST, seed=0, keeping=Keeping(tmp_path))
    with pytest.raises(TrainingError, match="seed was 0 and is 1"):
        fit(small(), quotient, split(), FAST, seed=1, keeping=Keeping(tmp_path))


def test_a_damaged_state_is_refused(tmp_path):
    (tmp_path / "state.safetensors").write_bytes(b"\x10" * 40)
    with pytest.raises(TrainingError, match="delete it"):
        restore_state(tmp_path / "state.safetensors", {}, {})


def test_divergence_is_noticed(quotient):
    wild = Recipe("wild", 30, 1e6, 16)
    with pytest.raises(TrainingError, match=r"diverged.*lower the learning rate"):
        fit(small(), quotient, split(), wild, seed=0)


def test_patience_ends_a_run_early(quotient):
    hopeless = Recipe("still", 50, 1e-12, 16, patience=3)
    run = fit(small(GIN), quotient, split(), hopeless, seed=0)
    assert len(run.history) <= run.best.epoch + 3 < 50


def test_the_best_epoch_is_the_validation_best_of_the_settled_part(quotient):
    run = fit(small(), quotient, split(), FAST, seed=0)
    settled = run.history[3:]
    assert run.best == max(settled, key=lambda row: (row.validation_accuracy, -row.validation_loss))


def test_the_final_model_takes_features_as_they_are(quotient):
    from apexgnn.training import evaluate

    run = fit(small(), quotient, split(), FAST, seed=0)
    accuracy, loss = evaluate(run.model, quotient, split().val.numpy())
    assert accuracy == run.best.validation_accuracy
    assert loss == pytest.approx(run.best.validation_loss, rel=1e-4)


def test_preparation_keeps_the_architecture(quotient):
    model = small()
    expected = copy.deepcopy(model)
    run = fit(model, quotient, split(), FAST, seed=0)
    assert {k: v.shape for k, v in run.model.state_dict().items()} == {
        k: v.shape for k, v in expected.state_dict().items()
    }


@pytest.mark.parametrize("dataset", ["ba-shapes", "bbbp", "bace", "graph-sst2", "mutagenicity"])
def test_recipes_exist_and_fast_is_not_longer(dataset):
    for model in MODELS:
        fast, paper = (recipe(name, dataset=dataset, model=model) for name in ("fast", "paper"))
        assert fast.epochs <= paper.epochs
        assert (paper.weight_decay, paper.batch_size, paper.schedule) == (5e-6, 32, "constant")


@pytest.mark.parametrize(
    "wrong", [{"schedule": "cosine"}, {"average": 1.0}, {"epochs": 0}, {"batch_size": -1}]
)
def test_recipes_are_checked(wrong):
    with pytest.raises(InputError):
        Recipe(**{"name": "r", "epochs": 1, "learning_rate": 1.0, **wrong})
