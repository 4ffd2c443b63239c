"""What the workbench asks Python: the text of a registered equation, to be changed, and what its claims come to."""

from __future__ import annotations

import json
from itertools import chain, count
from keyword import iskeyword

import sympy
from sympy import Dummy, IndexedBase, Mul, Symbol
from sympy.printing.str import StrPrinter

import normgrad.symbolic
from normgrad.symbolic import NotProved, Trace, as_written, equation, prove, trace
from normgrad.symbolic.calculus import free_letters
from normgrad.symbolic.opaque import Opaque, derivative
from normgrad.symbolic.refute import Refutation

NAMES = {name: getattr(sympy, name) for name in sympy.__all__ if name.isidentifier()}
NAMES |= {name: getattr(normgrad.symbolic, name) for name in normgrad.symbolic.__all__}
NAMES |= {"derivative": derivative}
WIDE = 76


class NoText(Exception):
    """An expression that has no text of this kind."""


class Typed(StrPrinter):
    """An expression as one types it in a cell. Args: taken: names that no bound letter may have"""

    def __init__(self, taken=()):
        super().__init__({"sympy_integers": True})
        self.taken, self.bound = set(taken), {}

    def _print_Symbol(self, e):
        if not e.name.isidentifier() or iskeyword(e.name):
            raise NoText(e.name)
        return e.name

    def _print_Dummy(self, e):
        return self.bound[e]

    def _print_Integer(self, e):
        return str(int(e)) if e >= 0 else f"(-{-int(e)})"

    def _print_Rational(self, e):
        return f"Rational({e.p}, {e.q})"

    def _print_Half(self, e):
        return self._print_Rational(e)

    def _print_Sum(self, e):
        body, start = e.function, ""
        for letter, first, last in reversed(e.limits):
            if first != 1:
                raise NoText(str(e))
            used = self.taken | set(self.bound.values())
            name = next(
                one
                for one in chain("rstuv", map("r{}".format, count(1)))
                if one not in used
            )
            self.bound[letter] = name
            start = f"{start}total({self._print(last)}, lambda {name}: "
        # SymPy puts a 1 before the body of a sum that is kept as typed
        if isinstance(body, Mul) and body.args[0] == 1:
            body = (
                Mul(*body.args[1:], evaluate=False)
                if len(body.args) > 2
                else body.args[1]
            )
        letters = {
            letter: Dummy(str(letter)) for letter, *_ in e.limits if not letter.is_Dummy
        }
        for letter, dummy in letters.items():
            self.bound[dummy] = self.bound.pop(letter)
        text = start + self._print(body.xreplace(letters)) + ")" * len(e.limits)
        for letter, *_ in e.limits:
            self.bound.pop(letters.get(letter, letter))
        return text

    def _print_KroneckerDelta(self, e):
        return f"delta({self._print(e.args[0])}, {self._print(e.args[1])})"

    def _print_Partial(self, e):
        return f"Partial({self._print(e.args[0])}, {self._print(e.args[1])})"

    def _print_Local(self, e):
        return f"Local({self._print(e.args[0])}, {self._print(e.args[1])})"

    def _print_Function(self, e):
        if isinstance(e, Opaque):
            return f"{e.letter}{e.order or ''}({self._print(e.args[0])})"
        if e.func.__name__ not in NAMES:
            raise NoText(str(e))
        return f"{e.func.__name__}({', '.join(map(self._print, e.args))})"


def _declared(name) -> str:
    """How a symbol or a tensor is made."""
    if isinstance(name, IndexedBase):
        sizes = ", ".join(map(str, name.shape))
        return f'tensor("{name.label}", {sizes}{", positive=True" if name.is_positive else ""})'
    if name == Symbol(name.name, positive=True):
        return f'tensor("{name}", positive=True)'
    if name == Symbol(name.name, real=True):
        return f'tensor("{name}")'
    known = ", ".join(f"{key}={value}" for key, value in name._assumptions_orig.items())
    return f'Symbol("{name}", {known})'


def _text(one) -> str:
    lines = one.defs.reached(*[e for pair in one.steps for e in pair])
    parts = [e for line in lines for e in line] + [
        e for pair in one.steps for e in pair
    ]
    tensors = set().union(*[e.atoms(IndexedBase) for e in parts])
    labels = {base.label for base in tensors}
    symbols = set().union(*[e.free_symbols for e in parts]) - labels - tensors
    symbols |= {size for base in tensors for size in base.shape}
    letters = set().union(*map(free_letters, parts))
    symbols = {
        each
        for each in symbols
        if isinstance(each, Symbol) and not isinstance(each, Dummy)
    } - letters
    opaques = {(f.letter, f.order) for e in parts for f in e.atoms(Opaque)}
    names = [str(getattr(each, "label", each)) for each in symbols | tensors | letters]
    names += sorted({letter for letter, _ in opaques})
    if len(set(names)) < len(names) or not all(map(str.isidentifier, names)):
        raise NoText(one.label)
    write = Typed(names).doprint
    sizes = sorted(
        (each for each in symbols if each.is_integer and each.is_positive), key=str
    )
    others = sorted(symbols - set(sizes), key=str) + sorted(tensors, key=str)
    text = [f"# {one.claim}"]
    for function, group in (("dim", sizes), ("index", sorted(letters, key=str))):
        if group:
            made = ", ".join(f'{function}("{each}")' for each in group)
            text.append(f"{', '.join(map(str, group))} = {made}")
    text += [f"{getattr(each, 'label', each)} = {_declared(each)}" for each in others]
    for letter in sorted({letter for letter, _ in opaques}):
        text.append(f'{letter} = opaque("{letter}")')
        most = max(order for name, order in opaques if name == letter)
        text += [
            f"{letter}{at + 1} = derivative({letter}{at or ''})" for at in range(most)
        ]
    text += ["", "defs = Defs()"]
    text += [f"defs[{write(head)}] = {write(formula)}" for head, formula in lines]
    text.append("")
    for lhs, rhs in one.steps:
        claim = f"prove({write(lhs)}, {write(rhs)}, defs)"
        text.append(
            claim
            if len(claim) <= WIDE
            else f"prove(\n    {write(lhs)},\n    {write(rhs)},\n    defs,\n)"
        )
    return "\n".join(text) + "\n"


def statement(label: str) -> str:
    """A registered equation as the text of a cell: its names, its definitions, its claims.

    Args:    label: of the equation
    Returns: Python text; of a claim that has none the call that proves it
    Raises:  ValueError for an unknown label
    """
    one = equation(label)
    try:
        return _text(one)
    except NoText:
        proving = "for proof in claim.prove():\n    show(proof)\n"
        return f"# {one.claim}\nclaim = equation({label!r})\nshow(claim)\n{proving}"


def _latex(value) -> str:
    """A value's formula without its dollar signs, where it has one."""
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    shown = bundle.get("text/latex") or getattr(value, "_repr_latex_", str)() or ""
    return shown.strip().strip("$").strip()


def judge(text: str) -> str:
    """Run the text of a cell and say what its claims come to.

    Args:    text: Python, in which prove and trace show what they find
    Returns: JSON: a list of {kind, text, latex}; kind is "proved", "refuted", "undecided", "shown" or "error"
    """
    found = []

    def add(kind, words, value=None):
        found.append(
            {
                "kind": kind,
                "text": words,
                "latex": "" if value is None else _latex(value),
            }
        )

    def show(value):
        add("shown", str(value) if not hasattr(value, "_repr_latex_") else "", value)

    def proving(lhs, rhs, *more, **options):
        try:
            proof = prove(lhs, rhs, *more, **options)
        except NotProved as refusal:
            if refusal.counterexample:
                add("refuted", str(Refutation(refusal, "")))
            else:
                add("undecided", str(refusal))
            return None
        add("proved", str(proof.certificate()), proof)
        return proof

    def tracing(*sides, **options) -> Trace:
        made = trace(*sides, **options)
        add("shown", "", made)
        return made

    def printing(*words):
        add("shown", " ".join(map(str, words)))

    scope = NAMES | {
        "prove": proving,
        "trace": tracing,
        "show": show,
        "print": printing,
    }
    try:
        with as_written():
            exec(compile(text, "the cell", "exec"), scope)  # noqa: S102 - the reader's own text, in the reader's browser
    except Exception as error:
        line = getattr(error, "lineno", None)
        trail = error.__traceback__
        while trail:
            line = (
                trail.tb_lineno
                if trail.tb_frame.f_code.co_filename == "the cell"
                else line
            )
            trail = trail.tb_next
        where = f"line {line}: " if line else ""
        add("error", f"{where}{type(error).__name__}: {error}")
    if not found:
        add("error", "nothing was claimed: call prove(left, right, defs)")
    return json.dumps(found)
