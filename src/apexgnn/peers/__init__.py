"""Other explainers behind one interface: `get(name).explain(model, data)` gives an `Attribution`.

>>> import torch
>>> from torch_geometric.data import Data
>>> from apexgnn.nn import GIN
>>> data = Data(x=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
>>> get("saliency").explain(GIN(2, 2, hidden_channels=4), data).nodes.shape
torch.Size([3])
"""

from apexgnn.peers.explainer import Explainer as Explainer
from apexgnn.peers.registry import get as get
from apexgnn.peers.registry import names as names

__all__ = ["Explainer", "get", "names"]
