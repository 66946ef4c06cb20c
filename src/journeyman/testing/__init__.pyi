"""Types of the public names; `__init__.py` loads them on first use."""

from journeyman.testing.random_worlds import Shape as Shape
from journeyman.testing.random_worlds import random_problem as random_problem
from journeyman.testing.random_worlds import random_world as random_world
from journeyman.testing.solver_conformance import check_solver as check_solver
from journeyman.testing.world_conformance import check_world as check_world
