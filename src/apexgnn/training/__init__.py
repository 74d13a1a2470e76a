"""Training: recipes, a fast loop that survives a kill, and what it keeps.

>>> from apexgnn.data import load
>>> from apexgnn.nn import PolyGIN
>>> data = load("ba-shapes")
>>> quotient = Quotient.of(data.graphs, task="node")
>>> mine = Recipe("mine", epochs=2, learning_rate=1e-3, prepared=True)
>>> run = fit(PolyGIN(10, 4, task="node", hidden_channels=8), quotient, data.split(), mine, seed=0)
>>> run.best.validation_accuracy > 0
True
"""

from apexgnn.training.evaluate import evaluate as evaluate
from apexgnn.training.loop import Trained as Trained
from apexgnn.training.loop import fit as fit
from apexgnn.training.quotient import Quotient as Quotient
from apexgnn.training.recipes import Recipe as Recipe
from apexgnn.training.recipes import recipe as recipe
from apexgnn.training.state import Epoch as Epoch
from apexgnn.training.state import Keeping as Keeping

__all__ = ["Epoch", "Keeping", "Quotient", "Recipe", "Trained", "evaluate", "fit", "recipe"]
