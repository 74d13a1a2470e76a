"""For tests of explainers: the contract, and small random graphs."""

from apexgnn.testing.clauses import ContractError as ContractError
from apexgnn.testing.contract import check_explainer as check_explainer
from apexgnn.testing.graphs import random_graph as random_graph

__all__ = ["ContractError", "check_explainer", "random_graph"]
