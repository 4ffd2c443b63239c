"""What a program was found to be: one of five verdicts, for each output and for the whole, with what it rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Add, Expr, Rational, S, Tuple, evaluate, sqrt

from ..symbolic.definitions import Defs
from ..symbolic.normal_form import as_powers, nf
from ..symbolic.patience import OutOfPatience, clock, limited
from ..symbolic.proof import NotProved, lettered, prove
from ..symbolic.symbols import eps
from ..symbolic.witness import Counterexample
from .replay import Case, Replay
from .values import NotRead, Wrong, unfollowed

PROVED = "proved for every M and N"
UNDECIDED = "neither proved nor refuted"
ALIKE = (
    "it differs by less than 1e-7 of its size, as a rounded number in the text does:"
)
IF_ZERO = "proved if masked lanes hold 0"
NOT_READ = "not read"
WRONG = "wrong in itself"
REFUTED = "refuted"
KINDS = (PROVED, IF_ZERO, NOT_READ, WRONG, REFUTED)  # from best to worst
MISREAD = "the reading refutes it and a run does not: please report"
FILLED = "a masked load without `other` gives 0"
# how many times a proof's seconds a verdict may take, with its counterexample and its difference
MORE = 1.5
# below float32's 1.2e-7: how far, of its size, a value may be from what is defined and differ in digits alone
DIGITS = 1e-7
# what may be an eps among a program's numbers, and how many of them are tried
LARGEST_EPS = Rational(1, 100)
EPS_TRIED = 3

# What is assumed of what, by the words of it; what fits none stands before all others.
SUBJECTS = {
    "": "",
    " of arguments": r"^\w+ is |^\w+ holds |: any integers of at least",
    " of names": r"imported as|triton\.language|^\w+\([\w, ]*\) is ",
    " of the launch": r" of the grid: |^programs_\d|compiler holds$|programs_\d is below",
    " of numbers and memory": "rounding, |Triton's widths|overlap|reads again|every program runs",
}


def assumption_lines(assumptions: Iterable[str]) -> list[str]:
    """What a verdict rests on as lines to print, one a subject; all of it is said, and nothing twice."""
    lines: dict[str, dict[str, None]] = {subject: {} for subject in SUBJECTS}
    for words in assumptions:
        fitting = [name for name, text in SUBJECTS.items() if re.search(text, words)]
        lines[fitting[-1]].update(dict.fromkeys(words.split("; ")))
    return [f"assumed{name}: {'; '.join(said)}" for name, said in lines.items() if said]


# a reason that is the name of a function alone, as "torch.compile"
NAME_ALONE = re.compile(r"(the name )?[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class Where:
    """A condition of a claim: its words, as "s[i] is not 0"; line: of the source, where it comes from."""

    words: str
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Claim:
    """What is claimed of a program, part by part.

    Args:  results: as "kernel: y = y[i, j]"; settings: what a reader may set otherwise, as "HAS_BIAS=True"
           clauses: what else it holds for, as "if dw is 0 before the kernel runs"; where: its conditions
           numbers: of dtypes and widths, as "with sums in float16 (line 9)" and "with M*stride < 2^31 (line 7)"
    """

    results: str
    settings: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    where: tuple[Where, ...] = ()
    numbers: tuple[str, ...] = ()

    def __str__(self):
        parts = [self.results, *self.numbers]
        if self.settings:
            parts.append(f"for {', '.join(self.settings)}")
        return ", ".join(
            [*parts, *self.clauses, *[f"where {c.words}" for c in self.where]]
        )


@dataclass(frozen=True)
class Verdict:
    """One verdict on an output, or on a whole program: the worst of its outputs'.

    Args:  kind: of KINDS; claims: what was to be shown, of which one alone has conditions where it is proved
           assumptions: everything that the verdict rests on, in words
           difference: the terms of (what is stored) - (what is defined), in the definitions' symbols
           counterexample: values where the two differ; line: of the source; why: what is wrong, or not read
           outputs: {name: its verdict} of a whole program; stored: what was read, where it is compared
           case: what the numbers of a refutation are made of
    """

    kind: str
    claims: tuple[Claim, ...] = ()
    assumptions: tuple[str, ...] = ()
    difference: tuple[Expr, ...] = ()
    counterexample: Counterexample | str | None = None
    line: int | None = None
    why: str = ""
    outputs: Mapping[str, Verdict] = field(default_factory=dict)
    stored: Expr | None = None
    case: Case | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        """True only where the program is proved for every M and N."""
        return self.kind == PROVED

    @property
    def is_proof(self) -> bool:
        """Whether the program is proved, perhaps on what masked lanes hold."""
        return self.kind in (PROVED, IF_ZERO)

    @property
    def accuses(self) -> bool:
        """Whether the program is said to be wrong."""
        return self.kind in (WRONG, REFUTED)

    @property
    def claim(self) -> str:
        """What was to be shown, in words, as "y = y[i, j]"."""
        return "; ".join(map(str, self.claims))

    @property
    def where(self) -> tuple[Where, ...]:
        """The conditions of its claims."""
        return tuple(c for claim in self.claims for c in claim.where)

    def data(self) -> dict[str, Any]:
        """The verdict as JSON holds it: its texts are those that are printed; what was read is left out."""
        at, replay = None, self.replay()
        if replay is not None:
            at = replay.line
        elif self.counterexample is not None:
            at = str(self.counterexample)
        conditions = [{"words": c.words, "line": c.line} for c in self.where]
        return {
            "kind": self.kind,
            "claim": self.claim,
            "where": conditions,
            "line": self.line,
            "why": self.why,
            "difference": lettered(*self.difference),
            "counterexample": at,
            "replay": replay and replay.data(),
            "assumptions": self._assumed,
            "outputs": {name: v.data() for name, v in self.outputs.items()},
        }

    @property
    def numbers(self) -> tuple[str, ...]:
        """What its claims say of dtypes and widths."""
        words = [text for claim in self.claims for text in claim.numbers]
        return tuple(dict.fromkeys(words))

    def unread(self, why: str) -> Verdict:
        """The verdict on the same claim where nothing is said of the program, and why."""
        claims = tuple(replace(c, where=(), numbers=()) for c in self.claims)
        return replace(
            self,
            kind=NOT_READ,
            claims=claims,
            why=why,
            difference=(),
            counterexample=None,
            outputs={},
            case=None,
        )

    def replay(self) -> Replay | None:
        """A small case in which what is refuted, or depends on a launcher's choice, fails, with all entries' numbers.

        The program is run where a proof of it would be, as verify says: a function object, or a text with run=True.

        Returns:  Replay, whose text is ready for a report; None for what is not refuted, and where no case is found
        """
        if self.case is None or not self.accuses:
            return None
        return self.case.replay

    @property
    def _assumed(self) -> list[str]:
        """The assumptions as lines, the conditions among them with the lines that they are of."""
        lines = {c.words: f"{c.words} (line {c.line})" for c in self.where if c.line}
        return assumption_lines(lines.get(words, words) for words in self.assumptions)

    @property
    def _details(self) -> list[str]:
        lines = []
        if self.why:
            where = f"line {self.line}: " if self.line else ""
            advice = ""
            if self.kind == NOT_READ and NAME_ALONE.fullmatch(self.why):
                advice = (
                    ", which is not read: leave it out, or say in helpers what it is"
                )
            lines.append(where + self.why + advice)
        if self.difference:
            terms = " + ".join(lettered(*self.difference)).replace("+ -", "- ")
            lines.append(f"stored - defined = {terms}")
        replay = self.replay()
        if replay is not None:
            lines.append(replay.line)
        elif self.counterexample is not None:
            lines.append(f"counterexample {self.counterexample}")
        return lines

    def __str__(self):
        claim = f": {self.claim}" if self.claim else ""
        lines = [self.kind + claim]
        lines += [f"  {line}" for line in self._details]
        for name, verdict in self.outputs.items():
            first, *more = str(replace(verdict, assumptions=())).split("\n")
            if verdict._details != self._details:
                lines += [f"  {name}: {first}", *[f"  {line}" for line in more]]
        lines += [f"  {line}" for line in self._assumed]
        return "\n".join(lines)

    def _repr_markdown_(self):
        claim = f": {self.claim}" if self.claim else ""
        lines = [f"**{self.kind}**{_plain(claim)}", ""]
        lines += [f"* `{line}`" for line in self._details]
        for name, verdict in self.outputs.items():
            details = ""
            if verdict._details != self._details:
                details = "".join(f"; `{line}`" for line in verdict._details)
            lines.append(f"* {name}: **{verdict.kind}**{details}")
        lines += [f"* {_plain(line)}" for line in self._assumed]
        return "\n".join(lines)


def _plain(text):
    """Text for Markdown, in which ** is a power and nothing is bold; a binding is code, whose quotes stay straight."""
    return re.sub(r"\b(?:T|Out)\([^()]*\)", r"`\g<0>`", text.replace("*", r"\*"))


def whole(
    outputs: Mapping[str, Verdict], claim: Claim, assumptions: Iterable[str] = ()
) -> Verdict:
    """The verdict on a program: the worst of its outputs', with all of their assumptions.

    Args:    claim, assumptions: of the program; one that is not proved has no conditions in its claim
    Raises:  ValueError where there is no output, of which nothing would be proved
    """
    if not outputs:
        raise ValueError("outputs: got none, needs at least one to be compared")
    worst = max(outputs.values(), key=lambda verdict: KINDS.index(verdict.kind))
    where = tuple(dict.fromkeys(claim.where))
    words = [*assumptions, *[condition.words for condition in where]]
    for verdict in outputs.values():
        words += verdict.assumptions
    claim = replace(claim, where=where)
    if not worst.is_proof:
        claim = replace(claim, where=(), numbers=())
    claims = (claim,)
    words = tuple(dict.fromkeys(words))
    return replace(worst, claims=claims, assumptions=words, outputs=outputs)


def beside_run(verdict: Verdict, run: Callable) -> Verdict:
    """A refutation, unless the program's run, at the numbers of its replay, gives what is defined.

    For a function object. It stops an accusation by a reading that is wrong.
    """
    for name, output in verdict.outputs.items():
        if output.case:
            output.case.run = run, name
    replay = verdict.replay()
    if replay and replay.is_misread:
        return verdict.unread(f"{MISREAD}. {replay.line}, run {replay.run}")
    return verdict


def if_zero(
    verdicts: dict[str, Verdict], lines: Iterable[int]
) -> tuple[dict[str, Verdict], str]:
    """(proofs that hold if masked lanes hold 0, what is assumed); lines: where a load has no `other`."""
    for name, verdict in verdicts.items():
        if verdict:
            verdicts[name] = replace(verdict, kind=IF_ZERO)
    where = ", ".join(map(str, sorted(lines)))
    return verdicts, f"{FILLED} (lines {where}); Triton leaves it open"


def joined(first: Verdict, second: Verdict, flag: str = "") -> Verdict:
    """Two proofs of a program as one, with the assumptions of both.

    Args:  flag: what is True in the first and False in the second; where there is none, the second is of fewer of the
           first's results, and has its conditions alone
    """
    if flag:
        ways = (first, "True"), (second, "False")
        claims, others = [_with_both(v, f"{flag}={way}", flag) for v, way in ways]
        if claims != others:
            claims = first.claims + second.claims
    else:
        where = tuple(dict.fromkeys(first.where + second.where))
        clauses = first.claims[0].clauses + second.claims[0].clauses
        clauses = tuple(dict.fromkeys(clauses))
        numbers = tuple(dict.fromkeys(first.numbers + second.numbers))
        claim = replace(first.claims[0], where=where, clauses=clauses)
        claims = (replace(claim, numbers=numbers),)
    assumptions = tuple(dict.fromkeys(first.assumptions + second.assumptions))
    return replace(first, claims=claims, assumptions=assumptions)


def _with_both(verdict, setting, flag):
    """The claims of a verdict, with a flag that may be either in place of one that is set."""
    claims = []
    for claim in verdict.claims:
        settings = [
            f"{flag}=True or False" if s == setting else s for s in claim.settings
        ]
        claims.append(replace(claim, settings=tuple(settings)))
    return tuple(claims)


def _claims(text):
    return (Claim(text),) if text else ()


def eps_of(*stored: Expr, largest: Expr = LARGEST_EPS) -> list[Expr]:
    """The numbers in what a program stores that may be its eps; none where eps is there itself."""
    stored = Tuple(*stored)
    if stored.has(eps):
        return []
    numbers = sorted(n for n in stored.atoms(Rational) if 0 < n <= largest)
    return numbers[:EPS_TRIED]


def at_its_eps(
    judge: Callable[[Any], Verdict], definitions: Any, arguments: Iterable
) -> Verdict:
    """The verdict on a program; one that writes a number for eps is compared with the definitions at this number.

    Of x * rsqrt(mean(x**2) + 1e-5), which has no argument eps: the claim says "for eps=1e-05". A program that writes
    one number in its forward and another in its backward is proved at neither; nor is one that has an eps and leaves it
    out, whose result another eps does not change.

    Args:  judge: the verdict by definitions; arguments: what the program's arguments are
    """
    verdict = judge(definitions)
    has_eps = any(isinstance(e, Expr) and e.has(eps) for e in arguments)
    if verdict.is_proof or has_eps or not any(e.has(eps) for _, e in definitions.defs):
        return verdict
    verdicts = [verdict, *verdict.outputs.values()]
    verdicts_at, unread = [], []
    stored = [v.stored for v in verdicts if v.stored is not None]
    numbers = eps_of(*stored, largest=S.One)
    for number in dict.fromkeys((*numbers, *_hidden(stored, numbers))):
        at_number = judge(definitions.at_eps(number))
        claims = []
        for claim in at_number.claims:
            settings = claim.settings
            if not re.search(r"\beps=", str(claim)):
                settings = (*settings, f"eps={float(number)}")
            claims.append(replace(claim, settings=settings))
        at_number = replace(at_number, claims=tuple(claims))
        if at_number.is_proof:
            return at_number
        if at_number.kind == NOT_READ:
            # it may be right at this number
            unread.append(at_number)
        # 1/2 is a power rather than an eps
        elif number in numbers and number <= LARGEST_EPS:
            verdicts_at.append(at_number)
    if unread:
        return unread[0]
    return verdicts_at[0] if len(verdicts_at) == 1 else verdict


def _hidden(stored, numbers) -> list[Expr]:
    """What eps may be besides the numbers in what is stored, which accuses nothing.

    For rsqrt(max(sum(x**2), 1e-24)), where it is 1e-12, and for rsqrt(where(v > 0, v, 1) + 0.1), where SymPy adds up
    1 + 0.1. It stops an accusation of both by an eps that they do not have.
    """
    roots = [sqrt(n) for n in numbers if n <= LARGEST_EPS and sqrt(n).is_Rational]
    sums = [n for n in Tuple(*stored).atoms(Rational) if n > 1 and not n.is_Integer]
    return roots + sorted(n % 1 for n in sums)[:EPS_TRIED]


def refused(reason: Exception, claim: str = "") -> Verdict:
    """The verdict where a program, or a proof, is not followed to its end: wrong in itself, or not read."""
    if isinstance(reason, NotRead):
        kind = WRONG if isinstance(reason, Wrong) else NOT_READ
        return Verdict(kind, _claims(claim), line=reason.line, why=str(reason))
    why = f"{UNDECIDED}: {reason}"
    if "zoo" in str(reason):  # SymPy's name for a quotient by 0
        why = f"{UNDECIDED}: a quotient by 0 at the numbers that were tried"
    if isinstance(reason, RecursionError):
        why = unfollowed(reason)
    return Verdict(NOT_READ, _claims(claim), why=why)


def _terms(stored, defined, defs):
    """The terms of stored - defined, with the names that both sides use left as they are."""
    with evaluate(True):
        names = defs.differing(stored, defined)
        difference = defs.unfold(stored, names) - defs.unfold(defined, names)
        return Add.make_args(as_powers(nf(difference)))


def _in_digits_alone(at: Counterexample) -> bool:
    """Whether two sides differ by no more than float32 may lose.

    For exp2(x * 1.4426950408889634), which is exp(x) in floating-point numbers. Without it this program is refuted.
    """
    left, right = complex(at.lhs), complex(at.rhs)
    return abs(left - right) <= DIGITS * max(abs(left), abs(right))


def compare(
    stored: Expr, defined: Expr, defs: Defs, claim: str = "", seconds: float = 20
) -> Verdict:
    """What a program stores against its definition: proved, refuted with the difference, or not read.

    Args:  stored, defined: the two sides in one set of symbols; defs: what the names stand for
           seconds: after how many the proof is given up; after half as many more the difference
    """
    deadline = clock() + MORE * seconds
    try:
        prove(stored, defined, defs, seconds=seconds)
    except NotProved as reason:
        if reason.counterexample is None:
            why = f"{UNDECIDED}: {reason.why}"
            return Verdict(NOT_READ, _claims(claim), why=why)
        if _in_digits_alone(reason.counterexample):
            return Verdict(
                NOT_READ, _claims(claim), why=f"{ALIKE} {reason.counterexample}"
            )
        difference = (stored - defined,)
        left = deadline - clock()
        with suppress(NotImplementedError, OutOfPatience, ValueError), limited(left):
            difference = _terms(stored, defined, defs)
        return Verdict(
            REFUTED,
            _claims(claim),
            difference=difference,
            counterexample=reason.counterexample,
            stored=stored,
            case=Case(stored, defined, defs, reason.counterexample),
        )
    except (NotImplementedError, RecursionError, TypeError, ValueError) as reason:
        return refused(reason, claim)
    return Verdict(PROVED, _claims(claim), stored=stored)
