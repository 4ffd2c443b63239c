"""Numbers that a coefficient may be: 0, 1, 2 and the fractions of N and M that a wrong count produces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Number:
    """A value and how it is written, in plain text and in LaTeX."""

    value: float
    text: str
    latex: str


def block(columns: int) -> int:
    """The least power of two that is no less than the number of columns: how wide a block of a kernel is."""
    return 1 << (columns - 1).bit_length()


# key: (its value for N columns and M rows, plain text, LaTeX); the simplest come first
PATTERNS = {
    "0": (lambda n, m: 0.0, "0", "0"),
    "1": (lambda n, m: 1.0, "1", "1"),
    "N": (lambda n, m: float(n), "N", "N"),
    "1/N": (lambda n, m: 1 / n, "1 / N", r"\frac{1}{N}"),
    "N/(N-1)": (lambda n, m: n / (n - 1), "N / (N - 1)", r"\frac{N}{N - 1}"),
    "(N-1)/N": (lambda n, m: (n - 1) / n, "(N - 1) / N", r"\frac{N - 1}{N}"),
    "N-1": (lambda n, m: n - 1.0, "(N - 1)", "(N - 1)"),
    "1/(N-1)": (lambda n, m: 1 / (n - 1), "1 / (N - 1)", r"\frac{1}{N - 1}"),
    "N-1/N": (lambda n, m: n - 1 / n, "(N - 1 / N)", r"(N - \frac{1}{N})"),
    "N/(N+1)": (lambda n, m: n / (n + 1), "N / (N + 1)", r"\frac{N}{N + 1}"),
    "2": (lambda n, m: 2.0, "2", "2"),
    "1/2": (lambda n, m: 0.5, "1 / 2", r"\frac{1}{2}"),
    "3": (lambda n, m: 3.0, "3", "3"),
    "3/2": (lambda n, m: 1.5, "3 / 2", r"\frac{3}{2}"),
    "1/3": (lambda n, m: 1 / 3, "1 / 3", r"\frac{1}{3}"),
    "M": (lambda n, m: float(m), "M", "M"),
    "1/M": (lambda n, m: 1 / m, "1 / M", r"\frac{1}{M}"),
    "N*N": (lambda n, m: float(n * n), "N**2", "N^{2}"),
    "1/(N*N)": (lambda n, m: 1 / n**2, "1 / N**2", r"\frac{1}{N^{2}}"),
    "2*N": (lambda n, m: 2.0 * n, "2 * N", "2 N"),
    "2/N": (lambda n, m: 2 / n, "2 / N", r"\frac{2}{N}"),
    "M*N": (lambda n, m: float(m * n), "M * N", "M N"),
    "1/(M*N)": (lambda n, m: 1 / (m * n), "1 / (M * N)", r"\frac{1}{M N}"),
    "N**0.5": (lambda n, m: n**0.5, "sqrt(N)", r"\sqrt{N}"),
    "N**-0.5": (lambda n, m: n**-0.5, "1 / sqrt(N)", r"\frac{1}{\sqrt{N}}"),
    "N/B": (lambda n, m: n / block(n), "N / BLOCK", r"\frac{N}{B}"),
}


def value(pattern, columns: int, rows: int, reduce: str = "mean") -> float:
    """The value of a key of PATTERNS; numbers pass.

    Args:     pattern: a number, a key, or "other n", the factor by which sum and mean differ
    Returns:  inf for a division by N - 1 = 0
    """
    if not isinstance(pattern, str):
        return float(pattern)
    if pattern == "other n":
        pattern = "N" if reduce == "mean" else "1/N"
    try:
        return PATTERNS[pattern][0](columns, rows)
    except ZeroDivisionError:
        return float("inf")


@cache
def _numbers(columns, rows):
    return [Number(value(key, columns, rows), *written) for key, (_, *written) in PATTERNS.items()]


def recognise(coefficient: float, uncertainty: float, columns: int, rows: int) -> Number | None:
    """The first pattern whose value agrees with the coefficient's size, None where none does.

    Args:     coefficient, and how far off it may be; columns N, rows M
    """
    size = abs(coefficient)
    return next((n for n in _numbers(columns, rows) if abs(size - n.value) <= uncertainty), None)


def decimals(size: float, digits: int = 4) -> Number:
    """A number with so many digits."""
    text = f"{size:.{digits}g}"
    mantissa, _, power = text.partition("e")
    latex = rf"{mantissa} \cdot 10^{{{int(power)}}}" if power else mantissa
    return Number(size, text, latex)


def written(coefficient: float, uncertainty: float, columns: int, rows: int) -> Number:
    """The coefficient's size as a pattern, or in decimals where it is none."""
    return recognise(coefficient, uncertainty, columns, rows) or decimals(abs(coefficient))
