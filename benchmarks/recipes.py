"""Recipes compared by validation alone, on divisions of training + validation drawn anew.

The test part is taken out first. What is left is divided at random into parts of the same sizes as before, once per
seed, and one model is trained on each division. Given are accuracy and loss on the validation part, averaged over the
last 30 % of the epochs (no best epoch is picked, so noise is not rewarded), and the difference from the recipe `fast`
on the same divisions, ± its standard error. The reach is how large the logits (less their mean over the classes) become
on the way from zero features, over their size at the data: max over τ of |f(τX)| / |f(X)|, the median of at most 100
validation outputs.

    python benchmarks/recipes.py bbbp [--model polygin] [--seeds 5] [--out results/recipes.jsonl] [epochs=80 …]
    python benchmarks/recipes.py --table [--out results/recipes.jsonl]

The remaining arguments are fields of the recipe to set, or of the model if they start with "model."
(model.theta=channel). Every division is one line of the file; one that is there already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import torch

from apexgnn.data.splits import Split
from apexgnn.experiments.table1 import SOURCE, read_cells
from apexgnn.nn import GIN, PolyGIN
from apexgnn.training import Recipe, fit, recipe
from apexgnn.training.run import Workload, commit, machine

LAST = 0.7


def division(fixed: Split, seed: int) -> Split:
    """Training and validation divided anew; the test part stays out."""
    rest = torch.cat([fixed.train, fixed.val])
    rest = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(1000 + seed))]
    return Split(rest[: len(fixed.train)], rest[len(fixed.train) :], fixed.test, "division", seed)


def trial(
    work: Workload, kind: str, chosen: Recipe, model_changes: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Train on one division."""
    model = work.model(kind, chosen)
    model = type(model)(**{**model.config, **model_changes})
    run = fit(model, work.quotient, division(work.split, seed), chosen, seed=seed)
    validation = division(work.split, seed).val[:100]
    last = [row for row in run.history if row.epoch > LAST * chosen.epochs]
    return {
        "validation_accuracy": fmean(row.validation_accuracy for row in last),
        "validation_loss": fmean(row.validation_loss for row in last),
        "reach": float(f"{reach(run.model, work, validation):.3g}"),
        "seconds": round(run.seconds, 1),
    }


@torch.no_grad()
def reach(model: PolyGIN | GIN, work: Workload, ids: torch.Tensor) -> float:
    """The median over outputs of max |f(τX)| / |f(X)|, τ = 0, 0.05, … 1."""
    node = work.data.task == "node"
    batch = work.data[0] if node else work.data.batch(ids)
    sizes = []
    for tau in torch.linspace(0, 1, 21):
        scores = model(tau * batch.x.float(), batch.edge_index, batch=None if node else batch.batch)
        scores = scores[ids] if node else scores
        sizes.append((scores - scores.mean(dim=1, keepdim=True)).abs().amax(dim=1))
    return float((torch.stack(sizes).amax(dim=0) / sizes[-1]).median())


def difference(line: dict[str, Any]) -> str:
    """In what a trial departs from the recipe `fast` as it is now."""
    now = recipe("fast", dataset=line["dataset"], model=line["model"]).settings()
    then, default = line["recipe"], asdict(Recipe("fast", 1, 1.0))
    said = {k: then.get(k, default[k]) for k in {**now, **then} if now.get(k) != then.get(k)}
    said |= line["model_changes"]
    return ", ".join(f"{k}={v}" for k, v in sorted(said.items()))


def table(lines: list[dict[str, Any]]) -> str:
    """Markdown, one row per trial: means, and the paired difference from the recipe `fast`."""
    groups: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["dataset"], line["model"], difference(line)), {})[line["seed"]] = line
    rows = [
        "| data set | model | departs from `fast` in | runs | validation, % | difference | loss | reach | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (dataset, model, departs), found in sorted(groups.items()):
        start = groups.get((dataset, model, ""), {})
        both = sorted(found.keys() & start.keys())
        gaps = [found[s]["validation_accuracy"] - start[s]["validation_accuracy"] for s in both]
        error = f" ± {stdev(gaps) / math.sqrt(len(gaps)):.2f}" if len(gaps) > 1 else ""
        gap = f"{fmean(gaps):+.2f}{error}" if departs and gaps else ""
        accuracy, loss, seconds = (
            fmean(line[key] for line in found.values())
            for key in ("validation_accuracy", "validation_loss", "seconds")
        )
        known = [line["reach"] for line in found.values() if "reach" in line]
        far = f"{median(known):.2g}" if known else ""
        rows.append(
            f"| {dataset} | {model} | {departs or '(nothing)'} | {len(found)} | {accuracy:.2f} | {gap} | {loss:.4f} "
            f"| {far} | {seconds:.0f} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Read the arguments, train what is missing, append it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("--model", default="polygin", choices=("polygin", "gin"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/recipes.jsonl"))
    parser.add_argument("--table", action="store_true", help="print what is there")
    parser.add_argument("changes", nargs="*", help="field=value")
    given = parser.parse_intermixed_args()
    if given.table or given.dataset is None:
        print(table(read_cells(given.out)))
        return
    changes = {key: _value(text) for key, text in (item.split("=", 1) for item in given.changes)}
    start = recipe("fast", dataset=given.dataset, model=given.model)
    chosen = replace(start, **{k: v for k, v in changes.items() if not k.startswith("model.")})
    model_changes = {k.removeprefix("model."): v for k, v in changes.items() if k.startswith("model.")}
    key = {"dataset": given.dataset, "model": given.model}
    key |= {"recipe": chosen.settings(), "model_changes": model_changes}
    work = Workload.of(SOURCE.get(given.dataset, given.dataset))
    for seed in range(given.seeds):
        if any((key | {"seed": seed}).items() <= line.items() for line in read_cells(given.out)):
            continue
        found = key | {"seed": seed} | trial(work, given.model, chosen, model_changes, seed)
        about = {"threads": torch.get_num_threads(), "machine": machine()}
        about |= {"torch": torch.__version__, "commit": commit()}
        with given.out.open("a") as file:
            file.write(json.dumps(found | about) + "\n")
        print(f"{given.dataset} {' '.join(given.changes)} division {seed}: {found}", flush=True)


def _value(text: str) -> Any:
    try:
        return json.loads(text.lower() if text in ("True", "False", "None") else text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
