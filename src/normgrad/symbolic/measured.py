"""What formulas about computed numbers need besides the notation of the proofs."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Basic, Dummy, Expr, Function, Symbol


class Largest(Expr):
    """The largest value of an expression as a letter runs over a dimension; `largest` makes one."""

    is_commutative = True
    is_real = True

    def __new__(cls, e, letter, dim):  # noqa: D102
        return Basic.__new__(cls, e, letter, dim)

    @property
    def free_symbols(self):
        """SymPy's hook: the letter is bound."""
        body, letter, size = self.args
        return (body.free_symbols - {letter}) | size.free_symbols

    def _eval_derivative(self, v):
        raise NotImplementedError(
            f"{self}: a maximum over a letter has no derivative here; hold it fixed, as a letter"
        )


def largest(dim: Symbol, f: Callable[[Symbol], Expr]) -> Largest:
    """The largest of f(r) for r from 1 to dim."""
    r = Dummy("r", integer=True, positive=True)
    return Largest(f(r), r, dim)


class Log2(Function):
    """The logarithm to base 2."""

    nargs = 1
    is_real = True

    def _latex(self, printer):
        return rf"\log_2 {printer._print(self.args[0])}"


class Divides(Function):
    """1 where the first number divides the second one, 0 elsewhere."""

    nargs = 2
    is_real = True

    def _latex(self, printer):
        first, second = map(printer._print, self.args)
        yes = rf"1 & \text{{if }} {first} \text{{ divides }} {second}"
        return rf"\begin{{cases}} {yes} \\ 0 & \text{{if not}} \end{{cases}}"
