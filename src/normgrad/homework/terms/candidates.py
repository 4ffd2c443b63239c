"""Every formula that one or two entries of the catalogue lead to, compiled so that all are tried at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from .dictionary import Table, Term
from .misconceptions import CATALOGUE
from .numbers import value
from .recipes import Part, expanded, parts, right_recipe
from .setting import Setting


@dataclass(frozen=True)
class Candidate:
    """A formula: the keys of the misconceptions that lead to it, and its parts."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Compiled:
    """Candidates as arrays: for candidate k the terms index[k] with the coefficients coefficient[k]."""

    candidates: tuple[Candidate, ...]
    terms: tuple[Term, ...]
    index: np.ndarray
    coefficient: np.ndarray

    def predictions(self, table: Table, shape: tuple[int, ...], entries: np.ndarray) -> np.ndarray:
        """What each candidate gives in some entries of the output: (candidates, entries)."""
        values = np.empty((len(self.terms), entries.size))
        whole = np.empty(shape)
        for at, term in enumerate(self.terms):
            whole[...] = table.value(term)
            values[at] = whole.ravel()[entries]
        total = 0.0
        for at in range(self.index.shape[1]):
            total = total + self.coefficient[:, at, None] * values[self.index[:, at]]
        return total


def right(output: str, setting: Setting) -> Candidate:
    """The right formula."""
    return Candidate((), tuple(parts(output, right_recipe(output, setting), setting)))


def _changes(output, setting, doubles=False):
    for entry in CATALOGUE:
        if entry.fits(setting) and not (doubles and entry.alone):
            for change in entry.changes(output):
                yield entry.key, expanded(change, output)


def _compile(found):
    terms, rows = {}, []
    zero = terms.setdefault(Term(("one",)), 0)
    width = max((len(candidate.parts) for candidate in found), default=1) or 1
    for candidate in found:
        row = [(terms.setdefault(part.term, len(terms)), part.coefficient) for part in candidate.parts]
        rows.append(row + [(zero, 0.0)] * (width - len(row)))
    filled = np.array(rows).reshape(len(rows), width, 2)
    return Compiled(tuple(found), tuple(terms), filled[..., 0].astype(int), filled[..., 1])


def _distinct(output, setting, changes):
    """The candidates of the changes that are neither the right formula nor a repetition."""
    base = right_recipe(output, setting)
    seen, found = {right(output, setting).parts}, []
    for keys, change in changes:
        made = tuple(parts(output, base | change, setting))
        if made not in seen and all(np.isfinite(part.coefficient) for part in made):
            seen.add(made)
            found.append(Candidate(keys, made))
    return found


@lru_cache(maxsize=64)
def singles(output: str, setting: Setting) -> Compiled:
    """Each look of each entry of the catalogue."""
    return _compile(_distinct(output, setting, (((key,), to) for key, to in _changes(output, setting))))


@lru_cache(maxsize=16)
def doubles(output: str, setting: Setting) -> Compiled:
    """Each pair of looks that change different fields, of two entries."""
    pairs = combinations(_changes(output, setting, doubles=True), 2)
    base = right_recipe(output, setting)
    apart = (
        ((first, second), one | two)
        for (first, one), (second, two) in pairs
        if first != second and not one.keys() & two.keys() and _effective(one, base) and _effective(two, base)
    )
    return _compile(_distinct(output, setting, apart))


def _effective(change, base):
    return any(base[field] != to for field, to in change.items())


# The field of a recipe that multiplies a part, and what a factor of it is called where no entry knows it.
_FIELDS = {"u": ("k0", "coefficient-u"), "c1": ("k1", "coefficient-c1"), "c2": ("k2", "coefficient-c2")}
_FIELDS |= {"g": ("kg", "coefficient-g"), "bias": ("kb", "coefficient-bias"), "x_hat": ("k", "constant-factor")}


def _ratio_names(output, setting, field, ratio, slack):
    """The entries that multiply one part by a ratio: one, or one for the sign and one for the size."""
    known = {}
    counts = setting.columns, setting.rows, setting.spec.reduce
    for key, change in _changes(output, setting):
        if change.keys() == {field}:
            known.setdefault(value(change[field], *counts), key)
    near = next((key for number, key in known.items() if abs(number - ratio) <= slack), None)
    if near is None and -1.0 in known:
        size = next((key for number, key in known.items() if abs(number + ratio) <= slack), None)
        return size and (known[-1.0], size)
    return near and (near,)


def names_of_ratios(output: str, setting: Setting, slots, ratio, slack) -> tuple[str, ...]:
    """The keys for right parts with wrong coefficients.

    Args:  slots: the part each ratio belongs to; ratio: found over right; slack: how far off each may be
    """
    norm = [at for at, slot in enumerate(slots) if slot != "g"]
    wrong = [at for at in range(len(slots)) if abs(ratio[at] - 1) > slack[at]]
    found = []
    if set(norm) <= set(wrong) and np.ptp(ratio[norm]) <= 2 * max(slack[norm]):
        found, wrong = ["constant-factor"], [at for at in wrong if at not in norm]
    for at in wrong:
        field, generic = _FIELDS.get(slots[at], ("all", "constant-factor"))
        found += _ratio_names(output, setting, field, ratio[at], slack[at]) or (generic,)
    return tuple(dict.fromkeys(found))
