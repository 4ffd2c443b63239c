"""The tolerances of the checks: all that `normgrad.tolerance` has, which computes them."""

from .. import tolerance
from ..tolerance import *  # noqa: F403

__all__ = tolerance.__all__
