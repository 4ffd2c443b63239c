"""What formula an answer with letters is: the fewest terms that are worth the same everywhere, with coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from ...checks.tolerance import unit_roundoff
from ...mistakes.table import find
from ..diagnosis.named import Diagnosis, named

# Rows, columns and N - 1 are three different numbers in one size at least, so that no factor is taken for another.
SIZES = ((2, 3), (3, 4), (2, 5))
SHEETS = 4  # with their letters, more equations than a formula has terms
MOST_TERMS = 3
# Sums of a few numbers in eighths are exact; what solving for a few coefficients loses is far below this.
CLOSE = 2**20 * unit_roundoff("float64")
NUMBERS = tuple(
    Fraction(n) * sign for n in ("1", "2", "1/2", "3", "1/3") for sign in (1, -1)
)
# Factors of a coefficient, above and below the line, and what they are worth by M and N.
FACTORS = {
    ("", ""): lambda m, n: 1,
    ("", "N"): lambda m, n: 1 / n,
    ("N", ""): lambda m, n: n,
    ("", "N**2"): lambda m, n: 1 / n**2,
    ("", "M"): lambda m, n: 1 / m,
    ("M", ""): lambda m, n: m,
    ("", "(M*N)"): lambda m, n: 1 / (m * n),
    ("M", "N"): lambda m, n: m / n,
    ("", "(N - 1)"): lambda m, n: 1 / (n - 1),
    ("(N - 1)", ""): lambda m, n: n - 1,
    ("(N - 1)", "N"): lambda m, n: 1 - 1 / n,
    ("(N + 1)", "N"): lambda m, n: 1 + 1 / n,
    ("(N - 1)", "N**2"): lambda m, n: (n - 1) / n**2,
    ("(N - 1)**2", "N**2"): lambda m, n: (1 - 1 / n) ** 2,
}


# Where an index goes: to a letter, into a sum of its own or one that is shared; in a table along the row or not.
ALONE, TOGETHER = "alone", "together"
ROW, COLUMN, ALL = "the row", "the column", "all"


@dataclass(frozen=True)
class Term:
    """A product of entries and sums.

    Args:  text: as SymPy prints it; value: its value by (arrays, point); places: {array: where its index goes}
    """

    text: str
    value: Callable
    places: tuple[tuple[str, str], ...]


def _entry(array, p, letter):
    return array[p[letter] - 1]


def _of_rows(arrays, letters) -> list[Term]:
    """Terms of vectors: each is left out, taken at a letter, summed with the others or by itself; a delta or none."""
    found = []
    delta = "*".join(f"KroneckerDelta({', '.join(letters)})" for _ in letters[1:])
    for marks in ["", delta] if delta else [""]:
        for places in product(
            ("", ALONE, TOGETHER, *(letters[:1] if marks else letters)),
            repeat=len(arrays),
        ):
            if places.count(TOGETHER) == 1:
                continue
            found.append(_term(marks, dict(zip(arrays, places, strict=True)), letters))
    entries = [Term(f"{arrays[0]}[{each}]", lambda A, p, each=each: _entry(A[arrays[0]], p, each), ((arrays[0], each),))
               for each in letters]  # fmt: skip
    pairs = combinations_with_replacement(entries, 2) if len(arrays) == 1 else ()
    for one, other in pairs:
        places = (*one.places, (f"{arrays[0]} again", other.places[0][1]))
        value = partial(
            lambda A, p, one, other: one.value(A, p) * other.value(A, p),
            one=one,
            other=other,
        )
        found.append(Term(f"{one.text}*{other.text}", value, places))
    return found


def _term(delta, places, letters):
    def at(place):
        return [name for name, each in places.items() if each == place]

    parts = [delta] * bool(delta)
    parts += [f"{name}[{place}]" for name, place in places.items() if place in letters]
    parts += [f"Sum({name}[r], (r, 1, N))" for name in at(ALONE)]
    together = at(TOGETHER)
    parts += [
        "Sum(" + "*".join(f"{name}[r]" for name in together) + ", (r, 1, N))"
    ] * bool(together)

    def value(A, p):
        found = float(p[letters[0]] == p[letters[-1]]) if delta else 1.0
        for name, place in places.items():
            if place in letters:
                found *= _entry(A[name], p, place)
        for name in at(ALONE):
            found *= A[name].sum()
        if together:
            found *= np.prod([A[name] for name in together], axis=0).sum()
        return found

    kept = {"delta": delta, **places}
    return Term(
        "*".join(parts) or "1",
        value,
        tuple((name, place) for name, place in kept.items() if place),
    )


def _of_tables() -> list[Term]:
    """Terms of two tables dy and x: by rows i that both share or each sums for itself, at the column j or over it."""

    def at(A, p, name, place):
        table = A[name]
        return table[:, p["j"] - 1] if place == COLUMN else table.sum(1)

    texts = {COLUMN: "{}[i, j]", ROW: "Sum({}[i, r], (r, 1, N))"}
    found = [Term("1", lambda A, p: 1.0, ())]
    for name in ("dy", "x"):
        for place, text in texts.items():
            found.append(
                Term(
                    f"Sum({text.format(name)}, (i, 1, M))",
                    lambda A, p, name=name, place=place: at(A, p, name, place).sum(),
                    ((name, place),),
                )
            )
    for one, other in product(texts, repeat=2):
        both = (("dy", one), ("x", other))
        found.append(
            Term(
                f"Sum({texts[one].format('dy')}*{texts[other].format('x')}, (i, 1, M))",
                lambda A, p, one=one, other=other: (
                    at(A, p, "dy", one) @ at(A, p, "x", other)
                ),
                both,
            )
        )
        apart = f"Sum({texts[one].format('dy')}, (i, 1, M))*Sum({texts[other].format('x')}, (i, 1, M))"
        found.append(
            Term(
                apart,
                lambda A, p, one=one, other=other: (
                    at(A, p, "dy", one).sum() * at(A, p, "x", other).sum()
                ),
                (*both, ("rows", "apart")),
            )
        )
    found.append(
        Term(
            "Sum(dy[i, r]*x[i, r], (i, 1, M), (r, 1, N))",
            lambda A, p: (A["dy"] * A["x"]).sum(),
            (("dy", ALL), ("x", ALL)),
        )
    )
    return found  # fmt: skip


@cache
def _terms(kinds) -> tuple[Term, ...]:
    letters, arrays = (
        [name for name, kind in kinds if kind == one] for one in ("letter", "array")
    )
    return tuple(
        _of_tables() if ("M", "length") in kinds else _of_rows(arrays, letters)
    )


def _coefficient(values) -> tuple[Fraction, str, str] | None:
    """(number, above, below) of a coefficient that has these values at SIZES; None where it is no simple one."""
    for (above, below), factor in FACTORS.items():
        for number in NUMBERS:
            if _same(values, [float(number) * factor(m, n) for m, n in SIZES]):
                return number, above, below
    return None


def _same(one, other) -> bool:
    return bool((np.abs(np.subtract(one, other)) <= CLOSE).all())


def _formula(terms, sheets, values) -> dict[Term, np.ndarray] | None:
    """{term: its coefficient at SIZES} of the fewest terms that give the values; None where no few of them do.

    Args:  sheets, values: for each of SIZES, the sheets and the values at all of their points
    """
    tables = [np.array([[t.value(sheet.arrays, p) for t in terms] for sheet in of_size for p in sheet.points()])
              for of_size in sheets]  # fmt: skip
    for count in range(1, MOST_TERMS + 1):
        for chosen in combinations(range(len(terms)), count):
            solved = [
                _solved(table[:, chosen], value)
                for table, value in zip(tables, values, strict=True)
            ]
            if any(each is None for each in solved):
                continue
            found = {
                terms[k]: np.array(each)
                for k, each in zip(chosen, zip(*solved, strict=True), strict=True)
            }
            if None not in map(_coefficient, found.values()):
                return found
    return None


def _solved(columns, value):
    """The coefficients with which the columns make up the value; None where they do not."""
    found, *_ = np.linalg.lstsq(columns, value, rcond=None)
    return (
        found
        if np.abs(columns @ found - value).max() <= CLOSE * (1 + np.abs(value).max())
        else None
    )


def _text(term, values) -> str:
    """A term with its coefficient, the sign apart."""
    number, above, below = _coefficient(values)
    top = [
        each
        for each in (str(abs(number.numerator)), above, term.text)
        if each not in ("", "1")
    ]
    under = [each for each in (str(number.denominator), below) if each not in ("", "1")]
    below = (
        "/" + (under[0] if len(under) == 1 else f"({'*'.join(under)})") if under else ""
    )
    return f"{'-' if number < 0 else '+'} {'*'.join(top) or '1'}{below}"


def _written(formula) -> str:
    return " ".join(
        _text(term, values) for term, values in formula.items()
    ).removeprefix("+ ")


def _changed(yours, needed) -> str:
    """The key of a coefficient that is another one."""
    if _same(yours, -needed):
        return "term-sign"
    sizes = np.array(SIZES)
    if _same(yours, needed * sizes[:, 1]):
        return "mean-is-a-sum"
    return "rows-averaged" if _same(yours, needed / sizes[:, 0]) else "term-factor"


def _other(given, needed) -> str:
    """The key of a term that stands in the place of another."""
    given, needed = dict(given.places), dict(needed.places)
    if set(given) != set(needed):
        more, less = set(given) - set(needed), set(needed) - set(given)
        if len(more | less) > 1:
            return "term-replaced"
        (name,) = more | less
        return {
            "delta": "delta-extra" if more else "delta-is-one",
            "rows": "rows-apart",
        }.get(name, "factor-extra" if more else "factor-left-out")
    moved = [
        (needed[name], given[name]) for name in needed if needed[name] != given[name]
    ]
    if {was for was, _ in moved} == {TOGETHER}:
        return "sum-split" if {now for _, now in moved} == {ALONE} else "pulled-out"
    if {was for was, _ in moved} == {now for _, now in moved} and len(moved) > 1:
        return "arrays-exchanged"
    sums = {ALONE, TOGETHER, ROW, ALL}
    if all(now in sums for _, now in moved):
        return "sum-for-entry"
    return (
        "entry-for-sum" if all(was in sums for was, _ in moved) else "letters-exchanged"
    )


def _differences(yours, needed) -> list[tuple[str, str]]:
    """(key, your term in words, if it is there) of each place where a formula differs from the right one."""
    found, zero = [], np.zeros(len(SIZES))
    gap = {
        term: yours.get(term, zero) - needed.get(term, zero)
        for term in {**needed, **yours}
    }
    gone = [term for term in needed if _same(gap[term], -needed[term])]
    added = [term for term in gap if term not in gone and not _same(gap[term], zero)]
    for term in list(gone):
        # In its place stands what came with the same coefficient, and is no other term a second time; or else the only
        # thing that came.
        same = [each for each in added
                if _same(gap[each], needed[term]) and not _same(gap[each], needed.get(each, zero))]  # fmt: skip
        same = same or (
            [each for each in added if each not in needed]
            if len(gone) == len(added) == 1
            else []
        )
        if same:
            gone.remove(term)
            added.remove(same[0])
            text = _text(same[0], gap[same[0]])
            found.append((_other(same[0], term), text))
            # Its size changes with what it sums; its sign does not.
            if (gap[same[0]] * needed[term] < 0).all():
                found.append(("term-sign", text))
    found += [("term-missing", "") for _ in gone]
    for term in added:
        key = _changed(yours[term], needed[term]) if term in needed else "term-extra"
        found.append((key, _text(term, yours.get(term, gap[term]))))
    return found


def fitted(exam, name) -> list[Diagnosis]:
    """What the formula of a wrong answer says about it: at most two differences from the right one, or the formula.

    Args:  exam: whose student is asked for a few more values; name: of the result
    """
    oracle = exam.task.oracle
    if "formulas" not in exam.shared:
        exam.shared["formulas"] = _formulas(exam)
    formulas = exam.shared["formulas"]
    yours, needed = formulas[name]
    if not yours or not needed:
        return []
    ways = {name: _differences(yours, needed)}
    for result, (other, right) in formulas.items():
        # Another result's formula stands here only where that one has another's, too.
        if right and not (other and _alike(other, right)):
            ways.setdefault(result, _differences(yours, right))
    nearest = min(ways, key=lambda result: (len(ways[result]), result != name))
    found = ways[nearest] if len(ways[nearest]) <= 2 else [("another-formula", "")]
    diagnoses = [named("results-swapped")] if nearest != name else []
    own = f"pg-{nearest}"  # where it has one, the equation of the result itself
    for key, text in found:
        mistake = find(key, "hw1")
        title = mistake.title + (f": {text.removeprefix('+ ')}" if text else "")
        label = (
            own
            if own in exam.task.equations
            else mistake.equation or exam.task.equations[0]
        )
        diagnoses.append(
            named(key, _written(yours), oracle.texts[name], label, "hw1", title)
        )
    return diagnoses


def _formulas(exam) -> dict:
    """{result: (the student's formula, the right one)}, None where none is found."""
    oracle, rng = exam.task.oracle, exam.draw.rng(exam.task.name, "fit")
    sheets = [
        [oracle.sheet(rng, dict(zip("MN", size, strict=True))) for _ in range(SHEETS)]
        for size in SIZES
    ]
    asked = [
        [exam.ask(oracle.request(sheet)).values for sheet in of_size]
        for of_size in sheets
    ]
    found = {}
    for place, result in enumerate(oracle.results):
        given = [[values[place].numbers for values in of_size] for of_size in asked]
        right = [
            [oracle.expected(sheet)[result][0] for sheet in of_size]
            for of_size in sheets
        ]
        found[result] = tuple(
            _read(oracle, sheets, values, right) for values in (given, right)
        )
    return found


def _read(oracle, sheets, values, like):
    """The formula of values on sheets; None where they are no numbers of the right shape, or no formula is found."""
    for of_size, right in zip(values, like, strict=True):
        if any(
            a.shape != b.shape or not np.isfinite(a).all()
            for a, b in zip(of_size, right, strict=True)
        ):
            return None
    return _formula(
        _terms(oracle.kinds), sheets, [np.concatenate(each) for each in values]
    )


def _alike(one, other) -> bool:
    return one.keys() == other.keys() and all(
        _same(one[term], other[term]) for term in one
    )
