"""A function that is not a norm: each result as an equation in its arguments, beside that of the right program."""

from __future__ import annotations

from sympy import Add, Expr, Indexed, Max, S, Sum, cancel, evaluate, expand

from ...mistakes.table import UNKNOWN
from ...symbolic.definitions import Defs
from ...symbolic.notation import tensor
from ...symbolic.proof import lettered
from ...symbolic.symbols import M, eps, i, j
from ...verify.conditions import conditions_of
from ...verify.difference import MEAN, X
from ...verify.functions import parameters_of, trace
from ...verify.programs import entry, input_of
from ..named import Diagnosis, named
from .beliefs import MOST_SAID, UNNAMED, belief
from .difference import differences
from .equations import LONGEST, Q, of_root, sums_squares_of_x, terms_in, with_entries
from .letters import normal
from .tasks import right as right_diagnosis
from .terms import is_opaque, terms_of, written

N1, N2, MEAN1, MEAN2, COUNT, D = (
    tensor(name, M)[i] for name in ("n1", "n2", "mean1", "mean2", "n", "d")
)


def results(program, name: str, inputs: dict) -> tuple[list[Expr], list[str]]:
    """(each result of a NumPy function as an expression at row i and column j, what its operations leave out).

    Args:    program: a text or the function; inputs: {argument of the task: its shape or what it is}, in their order
    Raises:  NotRead, with the line that is not followed
    """
    names = parameters_of(program, name if isinstance(program, str) else "").names
    roles = zip(names, inputs.items(), strict=False)
    bound = {own: input_of(argument, role) for own, (argument, role) in roles}
    traced = trace(program, bound, (), "numpy", name)
    outputs = [entry(value, (i, j)[: len(value.shape)]) for value in traced.outputs]
    conditions = conditions_of(traced.noted, Defs())
    return outputs, [condition.text(Defs()) for condition in conditions]


def in_field_names(e: Expr) -> Expr:
    """The expression with q + mean for x, d for mean2 - mean1, n for n1 + n2; a maximum that guards is left out."""
    e = e.replace(Max, lambda *sides: _guarded(Max(*sides)))
    e = e.subs(N1 + N2, COUNT).xreplace({MEAN2: MEAN1 + D})
    e = with_entries(e, X, lambda *at: Q[at] + MEAN[at[0]])
    e = expand(normal(e))
    return e.xreplace({part: S.Zero for part in e.atoms(Sum) if _adds_up_to_0(part)})


def _guarded(maximum):
    """What a maximum with 0 or 1 is where it guards nothing."""
    sides = [part for part in maximum.args if part not in (0, 1)]
    return sides[0] if len(sides) == 1 else maximum


def _guards(e):
    """Where the maxima of an equation, which its comparison leaves out, guard nothing.

    For `n = np.maximum(n1 + n2, 1)`, which is another number where both are 0.
    """
    for maximum in sorted(e.atoms(Max), key=str):
        side = _guarded(maximum)
        if side != maximum:
            bound = next(part for part in maximum.args if part != side)
            yield f"{lettered(side)[0]} is at least {bound}"


def _adds_up_to_0(total):
    """Whether it sums up the deviations of a row."""
    return isinstance(total.function, Indexed) and total.function.base == Q


def _is_zero(e):
    return normal(e) == 0 or not e.has(Sum) and cancel(e) == 0


def differing(reads, name, program, reference, wrong) -> list[Diagnosis]:
    """What is shown of the first wrong result whose equation is another one, or that there is none.

    Args:     reads: of the task; reference: the text of the right program; wrong: the results that are wrong
    """
    with evaluate(True):
        mine, conditions = results(program, name, reads.inputs)
        needed, in_both = results(reference, name, reads.inputs)
        sides = dict(zip(reads.outputs, zip(mine, needed, strict=True), strict=True))
        conditions = [words for words in conditions if words not in in_both]
        for output in dict.fromkeys((*reads.labels, *reads.outputs)):
            if output not in wrong:
                continue
            label = reads.labels.get(output, "")
            yours, right = map(in_field_names, sides[output])
            if not _is_zero((yours - right).xreplace({COUNT: N1 + N2})):
                if right.has(eps) and _is_zero(
                    yours - in_field_names(right.subs(eps, 0))
                ):
                    return [named("eps-missing")]
                return _shown(output, yours, right, label)
            if output == "var" and sums_squares_of_x(sides[output][0]):
                return [named("one-pass-variance")]
            conditions += _guards(sides[output][0])
    return [right_diagnosis(conditions)]


def _shown(output, yours, right, label):
    """What is shown of an equation that is another one; its name where each edit has the same one."""
    sides = [terms_of(Add.make_args(e)) for e in (yours, right)]
    findings, texts = [], [""] * 2
    if output == "rstd":
        under = terms_in(1 / right**2)
        text, findings = of_root(yours, under)
        texts = [f"rstd = {text}", f"rstd = 1 / sqrt({written(under)})"]
    elif not is_opaque(sides[0]):
        findings = differences("root" if output == "var" else output, *sides)
    keys = {belief(finding) or _between(output, finding) for finding in findings}
    key = keys.pop() if len(keys) == 1 else ""
    title = f"The equation of {output} is another one"
    shown = named(key) if key else Diagnosis(UNKNOWN, title, UNNAMED)
    shown.implemented = texts[0] or _written(output, yours, sides[0])
    shown.right = texts[1] or _written(output, right, sides[1])
    shown.difference = "; ".join(dict.fromkeys(map(str, findings[:MOST_SAID])))
    shown.equation = label
    return [shown]


def _between(output, finding):
    """The key of an edit of what the distance of two means adds to a merge."""
    terms = [term for term in (finding.yours, finding.right) if term is not None]
    far = all(term.flat["d"] for term in terms)
    return {"squares": "merge-between", "mean": "merge-weights"}.get(output, "") * far


def _written(output, e, terms):
    text = written(terms)
    if is_opaque(terms) or len(text) > LONGEST:
        text = lettered(e)[0]
    return f"{output} = {text}" if len(text) <= LONGEST else ""
