"""Another task of the same proved family: other options of a homework's operator, chosen by a seed.

Solutions of the standard tasks are public. Each of them is wrong for a variant, and a report on it says what it is.
"""

from __future__ import annotations

from dataclasses import replace

from ..spec import NormSpec
from .solutions import HERE, starter
from .task import Draw, Homework, find_homework

FAMILIES: dict[str, dict[str, tuple]] = {
    "hw1": {"times": (-4, -3, -2, -1, 2, 3, 4)},
    "hw2": {
        "weight_offset": (-1, 1, 2),
        "reduce": ("mean", "sum"),
        "placement": ("inside", "outside"),
    },
    "hw3": {"weight_offset": (-1, 1, 2), "reduce": ("mean", "sum")},
}
# What the texts say of the standard task alone, and what stands for it.
WORDS = {
    "homework check .": "homework check . --variant {seed}",
    '", f)`': '", f, variant={seed})`',
    '", LayerNorm)`': '", LayerNorm, variant={seed})`',
    "RMSNorm of every row": "The variant's norm of every row",
    ", added to the mean square under the root": "",
    ", added to the variance under the root": "",
    ", the reciprocal of each row's root mean square": " of each row",
    "- 1/N)": "{sign} {count}/N)",
    "y_j = x_j mean": "y_j = {times} x_j mean",
    "- mean(w x)": "{sign} {count} mean(w x)",
    "- mean_i)": "{sign} {count} mean_i)",
}
STATEMENT = """Variant {seed} of {homework}: {what}
Equations that are named below are those of the standard task: derive yours. A solution of that task is wrong here."""
DEFINITION = """    s = sqrt({spec.reduce}({row}**2))
    rstd = 1 / {root}
    y = ({spec.weight_offset:g} + weight) * {row} * rstd"""
OF_MEANS = (
    "the tasks of the page, with each mean taken {times} times, as the stubs have it."
)


def options_of(name: str, seed: int) -> dict:
    """{option: its value} of a variant.

    Raises:  ValueError for a homework without variants, or for what is no seed
    """
    if find_homework(name).name not in FAMILIES:
        raise ValueError(f"variant: got {name}, needs one of {', '.join(FAMILIES)}")
    rng, options = Draw(seed).rng("variant", name), {}
    for option, values in FAMILIES[name].items():
        options[option] = values[rng.integers(len(values))]
    return options


def variant(name: str, seed: int | None = None) -> Homework:
    """A homework with the tasks of a variant; the standard one without a seed.

    Raises:  ValueError for an unknown homework, for one without variants, or for what is no seed
    """
    homework, tasks = find_homework(name), []
    if seed is None:
        return homework
    options = options_of(name, seed)
    for task in homework.tasks:
        reads = task.reads
        if reads is not None:
            reads = replace(reads, labels={}, norm=reads.norm | options)
        oracle = task.oracle.with_options(**options)
        tasks.append(replace(task, oracle=oracle, reads=reads, standard=task))
    return replace(homework, tasks=tuple(tasks))


def texts(name: str, seed: int | None = None) -> tuple[str, str]:
    """(README.md, stubs) of a homework, or of its variant. Raises: as variant"""
    readme, stubs = (
        (HERE / name / "README.md").read_text(encoding="utf8"),
        starter(name),
    )
    if seed is None:
        return readme, stubs
    homework, times = variant(name, seed), options_of(name, seed).get("times", 1)
    what = OF_MEANS.format(times=times)
    if name != "hw1":
        lines = definition(homework.tasks[0].oracle.spec)
        what = f"of each row of x,\n\n{lines}\n"
    words = STATEMENT.format(seed=seed, homework=name, what=what)
    values = {"seed": seed, "times": times, "count": abs(times)}
    values["sign"] = "+" if times < 0 else "-"
    for old, new in WORDS.items():
        readme, stubs = (
            text.replace(old, new.format(**values)) for text in (readme, stubs)
        )
    return tuple(
        text.replace("\n\n", f"\n\n{words}\n\n", 1) for text in (readme, stubs)
    )


def definition(spec: NormSpec) -> str:
    """A norm in NumPy's words, a line a name; one that centres has a bias."""
    root = {"inside": "sqrt(s**2 + eps)", "outside": "(s + eps)"}[spec.placement]
    row = "q" if spec.center else "x"
    text = DEFINITION.format(spec=spec, row=row, root=root)
    return f"    q = x - mean(x)\n{text} + bias" if spec.center else text
