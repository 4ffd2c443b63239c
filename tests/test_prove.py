"""Derivations typed in SymPy: what is proved, refuted and refused, how it is shown, and that SymPy stays alive."""

import ast
import linecache
from itertools import count
from pathlib import Path

import pytest
import sympy

import normgrad.prove
from normgrad.prove.claim import CannotJudge
from normgrad.prove.verdict import STATEMENT

SETUP = """
from sympy import *
from normgrad.prove import *
import sympy

M, N, i, p, j, k, r, s = symbols("M N i p j k r s", integer=True, positive=True)
eps, a = symbols("epsilon a", positive=True)
t, u = symbols("t u", real=True)
x, w, b, dy = symbols("x w b dy", cls=IndexedBase, shape=(N,), real=True)
X, dY = symbols("X dY", cls=IndexedBase, shape=(M, N), real=True)
f = Function("f")

mean = define("mean", Sum(x[r], (r, 1, N)) / N)
v = define("v", Sum((x[r] - mean)**2, (r, 1, N)) / N)
rstd = define("rstd", 1 / sqrt(v + eps))
x_hat = define("xhat", k, (x[k] - mean) * rstd)
y = define("y", k, w[k] * x_hat[k] + b[k])
L = define("L", Sum(dy[r] * y[r], (r, 1, N)))
wdy = define("wdy", k, dy[k] * w[k])
c1 = define("c1", Sum(x_hat[r] * wdy[r], (r, 1, N)) / N)
c2 = define("c2", Sum(wdy[r], (r, 1, N)) / N)

# M rows, with the denominator of RMSNorm
D = define("D", i, sqrt(Sum(X[i, r]**2, (r, 1, N)) / N + eps))
z = define("z", i, k, w[k] * X[i, k] / D[i])
loss = define("loss", Sum(dY[i, r] * z[i, r], (r, 1, N), (i, 1, M)))
dD = define("dD", p, diff(loss, D[p]))
"""
DERIVATIONS = """
mean_slope = prove(diff(mean, x[j]), 1 / N)
v_slope = derive(
    diff(v, x[j]),
    Sum(2 * (x[r] - mean) * (KroneckerDelta(r, j) - diff(mean, x[j])), (r, 1, N)) / N,
    Sum(2 * (x[r] - mean) * (KroneckerDelta(r, j) - 1 / N), (r, 1, N)) / N, mean_slope,
    2 / N * (x[j] - mean),
)
rstd_slope = derive(
    diff(rstd, x[j]),
    -rstd**3 / 2 * diff(v, x[j]),
    -rstd**3 * (x[j] - mean) / N, v_slope,
    -rstd**2 * x_hat[j] / N,
)
jacobian = derive(
    diff(x_hat[k], x[j]),
    (KroneckerDelta(k, j) - diff(mean, x[j])) * rstd + (x[k] - mean) * diff(rstd, x[j]),
    rstd * (KroneckerDelta(k, j) - 1 / N)
    - (x[k] - mean) * rstd**2 * x_hat[j] / N, mean_slope, rstd_slope,
    rstd * (KroneckerDelta(k, j) - 1 / N - x_hat[k] * x_hat[j] / N),
)
dx = derive(
    diff(L, x[j]),
    Sum(wdy[r] * diff(x_hat[r], x[j]), (r, 1, N)),
    Sum(wdy[r] * rstd * (KroneckerDelta(r, j) - 1 / N - x_hat[r] * x_hat[j] / N),
        (r, 1, N)), jacobian,
    rstd * (wdy[j] - Sum(wdy[r], (r, 1, N)) / N
            - x_hat[j] * Sum(x_hat[r] * wdy[r], (r, 1, N)) / N),
    rstd * (wdy[j] - c2 - x_hat[j] * c1),
)
square = derive(Sum(x_hat[r]**2, (r, 1, N)) / N, rstd**2 * v, 1 - eps * rstd**2)
cotangent = derive(
    diff(loss, D[p]),
    Sum(dY[i, r] * local(z[i, r], D[p]), (r, 1, N), (i, 1, M)),
    -Sum(dY[p, r] * w[r] * X[p, r], (r, 1, N)) / D[p]**2,
)
rows = derive(
    diff(loss, X[p, k]),
    dD[p] * diff(D[p], X[p, k]) + dY[p, k] * local(z[p, k], X[p, k]),
    dD[p] * X[p, k] / (N * D[p]) + dY[p, k] * w[k] / D[p],
)
"""
RESULTS = """
of_square = prove(Sum(x_hat[r]**2, (r, 1, N)) / N, rstd**2 * v)
of_c1 = prove(c1, Sum(x_hat[r] * dy[r] * w[r], (r, 1, N)) / N)
of_sum = prove(Sum(x[r], (r, 1, N)), N * mean)
"""
NUMBERS = count()


def run(source, space):
    """Run a cell as a notebook does: its text is in linecache, and the value of its last line is returned."""
    name = f"<cell {next(NUMBERS)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    tree = ast.parse(source)
    if not isinstance(tree.body[-1], ast.Expr):
        return exec(compile(tree, name, "exec"), space)
    last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, name, "exec"), space)
    return eval(compile(last, name, "eval"), space)


def page(*cells):
    space = {}
    for cell in cells:
        run(cell, space)
    return space


@pytest.fixture(scope="module")
def read_page():
    """The names of a page, and their spellings, without those of pages that other tests read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normgrad.prove.names, "SPELLINGS", set())
        return page(SETUP, DERIVATIONS, RESULTS), normgrad.prove.names.SPELLINGS


@pytest.fixture
def space(read_page, monkeypatch):
    monkeypatch.setattr(normgrad.prove.names, "SPELLINGS", set(read_page[1]))
    return read_page[0]


def answer(source, space):
    """(kind, what a reader sees) of a cell."""
    try:
        verdict = run(source, dict(space))
    except CannotJudge as refusal:
        (line,) = refusal._render_traceback_()
        return "refused", line
    text = repr(verdict)
    kinds = ("proved", "refuted", "undecided")
    return next(kind for kind in kinds if text.startswith(kind)), text


def table(kind):
    """The cells of one kind in typed_cells.txt, each with what its answer says where that is named."""
    text = Path(__file__).with_name("typed_cells.txt").read_text(encoding="utf8")
    section = text.partition(f"[{kind}]\n")[2].partition("\n[")[0]
    lines = [line for line in section.splitlines() if line and line[0] != "#"]
    return [line.split(" -- ") if " -- " in line else line for line in lines]


@pytest.mark.parametrize("source", table("proved"))
def test_true_claims_are_proved(source, space):
    assert answer(source, space)[0] == "proved"


@pytest.mark.parametrize("source, words", table("refuted"))
def test_false_claims_are_falsy_and_answer_in_three_lines(source, words, space):
    kind, text = answer(source, space)
    assert kind == "refuted" and words in text
    assert len(text.split("\n")) <= 4


@pytest.mark.parametrize("source, words", table("refused"))
def test_what_cannot_be_judged_is_refused_in_one_line(source, words, space):
    kind, line = answer(source, space)
    assert kind == "refused" and words in line and "\n" not in line


def test_an_entry_of_a_defined_tensor_has_its_indices(space):
    with pytest.raises(IndexError, match="xhat: got 2 indices, needs 1"):
        run("x_hat[k, j]", dict(space))


def test_a_claim_whose_text_is_nowhere_is_proved(space):
    code = compile("prove(diff(x[j]**2, x[j]), 2 * x[j])", "<nowhere>", "eval")
    assert repr(eval(code, dict(space))).startswith("proved")


@pytest.mark.parametrize("source, words, mended", table("advised"))
def test_advice_is_right(source, words, mended, space):
    kind, line = answer(source, space)
    assert kind == "refused" and words in line
    assert answer(mended, space)[0] == "proved"


def test_truth_of_verdicts(space):
    def truth(source):
        return bool(run(source, dict(space)))

    assert truth("prove(diff(mean, x[j]), 1 / N)")
    assert not truth("prove(diff(mean, x[j]), 1)")
    assert truth("refute(diff(mean, x[j]), 1)")
    assert not truth("refute(diff(mean, x[j]), 1 / N)")
    undecided = (
        "exp(exp(t) + exp(-t)) * sin(t) * sin(t)",
        "exp(exp(t) + exp(-t)) * (1 - cos(t)**2)",
    )
    assert not truth(f"prove({', '.join(undecided)})")
    assert not truth(f"refute({', '.join(undecided)})")


def test_conditions_stand_in_the_verdict_as_text_and_as_formula(space):
    verdict = run("prove(Abs(t)**2 / t, t)", dict(space))
    assert repr(verdict).startswith("proved, where Ne(t, 0): ")
    assert "where $t \\neq 0$" in verdict.known
    # the kink of a derivative with respect to a defined quantity
    kink = "q = define('q', t * u)\nprove(diff(Abs(q), q), sign(q))"
    assert "q \\neq 0" in run(kink, dict(space)).known


# -- what is shown


def shown(source, space):
    return run(source, dict(space)).latex


def test_lines_are_shown_as_typed(space):
    typed = "derive(diff(rstd, x[j]), 2 * rstd**3 / N * (x[j] - mean) * (0 - 1) / 2, -rstd**2 * x_hat[j] / N)"
    assert r"\frac{\partial \mathrm{rstd}}{\partial x_{j}} &= " in shown(typed, space)
    assert r"\mathrm{rstd} + v" in shown("prove(rstd + v, v + rstd)", space)
    assert r"v + \mathrm{rstd}" in shown("prove(rstd + v, v + rstd)", space)
    assert r"\delta_{kj} = \delta_{jk}" in shown(
        "prove(KroneckerDelta(k, j), KroneckerDelta(j, k))", space
    )


def test_a_variable_of_the_same_cell_is_shown_by_its_text(space):
    cell = "mine = rstd + v\nprove(mine, {})"
    assert (
        shown(cell.format("v + rstd"), space)
        == r"\mathrm{rstd} + v = v + \mathrm{rstd}"
    )
    again = "mine = rstd + v\nmine = 2 * mine\nprove(mine, 2 * v + 2 * rstd)"
    assert shown(again, space).startswith(
        r"2 v + 2 \, \mathrm{rstd} = "
    )  # assigned twice: its value


def test_what_a_call_computes_is_shown_by_its_value(space):
    """The text of such a call says what was asked for, and not what SymPy made of it."""
    total = "Derivative(Sum(x[r]**2, (r, 1, N)), x[r])"
    verdict = run(f"prove({total}.doit(), Sum(2 * x[r], (r, 1, N)))", dict(space))
    assert repr(verdict).startswith("proved for every N: Sum(2*x[r], (r, 1, N)) = ")
    assert run(f"refute({total}, Sum(2 * x[r], (r, 1, N)))", dict(space))
    verdict = run("prove(contract(diff(v, x[j])), diff(v, x[j]))", dict(space))
    assert repr(verdict).endswith("= diff(v, x[j])") and "contract" not in repr(verdict)


def test_a_script_has_a_text():
    k, N = sympy.symbols("k N", integer=True, positive=True)
    x = sympy.IndexedBase("x", shape=(N,), real=True)
    verdict = normgrad.prove.prove(2 + x[k], x[k] + 2)
    assert verdict.latex == "2 + x_{k} = x_{k} + 2"
    assert repr(verdict) == "proved for every N: 2 + x[k] = x[k] + 2"


REASONS = [
    ("derive(x[j] * rstd + rstd, rstd * (1 + x[j]), (1 + x[j]) * rstd)", ["", ""]),
    (
        "derive(mean, Sum(x[r], (r, 1, N)) / N, Sum(Sum(KroneckerDelta(r, s) * x[s], (s, 1, N)), (r, 1, N)) / N,"
        " Sum(x[r], (r, 1, N)) / N)",
        ["definition of $\\mathrm{mean}$", "", "delta contracted"],
    ),
    ("rstd_slope", ["chain rule, definition of $\\mathrm{rstd}$", "substituted", "definition of $\\hat{x}$"]),
    ("jacobian", ["chain rule", "substituted", "definition of $\\hat{x}$"]),
    ("cotangent", ["chain rule", "differentiated"]),
    ("derive(mean, Sum(x[r], (r, 1, N)) / N, 'by hand', mean)",
     ["“by hand”, says the author", "definition of $\\mathrm{mean}$"]),
    ("derive(diff(L, x[j]), rstd * (wdy[j] - c2 - x_hat[j] * c1), diff(L, x[j]))", ["differentiated"] * 2),
    # a result that stands in what the line holds
    ("derive(diff(v, x[j]), 2 / N * (x[j] - mean), mean_slope)", ["substituted, definition of $\\mathrm{mean}$"]),
    ("derive(diff(x_hat[k], x[j]), rstd * (KroneckerDelta(k, j) - 1 / N - x_hat[k] * x_hat[j] / N), v_slope)",
     ["substituted, differentiated"]),
    ("derive(2 * t + t * Sum(x_hat[r]**2, (r, 1, N)) / N, t * (2 + rstd**2 * v), of_square)", ["substituted"]),
    ("derive(define('q', 2 * c1), 2 * Sum(x_hat[r] * dy[r] * w[r], (r, 1, N)) / N, of_c1)", ["substituted"]),
    ("derive(diff(v, x[j]) * t, 2 / N * (x[j] - mean) * t, mean_slope, of_sum)", ["substituted"]),
    ("derive(c1 - c2, Sum((x_hat[r] - 1) * dy[r] * w[r], (r, 1, N)) / N, c1 - c2)", ["definitions"] * 2),
]  # fmt: skip


@pytest.mark.parametrize("source, reasons", REASONS)
def test_the_reason_of_a_step_is_the_least_that_proves_it(source, reasons, space):
    verdict = run(source, dict(space))
    assert [line.reason for line in verdict.lines[1:]] == reasons


def test_several_chains_stand_below_one_another(space):
    cell = """derive(
        (Sum(x_hat[r], (r, 1, N)) / N, 0),
        (Sum(x_hat[r]**2, (r, 1, N)) / N, rstd**2 * v, 1 - eps * rstd**2),
    )"""
    verdict = run(cell, dict(space))
    assert verdict and [len(chain) for chain in verdict.equation().chains] == [2, 3]
    assert [line.reason != "" for line in verdict.lines] == [False] * 3 + [True] * 2
    assert verdict.latex.count("&=") == 3 and "; Sum(x_hat[r]**2" in repr(verdict)
    kind, text = answer(cell.replace("- eps", "+ eps"), space)
    assert kind == "refuted" and text.startswith(
        "refuted at step 3: rstd**2 * v = 1 + eps"
    )
    names = dict(
        space, both=run("derive((mean, mean), (diff(mean, x[j]), 1 / N))", dict(space))
    )
    used = run("derive(2 * diff(mean, x[j]), 2 / N, both)", names)
    assert used.lines[-1].reason == "substituted"
    assert answer("derive((mean, mean), (v,))", space)[0] == "refused"


def test_what_a_notebook_gets(space):
    right = run("jacobian", dict(space))._repr_mimebundle_()
    assert right["text/markdown"].endswith("**proved for every $N$**")
    assert right["text/latex"].startswith(
        "$$\n\\begin{aligned}\n\\frac{\\partial \\hat{x}_{k}}"
    )
    assert right[STATEMENT]["true"]
    wrong = run("prove(diff(v, x[j]), 2 / N * x[j])", dict(space))._repr_mimebundle_()
    assert r"\overset{?}{=}" in wrong["text/latex"] and not wrong[STATEMENT]["true"]
    assert (
        "**refuted**: left − right is $-\\frac{2 \\, \\mathrm{mean}}{N}$"
        in wrong["text/markdown"]
    )
    lines = run("definitions(mean, x_hat, dD)", dict(space))
    assert repr(lines).startswith("mean := Sum(x[r], (r, 1, N))/N\n")
    assert (
        r"\mathrm{dD}_{p} &= \frac{\partial \mathrm{loss}}{\partial D_{p}}"
        in lines.latex
    )


def test_what_the_author_says_is_shown_as_that(space):
    words = "derive(mean, Sum(x[r], (r, 1, N)) / N, {}N * mean / N)"
    assert "says the author" not in shown(words.format(""), space)
    verdict = run(words.format("'by $x$ alone', "), dict(space))
    assert r"\text{(“by }x\text{ alone”, says the author)}" in verdict.latex
    assert "says the author" in verdict._repr_mimebundle_()["text/markdown"]


def test_a_letter_of_a_sum_is_no_name_of_the_page():
    """Differentiated twice, the sums of q get a letter more, which must not be the name s."""
    cell = """
N, j, k, r = symbols("N j k r", integer=True, positive=True)
x = symbols("x", cls=IndexedBase, shape=(N,), real=True)
q = define("q", k, x[k] - Sum(x[r], (r, 1, N)) / N)
s = define("s", sqrt(Sum(q[r]**2, (r, 1, N)) / N))
prove(s * diff(s, x[j]), q[j] / N)
"""
    assert run("from sympy import *\nfrom normgrad.prove import *" + cell, {})


def test_a_cell_runs_again_where_a_name_has_its_sums_letter(monkeypatch):
    """The derivative's sum has another letter the second time; slope is one name, and no second formula of it."""
    monkeypatch.setattr(normgrad.prove.names, "SPELLINGS", set())
    cell = """
N, j, k, r = symbols("N j k r", integer=True, positive=True)
x = symbols("x", cls=IndexedBase, shape=(N,), real=True)
v = define("v", Sum(x[r]**2, (r, 1, N)))
slope = define("slope", j, diff(v, x[j]) + v)
"""
    space = page("from sympy import *\nfrom normgrad.prove import *" + cell)
    first = run("twice = define('twice', j, 2 * slope[j])\nslope.label", space)
    run("r = define('r', k, x[k])", space)
    second = run(f"{cell}\nslope.label", space)
    assert first.formula != second.formula and first == second
    assert run("prove(twice[k], 2 * slope[k])", space)


# -- SymPy stays alive


@pytest.mark.parametrize("source", table("true"))
def test_what_sympy_does_with_names(source, space):
    assert run(source, dict(space))


def test_the_entries_of_a_matrix_are_named_where_not_all_are_in_a_claim(space):
    row, column = "Sum(X[i, r], (r, 1, N))", "Sum(X[p, k], (p, 1, M))"
    some = eval(f"prove({row} + {column}, 0, hints=2)", space).words[1]
    assert "X[1, 2] = " in some and "X[2, 1] = " in some and "X[2, 2]" not in some
    assert "X = (" in eval(f"prove({row}, 0, hints=2)", space).words[1]
