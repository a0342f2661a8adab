"""Why a launch takes as long as it does, and why another one takes longer."""

from pypto.sim.explanation.difference import Difference, compare
from pypto.sim.explanation.explanation import Explanation, explain
from pypto.sim.explanation.path import Step

__all__ = ["Difference", "Explanation", "Step", "compare", "explain"]
