"""The notation sheet: what each letter of the book means, in one place, with one meaning in any one equation.

An index is a small letter that stands under a quantity or under a sum; a quantity is everything else. Some letters are
an index in one equation and a quantity in another; none is both in one.
 `tests/test_notation.py` holds every equation of the book against the sheet, shapes included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from normgrad.symbolic.render import name_latex

ANY = "*"
# What a letter runs over, by the first letter of the dimension's name.
INDICES = {"M": "ipm", "N": "jklrst", "": "gh"}
RUNS = {
    "M": "rows, free and under a sum",
    "N": "columns: $j, k, l$ free, $r, s, t$ (then $l$) under a sum",
    "": "everything else, such as programs",
}
# name: (shape, meaning). A shape is that of a whole batch; one row has the same without M.
SHEET = {
    "a": ("", "1 with centring, 0 without"),
    "A": (
        ("NN", "PM", "QP"),
        "the matrix of a linear map; a schedule is one, and $A_2$ the schedule after it",
    ),
    "across": ("N", "a direction without its part along the row"),
    "alpha": ("", "a number that a whole row is multiplied by"),
    "b": (("N", ""), "bias"),
    "bend": ("", "bound of the third derivative along a line"),
    "B": (ANY, "a matrix of no meaning, in rules about letters"),
    "c": ("", "constant scale"),
    "c1": (
        "M",
        "mean of $\\hat x \\, \\mathrm{wdy}$ (its sum where squares are summed)",
    ),
    "c2": ("M", "mean of $\\mathrm{wdy}$"),
    "C": ("NN", "centring matrix"),
    "cov": (
        "M",
        "mean of $\\mathrm{wdy} \\, \\dot q$, or of $\\mathrm{wdy} \\, \\mathrm{ddq}$",
    ),
    "d": ("", "distance of the means of two blocks"),
    "D": ("M", "denominator; $D(s)$ as a function of the size"),
    "delta": ("NN", "Kronecker delta"),
    "Delta": (
        ("", "NN"),
        "difference quotient; $\\Delta_{kj}$ an entry of a measured Jacobian",
    ),
    "e": ("", "bytes of one number"),
    "e1": (
        "M",
        "mean of $\\hat x \\, \\dot x$, or of $\\hat x \\, \\mathrm{ddx}$ (its sum where squares are summed)",
    ),
    "E": (ANY, "a matrix of no meaning: any matrix"),
    "eps": ("", "the small number that keeps $D$ from 0"),
    "err": ("M", "error of a stored mean"),
    "eta": ("", "one rounding, relative"),
    "f": (ANY, "a function; a layer of a stack"),
    "g": ("MN", "gate"),
    "h": ("", "step of a difference, or towards a direction"),
    "H": ("", "height of an order of summation: roundings that a term passes through"),
    "J": (("MNN", "MNMN"), "Jacobian, output first"),
    "kappa": ("M", "$D D'(s) / s$"),
    "L": ("", "loss; $L_1, L_2, L_3$ are losses made of gradients"),
    "lambda": ("", "eigenvalue"),
    "m": ("", "a shift: a number that is added to or taken from a whole row"),
    "mean": ("M", "mean of a row, of a block, of a padded tile"),
    "M": ("", "number of rows; $M_1, M_2$ of leading axes"),
    "n": ("", "what the sum of squares is divided by"),
    "N": ("", "number of columns; $N_1, N_2$ of two blocks, $N_0$ of the padding"),
    "norm": (ANY, "the norm before a layer of a stack"),
    "p": ("MN", "the sum $x + \\mathrm{residual}$"),
    "P": ("", "number of programs, and of partial rows"),
    "pad": ("N", "what a masked column of a tile reads"),
    "part": ("PN", "partial sum of one program"),
    "phi": ("", "the loss along a line"),
    "Pi": ("NN", "projector $I - r \\, r^{\\mathsf T}$"),
    "q": ("MN", "centred row; $q_1, q_2$ further rows"),
    "Q": ("", "number of sums after a second stage"),
    "r": ("MN", "normalized row of L2 normalization and of the operator"),
    "R": ("", "largest entry of a row, in deviations"),
    "residual": ("MN", "the second input, added to $x$"),
    "residual_out": (
        "MN",
        "the sum $p$ as an output; $\\mathrm{dresidual\\_out}$ is its cotangent",
    ),
    "rho": ("", "bound on the rounding error of $\\varphi$"),
    "rstd": ("M", "$1 / D$"),
    "s": ("M", "size of a row: the root of $\\frac{1}{n} \\sum q^2$"),
    "S": (
        ("M", ""),
        "a sum that an argument gives a letter; so are $S_1, S_2, T_1, T_2$",
    ),
    "sigma": ("", "standard deviation, in source 001's layer"),
    "t": ("MN", "a term of a sum; a number that is rounded"),
    "theta": ("M", "error of a mean, in deviations of its row"),
    "u": ("", "unit roundoff"),
    "v": ("M", "variance: the mean of $q^2$"),
    "V": ("", "sum of squared deviations, $N v$"),
    "w": (("N", ""), "weight"),
    "w0": (
        "",
        "what is added to the weight: 0, or 1 where the weight is stored as its distance from 1",
    ),
    "W": ("", "warps of a program"),
    "wdy": ("MN", "$w \\, \\mathrm{dy}$, the weighted cotangent"),
    "x": ("MN", "input"),
    "x_next": ("", "the number that comes after a row's last"),
    "x_hat": ("MN", "normalized row of LayerNorm and RMSNorm"),
    "xi": ("", "a place between two others"),
    "y": ("MN", "output"),
    "z": ("MN", "a row normalized in another way than $\\hat x$"),
}
DERIVED = (
    (
        "$\\mathrm{d}\\ldots$",
        "gradient of the loss by what follows; $\\mathrm{ddx}$: cotangent of $\\mathrm{dx}$",
    ),
    ("$\\dot{x}$", "tangent: a small change, a direction"),
    ("$\\tilde{x}$", "the computed value, roundings included"),
    ("$x_1, x_2$", "more of the same kind, if not listed themselves"),
    ("$x'$", "after a layer"),
    ("$\\mathrm{mean\\_next}$", "with one number more"),
    ("$\\mathrm{dx\\_stored}$", "from stored statistics"),
)


GREEK = {
    name: rf"\{name}"
    for name in "alpha delta Delta eta kappa lambda Pi rho sigma theta xi".split()
}
GREEK |= {"eps": r"\varepsilon", "phi": r"\varphi"}


@dataclass(frozen=True)
class Local:
    """Letters that mean something else, or something more, in some equations.

    Args:  labels: patterns of the labels; why: the reason; letters: {name: (shape, meaning)}
           words: names that are words and mean what they say, one number each
    """

    labels: tuple[str, ...]
    why: str
    letters: dict[str, tuple]
    words: Sequence[str] = ()

    def covers(self, label: str) -> bool:
        """Whether the equation with this label is one of them."""
        return any(fnmatchcase(label, pattern) for pattern in self.labels)


LOCAL = (
    Local(
        ("bytes-*",),
        "A model in bytes has one letter for each kind of array; none of them is a quantity of a layer.",
        {
            "A": ("", "bytes of an activation"),
            "S": ("", "bytes of a statistic"),
            "V": ("", "bytes of a parameter"),
            "R": ("", "registers of a multiprocessor"),
        },
        "forward backward add_forward add_backward addition "
        "intensity operations bytes bandwidth rate live per_thread programs".split(),
    ),
    Local(
        ("rule-*", "diff-rules"),
        "Rules about letters hold for tensors of every meaning, so theirs have none.",
        {
            "a": (("M", ""), "any vector or number"),
            "b": (("N", ""), "any vector or number"),
            "g": ("M", "any vector"),
            "h": ("", "any number"),
            "z": ("MN", "any matrix"),
        },
    ),
    Local(
        ("res-naive*", "res-fused*", "res-one-*", "res-post", "res-backward")
        + ("res-invariant", "res-identity-path"),
        "One layer of a stack maps whole batches; nothing is said of their entries.",
        {
            "x": ("", "the stream before a layer, $x'$ after it"),
            "y": ("", "the normalized stream"),
            "z": ("", "what the last layer returned"),
            "p": ("", "the stream before the last layer"),
            "B": ("", "a cotangent carried back through a layer and its norm"),
            "S": ("", "what the branches send back"),
            "dout": ("", "cotangent of the output of a stack"),
        },
    ),
    Local(
        ("own-*",),
        "A gate stands beside the weight.",
        {
            "wdy": (
                "MN",
                "$w \\, g \\, \\mathrm{sigmoid}(g) \\, \\mathrm{dy}$, the weighted cotangent",
            )
        },
    ),
    Local(
        ("batch-*",),
        "BatchNorm has one number for each column where the norms of rows have one for each row.",
        {
            "mean": ("N", "mean of a column"),
            "rstd": ("N", "$1 / D$ of a column"),
            "c1": ("N", "mean of $\\hat x \\, \\mathrm{wdy}$ down a column"),
            "c2": ("N", "mean of $\\mathrm{wdy}$ down a column"),
        },
    ),
    Local(
        ("dyt-*",),
        "The layer has a scale that is trained, inside of its function.",
        {"a": ("", "a number that is trained"), "t": ("N", "$\\tanh(a x)$")},
    ),
    Local(("kern-offset",), "Words for places in memory.", {}, ("offset", "stride")),
    Local(("gradcheck-rule",), "torch's own names.", {}, ("atol", "rtol")),
)
_PREFIX, _SUFFIXES = "d", ("_hat", "_dot", "_tilde", "_next", "_stored", "'", "*")


def known(name: str, label: str = "") -> tuple | None:
    """(shape, meaning) of a name in the equation with a label, or None; d, dots and numbers lead back to the base."""
    for local in LOCAL:
        if local.covers(label) and name in (*local.letters, *local.words):
            return local.letters.get(name, ("", name))
    if name in SHEET:
        return SHEET[name]
    base = name.rstrip("0123456789")
    base = next(
        (base.removesuffix(end) for end in _SUFFIXES if base.endswith(end)), base
    )
    if base == name and name.startswith(_PREFIX):
        base = name.removeprefix(_PREFIX)
    return known(base, label) if base not in ("", name) else None


def shapes(name: str, label: str = "") -> set[str]:
    """The shapes that a known name may have: those of a batch, and those of one row."""
    found = known(name, label)[0]
    found = (found,) if isinstance(found, str) else found
    return {shape for one in found for shape in (one, one.replace("M", ""))}


def table() -> str:
    """The sheet as a Markdown table."""
    rows = [
        (", ".join(f"${letter}$" for letter in INDICES[dimension]), words)
        for dimension, words in RUNS.items()
    ]
    rows += [(f"${_shown(name)}$", meaning) for name, (_, meaning) in SHEET.items()]
    rows += DERIVED
    return _markdown(("letter", "meaning"), rows)


def local_table() -> str:
    """The letters that mean something else in some equations, with the reason, as a Markdown table."""
    rows = []
    for local in LOCAL:
        letters = [
            f"${_shown(name)}$ {meaning}"
            for name, (_, meaning) in local.letters.items()
        ]
        letters += (
            [f"the words {', '.join(f'`{word}`' for word in local.words)}"]
            if local.words
            else []
        )
        rows.append(
            (
                ", ".join(f"`{label}`" for label in local.labels),
                ", ".join(letters),
                local.why,
            )
        )
    return _markdown(("equations", "letters", "why"), rows)


def _shown(name):
    return GREEK.get(name) or name_latex(name)


def _markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(heads), ("---",) * len(tuple(heads)), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
