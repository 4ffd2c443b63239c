"""What parameters may be whose names say nothing: guesses, of which a proof alone is told, with what was guessed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Any

from .definitions import Norm
from .functions import Parameters
from .python_objects import Config

# in the order in which forwards and backwards take them
ROLES = ("x", "residual", "weight", "bias")
OF_BACKWARD = ("dy", *ROLES)
TRAINED = ("weight", "bias")
# a dict whose entries have defaults, as in params.get("eps", 1e-5), or an object of settings that a layer is made of
OPTIONS = re.compile(r"(\w+_)?(params?|kwargs|options|config|cfg)")
# sizes of a model that are not the number of columns
OTHER_SIZES = re.compile("head|group|layers|vocab|intermediate|max_|block|batch|seq")
MOST = 8


class UnknownName(ValueError):
    """A parameter whose name says nothing. Args: names: of all such parameters"""

    def __init__(self, message: str, names: Sequence[str] = ()):
        super().__init__(message)
        self.names = names


def guesses(
    parameters: Parameters, unknown: Sequence[str], taken: Collection, norm: Norm
) -> Iterator[dict[str, Any]]:
    """What each parameter of an unknown name may be.

    For `self.a_2 * (x - mean) / std + self.b_2`, and for a forward of t. It stops no wrong program by itself: what is
    not proved with a guess is asked for by name, and accuses nobody.

    Args:  unknown: the names, in their order; taken: what the other parameters are; norm: the definitions
    """
    sizes = [name for name in unknown if name in parameters.sizes]
    if any(map(OTHER_SIZES.search, sizes)):
        return
    options = [name for name in unknown if OPTIONS.fullmatch(name)]
    options = [name for name in options if name not in sizes]
    unknown = [name for name in unknown if name not in options]
    trained = [name for name in unknown if name in parameters.trained]
    others = [name for name in unknown if name not in (*sizes, *trained)]
    count = 0
    for roles in combinations(_free(TRAINED, taken, norm), len(trained)):
        now_taken = {*taken, *roles}
        if sizes or trained:
            choices = [_free(ROLES, now_taken, norm)]
        else:
            choices = [_free(of, now_taken, norm) for of in (ROLES, OF_BACKWARD)]
        tried = []
        for free in choices:
            for of_others in combinations(free, len(others)):
                if of_others in tried or count == MOST:
                    continue
                tried.append(of_others)
                count += 1
                guess = {name: {} for name in options}
                for name in sizes:
                    guess[name] = Config() if OPTIONS.fullmatch(name) else "N"
                guess |= zip(trained, roles, strict=True)
                yield guess | dict(zip(others, of_others, strict=True))


def _free(roles, taken, norm):
    """The roles that the definitions have, and no other parameter."""
    return [r for r in roles if r in norm.tensors and r not in taken]
