"""What each torch function does to polynomials in τ, by family. Importing this package fills the rule book."""

from apexgnn.path.rules import algebra as algebra
from apexgnn.path.rules import metadata as metadata
from apexgnn.path.rules import products as products
from apexgnn.path.rules import structure as structure
from apexgnn.path.rules import sums as sums
from apexgnn.path.rules.registry import rule as rule
