"""The tolerances of the checks: all that `normgrad.tolerance` has, which computes them."""

from ..tolerance import (
    ELEMENTWISE as ELEMENTWISE,
)
from ..tolerance import (
    LARGEST as LARGEST,
)
from ..tolerance import (
    SAFETY as SAFETY,
)
from ..tolerance import (
    SIGNIFICAND as SIGNIFICAND,
)
from ..tolerance import (
    SMALLEST as SMALLEST,
)
from ..tolerance import (
    SMALLEST_NORMAL as SMALLEST_NORMAL,
)
from ..tolerance import (
    Bounds as Bounds,
)
from ..tolerance import (
    Dtypes as Dtypes,
)
from ..tolerance import (
    accumulator as accumulator,
)
from ..tolerance import (
    bounds as bounds,
)
from ..tolerance import (
    factor as factor,
)
from ..tolerance import (
    promoted as promoted,
)
from ..tolerance import (
    round_to as round_to,
)
from ..tolerance import (
    tangent_bound as tangent_bound,
)
from ..tolerance import (
    unit_roundoff as unit_roundoff,
)
