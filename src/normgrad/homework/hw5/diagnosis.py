"""Which formula a wrong result of homework 5 follows; a name holds in all trials that failed, or is not given."""

from __future__ import annotations

import numpy as np

from ...checks.tolerance import ELEMENTWISE, SIGNIFICAND
from ...mistakes.table import find
from ..diagnosis.named import Diagnosis, named

RIGHT, RECIPROCAL = "var = mean((x - mean)**2)", "rstd = 1 / sqrt(var + eps)"
MERGED = {
    "mean": "mean = mean1 + n2 / n * (mean2 - mean1)",
    "squares": "squares = squares1 + squares2 + n1 * n2 / n * (mean2 - mean1)**2",
}
U = 2.0 ** -SIGNIFICAND["float32"]
# What rounding may do to a formula that is evaluated in another order, in units of the size of its terms.
LOOSE = 64 * U
MOST = 0.5
# A step of Newton leaves 2e-3 of a root's reciprocal; an eps in another place moves it by a third in some of the rows.
ROUGH = 0.01
# On a spacing so many times the result's own, no result lies by chance more than one time in so many.
COARSE = 16
LONGEST_BLOCK, MOST_BLOCKS = 256, 8


def _named(*words) -> list[Diagnosis]:
    return [named(*words)]


def spacing(size) -> np.ndarray:
    """The distance between float32 numbers of a size."""
    return 2.0 ** (
        np.floor(np.log2(np.maximum(size, 1e-30))) + 1 - SIGNIFICAND["float32"]
    )


def of_rows(name, failed) -> list[Diagnosis]:
    """[] or one Diagnosis of a wrong result.

    Args:  failed: (trial, {result: numbers}, {result: (value, bound)}) of the trials in which it is wrong
    """
    formulas = {
        "var": _variances,
        "mean": _means,
        "rstd": _reciprocals,
        "x_hat": _normalized,
    }[name]
    key, words = _fitting(name, [formulas(*each) for each in failed], failed)
    if (
        not key
        and name == "rstd"
        and all(_nearly(trial, got) for trial, got, _ in failed)
    ):
        key = "rough-root"
    if not key:
        return []
    label = find(key).equation if name in ("var", "mean") else ""
    return [
        named(
            key,
            words,
            {"var": RIGHT, "rstd": RECIPROCAL}.get(name, ""),
            label or "fp-statistics",
        )
    ]


def _nearly(trial, got) -> bool:
    """Whether rstd is that of the student's own variances up to a small share, in every row."""
    share = np.abs(got["rstd"] * np.sqrt(got["var"] + trial.eps) - 1)
    return bool((share <= ROUGH).all() and (share > LOOSE).any())


def _fitting(name, tables, failed):
    """(key, formula) of the one entry that explains all trials; "" for the formula where several of one key do."""
    fits = {}
    for words in set.intersection(*map(set, tables)):
        pairs = zip(tables, failed, strict=True)
        entries = [
            (got[name], *known[name], *table[words][1:])
            for table, (_, got, known) in pairs
        ]
        if all(
            _near(got, value, slack) for got, _, _, value, slack in entries
        ) and _tells(entries):
            fits[words] = tables[0][words][0]
    if len(set(fits.values())) != 1:
        return "", ""
    (words, key), *others = fits.items()
    return key, "" if others else f"{name} = {words}"


def _tells(entries) -> bool:
    """Whether a formula differs from the right one in most of what is wrong. Args: (got, exact, bound, value, slack)"""
    apart = []
    for got, exact, bound, value, slack in entries:
        wrong = ~(np.abs(got - exact) <= bound)
        apart += (~(np.abs(value - exact) <= slack))[wrong].tolist()
    return float(np.mean(apart)) >= MOST


def _near(got, value, slack) -> bool:
    return bool(((got == value) | (np.abs(got - value) <= slack)).all())


def _variances(trial, got, known) -> dict:
    """{formula: (key, value, how far off it may be)}."""
    (exact, error), mean, n = known["var"], known["mean"][0], trial.x.shape[-1]
    if n == 1:
        return {}
    grown = {
        "sum((x - mean)**2) / (N - 1)": ("bessel", exact * n / (n - 1)),
        "sum((x - mean)**2)": ("reduce-exchanged", exact * n),
        "mean(x**2)": ("variance-uncentred", (trial.x**2).mean(-1)),
        "sqrt(mean((x - mean)**2))": ("deviation-for-variance", np.sqrt(exact)),
        "mean over all rows": ("wrong-axis", np.full(exact.shape, exact.mean())),
        "mean((x - mean)**2) + eps": ("eps-in-variance", exact + trial.eps),
    }
    for words, shift in {
        "x": 0,
        "(x - x[:, 0])": trial.x[:, :1],
        "(x - x[:, -1])": trial.x[:, -1:],
    }.items():
        off = ((trial.x - shift).sum(-1) ** 2) / n
        grown[f"(sum({words}**2) - sum({words})**2) / N"] = (
            "sum-not-divided",
            exact + off / n - off,
        )
        grown[f"max(sum({words}**2) - sum({words})**2, 0) / N"] = (
            "sum-not-divided",
            np.maximum(exact + off / n - off, 0),
        )
    found = {
        words: (key, v, error * np.maximum(1, v / np.maximum(exact, 1e-30)))
        for words, (key, v) in grown.items()
    }
    halves = _like_halves(trial.x)[1]
    if np.abs(halves - exact).max() > error.max():
        found["(var1 + var2) / 2 + (mean2 - mean1)**2 / 4, by halves of the row"] = (
            "merge-weights",
            halves,
            error,
        )
    for words, value in _without_distances(trial.x):
        found[words] = "block-distances", value, error
    sums = np.cumsum((trial.x - mean[:, None]) ** 2, axis=-1)
    for place, ends in {
        "x[:, 0]": sums[:, -1] - sums[:, 0],
        "x[:, -1]": sums[:, -2],
    }.items():
        for words, count in {"N": n, "(N - 1)": n - 1}.items():
            each = f"sum((x - mean)**2) / {words}, without {place}"
            found[each] = "columns-left-out", ends / count, error
    for size in range(2, min(n, LONGEST_BLOCK + 1)):
        full = n // size * size
        for words, count in {"N": n, "their number": full}.items():
            each = (
                f"sum((x - mean)**2) / {words}, without the last N mod {size} entries"
            )
            found[each] = "columns-left-out", sums[:, full - 1] / count, error
    for words, shift in {
        "x - x[:, 0]": trial.x[:, :1],
        "x - x[:, -1]": trial.x[:, -1:],
    }.items():
        whole = exact + (trial.x - shift).mean(-1) ** 2
        found[f"mean(d**2), with d = {words}"] = (
            "variance-uncentred",
            whole,
            LOOSE * whole,
        )
    steps = np.diff(trial.x, axis=-1) ** 2
    around = steps.sum(-1) + (trial.x[:, 0] - trial.x[:, -1]) ** 2
    for words, value in {
        "N": steps.sum(-1) / n,
        "(N - 1)": steps.mean(-1),
        "N, around the end": around / n,
    }.items():
        found[f"sum((x[:, 1:] - x[:, :-1])**2) / 2 / {words}"] = (
            "differences-of-neighbours",
            value / 2,
            LOOSE * value,
        )
    for words, shift in {
        "x": 0,
        "x - x[:, 0]": trial.x[:, :1],
        "x - x[:, -1]": trial.x[:, -1:],
    }.items():
        both = exact + 2 * (trial.x - shift).mean(-1) ** 2
        found[f"mean(d**2) + mean(d)**2, with d = {words}"] = (
            "correction-sign",
            both,
            LOOSE * both,
        )
    # The mean of the deviations is what their mean is off by.
    left = mean - trial.x.astype(np.float32).mean(-1)
    value = np.where(
        got["var"] == 0, np.minimum(exact - left, 0), exact - left
    )  # it may be cut off there
    slack = ELEMENTWISE * U * (exact + np.sqrt(exact)) + U * np.abs(left)
    found["mean((x - mean)**2) - mean(x - mean)"] = (
        "correction-not-squared",
        value,
        slack,
    )
    # On paper the mean of x * (x - m) is var + mean * (mean - m); what m is off by is multiplied by the mean.
    slack = ELEMENTWISE * U * np.abs(trial.x).max(-1) * np.sqrt(exact)
    values = [
        exact + mean * (mean - m)
        for m in (got["mean"], trial.x.astype(np.float32).mean(-1))
    ]
    value = min(values, key=lambda value: np.abs(got["var"] - value).max())
    value = np.where(
        got["var"] == 0, np.minimum(value, 0), value
    )  # it may be cut off there
    return found | {"mean(x * (x - mean))": ("deviation-not-squared", value, slack)}


def _like_halves(x):
    """(mean, variance) of rows by halves, halves of them and so on, merged as if each two were of one length."""
    if x.shape[-1] == 1:
        return x[:, 0], 0 * x[:, 0]
    (mean1, var1), (mean2, var2) = map(
        _like_halves, np.split(x, [x.shape[-1] // 2], axis=-1)
    )
    return (mean1 + mean2) / 2, (var1 + var2) / 2 + (mean2 - mean1) ** 2 / 4


def _without_distances(x):
    """{formula: the mean of the blocks' variances}, for the ways of cutting rows into like blocks, or into a few."""
    n = x.shape[-1]
    cuts = {
        f"blocks of {size}": range(size, n, size)
        for size in range(2, min(n, LONGEST_BLOCK + 1))
    }
    cuts |= {f"{parts} blocks": parts for parts in range(2, min(n, MOST_BLOCKS) + 1)}
    for words, places in cuts.items():
        blocks = np.array_split(x, places, axis=-1)
        yield (
            f"mean of the variances of {words}",
            sum(each.shape[-1] * each.var(-1) for each in blocks) / n,
        )


def _means(trial, got, known) -> dict:
    (mean, error), x, n = known["mean"], trial.x, trial.x.shape[-1]
    found = {
        "mean over all rows": ("wrong-axis", np.full(mean.shape, mean.mean()), error),
        "sum(x)": ("reduce-exchanged", n * mean, n * error),
        "(mean1 + mean2) / 2, by halves of the row": (
            "merge-weights",
            _like_halves(x)[0],
            error,
        ),
        "sum(x) / (N - 1)": ("bessel", n * mean / max(n - 1, 1), 2 * error),
    }
    shifts = {f"x[:, {at - n if 2 * at >= n else at}]": x[:, at] for at in range(n)}
    shifts |= {
        "x.min(-1)": x.min(-1),
        "x.max(-1)": x.max(-1),
        "the mean of x": np.full(mean.shape, x.mean()),
    }
    for words, shift in shifts.items():
        found[f"mean(x - shift), with shift = {words}"] = (
            "shift-not-added",
            mean - shift,
            error,
        )
        found[f"shift, with shift = {words}"] = "shift-not-added", shift, error
    return found


def _reciprocals(trial, got, known) -> dict:
    var, eps = got["var"], trial.eps
    formulas = {
        "1 / sqrt(var + eps)": (
            "",
            1 / np.sqrt(var + eps),
        ),  # right for its own variance
        "1 / sqrt(var)": ("eps-missing", 1 / np.sqrt(var)),
        "1 / (sqrt(var) + eps)": ("eps-placement", 1 / (np.sqrt(var) + eps)),
        "1 / sqrt(var) + eps": ("eps-placement", 1 / np.sqrt(var) + eps),
        "1 / sqrt(max(var, eps))": ("eps-placement", 1 / np.sqrt(np.maximum(var, eps))),
        "1 / max(sqrt(var), eps)": ("eps-placement", 1 / np.maximum(np.sqrt(var), eps)),
        "1 / (var + eps)": ("root-missing", 1 / (var + eps)),
        "0 where var is 0": ("flat-row", np.where(var == 0, 0, 1 / np.sqrt(var + eps))),
        "1 where var is 0": ("flat-row", np.where(var == 0, 1, 1 / np.sqrt(var + eps))),
        "sqrt(var + eps)": ("root-for-reciprocal", np.sqrt(var + eps)),
    }
    finite = {
        words: np.where(np.isfinite(value), np.abs(value), 0)
        for words, (_, value) in formulas.items()
    }
    return {
        words: (key, value, ELEMENTWISE * U * finite[words])
        for words, (key, value) in formulas.items()
    }


def _normalized(trial, got, known) -> dict:
    mean, rstd = known["mean"][0][:, None], known["rstd"][0][:, None]
    if any(not _near(got[name], *known[name]) for name in ("mean", "var", "rstd")):
        return {}  # follows from these
    (right, error), q = known["x_hat"], trial.x - mean
    formulas = {
        "x * rstd": ("centring-missing", trial.x * rstd),
        "x - mean": ("rstd-missing", q),
        "(x - x[:, 0]) * rstd": ("centring-missing", (trial.x - trial.x[:, :1]) * rstd),
        "(x - x[:, -1]) * rstd": (
            "centring-missing",
            (trial.x - trial.x[:, -1:]) * rstd,
        ),
        "(x - mean) / rstd": ("rstd-inverted", q / rstd),
        "(x - mean) / sqrt(var)": ("eps-missing", q / np.sqrt(got["var"])[:, None]),
        "(x - mean) / (sqrt(var) + eps)": (
            "eps-placement",
            q / (np.sqrt(got["var"]) + trial.eps)[:, None],
        ),
    }
    return {
        words: (key, v, error * np.maximum(1, np.abs(v / right)).max())
        for words, (key, v) in formulas.items()
    }


def rough_mean(failed) -> list[Diagnosis]:
    """[] or one Diagnosis of variances that are off by the square of what the mean is off by."""
    for _, got, known in failed:
        var, mean, (exact, error), true_mean = (
            got["var"],
            got["mean"],
            known["var"],
            known["mean"][0],
        )
        bad = ~(np.abs(var - exact) <= error)
        about = exact + (mean - true_mean) ** 2
        if np.all(np.abs(var - about)[bad] <= error[bad]) and np.all(
            np.abs(mean - true_mean)[bad] > 0
        ):
            return _named("rough-mean", "var = mean((x - m)**2), m off the mean", RIGHT)
    return []


def by_rounding(failed) -> list[Diagnosis]:
    """[] or one Diagnosis of variances that have lost digits, from how their errors look."""
    if found := rough_mean(failed):
        return found
    for trial, got, known in failed:
        var, (exact, error) = got["var"], known["var"]
        if _on_grid(trial.x, var, ~(np.abs(var - exact) <= error)):
            return _named("one-pass-variance", "var = mean(x**2) - mean**2", RIGHT)
    return []


def _on_grid(x, var, bad) -> bool:
    """Whether wrong variances look like differences of numbers as large as the squared mean.

    A difference of two float32 numbers is a multiple of their spacing. Divided by N first or last, that is the spacing
    of the mean square, or of the sum of squares over N.
    """
    if not np.isfinite(var).all():
        return False
    if (var[bad] < 0).any():
        return True
    n, square = x.shape[-1], (x * x).mean(-1)
    for step in (spacing(square) / 2, spacing(n * square) / 2 / n):
        multiple = var / step
        slack = U * np.maximum(multiple, 1) * 2
        fits = np.abs(multiple - np.round(multiple)) <= slack
        # 0 is on any grid; a variance of a thousand steps is on it by chance one time in a thousand at best.
        if (
            fits[bad].all()
            and var[bad].any()
            and (step[bad] > 64 * spacing(x.var(-1)[bad])).all()
        ):
            return True
    return False


def of_pairs(name, failed) -> list[Diagnosis]:
    """[] or the Diagnoses of a wrong mean or sum of squares of a merge. Args: as of_rows"""
    if name not in MERGED:
        return []
    if all(
        _at_empty_pairs_alone(trial, got[name], *known[name])
        for trial, got, known in failed
    ):
        return _named(
            "empty-blocks", "n2 / n is 0 / 0 for two empty blocks", MERGED[name]
        )
    if all(
        _lost_beside_empty(trial, got[name], *known[name])
        for trial, got, known in failed
    ):
        return _named("merge-forgets", f"{name} = 0", MERGED[name])
    if name == "squares" and all(
        _near(got["mean"], *known["mean"]) and _by_merged_mean(trial, got, *known[name])
        for trial, got, known in failed
    ):
        return _named(
            "merged-mean-cancels",
            "mean2 - mean, which has the rounding of mean",
            MERGED[name],
        )
    raw = name == "squares" and all(
        _by_squares(trial.parts, got, *known[name]) for trial, got, known in failed
    )
    if raw:
        return _named(
            "one-pass-variance",
            "squares = sum of all x**2 - n * mean**2",
            MERGED[name],
            "fp-merge",
        )
    return _added_to_n(name, failed)


def between(trial, got) -> str:
    """What a merge adds to the blocks' own squares for the distance of their means, where it is a formula known here.

    Args:  got: the result for blocks that have no squares of their own
    """
    n1, mean1, _, n2, mean2, _ = trial.parts.values()
    n, d = np.maximum(n1 + n2, 1), mean2 - mean1
    formulas = {
        "": 0 * n,
        "(mean2 - mean1)**2": d**2,
        "n1 * (mean2 - mean1)**2": n1 * d**2,
        "n2 * (mean2 - mean1)**2": n2 * d**2,
        "n * (mean2 - mean1)**2": n * d**2,
        "n / 2 * (mean2 - mean1)**2": n / 2 * d**2,
        "n / 4 * (mean2 - mean1)**2, right for n1 = n2 alone": n / 4 * d**2,
        "n1 * n2 * (mean2 - mean1)**2": n1 * n2 * d**2,
        "n1 * n2 / n**2 * (mean2 - mean1)**2": n1 * n2 / n**2 * d**2,
        "n1 / n * (mean2 - mean1)**2": n1 / n * d**2,
        "n2 / n * (mean2 - mean1)**2": n2 / n * d**2,
        "n1 * n2 / n * (mean2 - mean1)": n1 * n2 / n * d,
        "n1 * n2 / n * (mean1 + mean2)**2": n1 * n2 / n * (mean1 + mean2) ** 2,
    }
    fits = [
        words
        for words, value in formulas.items()
        if _near(got, value, LOOSE * np.abs(value))
    ]
    return (
        " + ".join(["squares = squares1 + squares2", *filter(None, fits)])
        if len(fits) == 1
        else ""
    )


def _by_squares(parts, got, exact, bound) -> bool:
    """Whether squares are a difference of numbers as large as the sum of all x**2, alone or with the blocks' own added.

    Such a difference is a multiple of these numbers' spacing, which is far more than the squares may be off by.
    """
    n1, mean1, squares1, n2, mean2, squares2 = parts.values()
    whole, squares = squares1 + n1 * mean1**2 + squares2 + n2 * mean2**2, got["squares"]
    if not (_near(squares, exact, LOOSE * whole) and (LOOSE * whole > bound).all()):
        return False
    step, wrong = spacing(whole) / 2, ~(np.abs(squares - exact) <= bound)
    seen = wrong & (step > COARSE * spacing(np.maximum(exact, np.abs(squares))))
    for rest in (
        squares,
        squares - (squares1 + squares2),
        squares - squares1,
        squares - squares2,
    ):
        multiple = rest / step
        slack = 2 * spacing(np.maximum(np.abs(squares), exact)) / step
        if (np.abs(multiple - np.round(multiple)) <= slack)[seen].all():
            return True
    return False


def _by_merged_mean(trial, got, exact, bound) -> bool:
    """Whether squares are those of a formula that takes the merged mean off a block's: its rounding tells."""
    n1, mean1, squares1, n2, mean2, squares2 = trial.parts.values()
    n, mean, own = n1 + n2, got["mean"], squares1 + squares2
    d, first, second = mean2 - mean1, mean - mean1, mean2 - mean
    ways = (
        n2 * d * second,
        n1 * d * first,
        n * first * second,
        n1 * first**2 + n2 * second**2,
    )
    told = [
        _tells([(got["squares"], exact, bound, own + way, 2 * bound)]) for way in ways
    ]
    return any(
        tells and _near(got["squares"], own + way, 2 * bound)
        for tells, way in zip(told, ways, strict=True)
    )


def _lost_beside_empty(trial, got, value, bound) -> bool:
    """Whether all that is wrong is 0 where one of the two blocks is empty."""
    wrong = ~(np.abs(got - value) <= bound)
    one = (trial.parts["n1"] == 0) != (trial.parts["n2"] == 0)
    return bool(one[wrong].all() and (got[wrong] == 0).all())


def _at_empty_pairs_alone(trial, got, value, bound) -> bool:
    empty = trial.parts["n1"] + trial.parts["n2"] == 0
    return not np.isfinite(got[empty]).all() and _near(
        got[~empty], value[~empty], bound[~empty]
    )


def _added_to_n(name, failed) -> list[Diagnosis]:
    """One Diagnosis where a constant is added to the n that divides: fitted to the worst pair, it explains all."""
    trial, got, known = failed[0]
    if (
        np.abs(got[name] - known[name][0]) > known[name][1]
    ).sum() < 2:  # anything fits one pair
        return []
    for at, _ in enumerate(_divided(name, trial.parts, 0)):
        added, unsure = _fitted(name, at, *failed[0])
        if not 0 < added <= 1:  # a large one is another formula
            continue
        for trial, got, known in failed:
            exact, bound = known[name]
            value = _divided(name, trial.parts, added)[at]
            if not _near(got[name], value, 2 * bound + unsure * np.abs(value - exact)):
                break
        else:
            return _named(
                "merge-denominator",
                f"{name} with n + {added:.0e} where n divides",
                MERGED[name],
                "fp-merge",
            )
    return []


def _divided(name, parts, added) -> list:
    """The result, in each way to write it, with a constant added to the n that divides."""
    n1, mean1, squares1, n2, mean2, squares2 = parts.values()
    n = np.maximum(n1 + n2, 1) + added
    if name == "squares":
        return [squares1 + squares2 + n1 * n2 / n * (mean2 - mean1) ** 2]
    return [
        (n1 * mean1 + n2 * mean2) / n,
        mean1 + n2 / n * (mean2 - mean1),
        mean2 + n1 / n * (mean1 - mean2),
    ]


def _fitted(name, at, trial, got, known) -> tuple[float, float]:
    """(the constant that explains the pair that is most off, the share of it that is unsure)."""
    exact, bound = known[name]
    off = got[name] - exact
    worst = int(np.argmax(np.abs(off) / bound))
    # The result is a + b / (n + t); t = 0 is right, and what t = 1 makes of it gives b.
    n = max((trial.parts["n1"] + trial.parts["n2"])[worst], 1)
    rest = ((_divided(name, trial.parts, 1)[at] - exact)[worst] * (n + 1)) - off[worst]
    return float(off[worst] * n / rest) if rest else 0.0, float(
        bound[worst] / np.abs(off[worst])
    )
