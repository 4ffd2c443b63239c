"""One entry of the catalogue of misconceptions."""

from __future__ import annotations

from dataclasses import dataclass, field

from .setting import Setting

CENTRED, PLAIN, MEAN, SUM = "centred", "plain", "mean", "sum"
WEIGHT, BIAS, NO_BIAS, STREAM, SCALE, KAPPA = "weight", "bias", "no bias", "stream", "scale", "kappa"


@dataclass(frozen=True)
class Misconception:
    """A belief that leads to a wrong formula.

    Args:  key; title, what is wrong, naming the term; belief, what its author held for true; hint, which names no term
           and no coefficient
           equation: the label of the violated equation where it is not the output's own, or {output: label}
           looks: {output: changes of the right recipe}, "dx" standing for dresidual too
           when: one of the names above: the settings in which the entry has a meaning; "" is all
           alone: whether it is left out of double mistakes
    """

    key: str
    title: str
    belief: str
    hint: str
    equation: str | dict[str, str] = ""
    looks: dict[str, tuple[dict, ...]] = field(default_factory=dict)
    when: str = ""
    alone: bool = False

    def fits(self, setting: Setting) -> bool:
        """Whether the entry has a meaning in a setting: without a weight, none is forgotten."""
        spec = setting.spec
        kinds = {CENTRED: spec.center, PLAIN: not spec.center, MEAN: spec.reduce == "mean", SUM: spec.reduce == "sum"}
        kinds |= {WEIGHT: setting.weight, BIAS: setting.bias, NO_BIAS: not setting.bias, STREAM: setting.stream}
        kinds |= {SCALE: spec.scale != 1, KAPPA: setting.kappa}
        return kinds.get(self.when, True)

    def changes(self, output: str) -> tuple[dict, ...]:
        """How it looks in an output: none, one or several changes of the right recipe."""
        return self.looks.get("dx" if output == "dresidual" else output, ())
