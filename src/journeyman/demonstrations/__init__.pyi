"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.demonstrations.cross_fitting import CrossFitted as CrossFitted
from journeyman.demonstrations.cross_fitting import clone_observations as clone_observations
from journeyman.demonstrations.cross_fitting import cross_fit as cross_fit
from journeyman.demonstrations.cross_fitting import listed_actions as listed_actions
from journeyman.demonstrations.demonstrations import Demonstrations as Demonstrations
from journeyman.demonstrations.expectation import Blend as Blend
from journeyman.demonstrations.expectation import ControlVariate as ControlVariate
from journeyman.demonstrations.expectation import ExpertExpectation as ExpertExpectation
from journeyman.demonstrations.expectation import MonteCarlo as MonteCarlo
from journeyman.demonstrations.expectation import SplitBlend as SplitBlend
from journeyman.demonstrations.expectation import StoppedShaping as StoppedShaping
from journeyman.demonstrations.expectation import clone as clone
from journeyman.demonstrations.recording import record as record
from journeyman.demonstrations.simulation import EpisodeTotals as EpisodeTotals
from journeyman.demonstrations.simulation import record_totals as record_totals

__all__: list[str]
