"""verify proves right kernels of many house styles, and proves no wrong one."""

import random
import re

import pytest
from machine_mutants import machine_mutants, statement_at
from verify_kernels import ATTACKS, BINDINGS, HEAD, KERNELS

from normgrad.verify import verify

PROVED, IF_ZERO = "proved for every M and N", "proved if masked lanes hold 0"


def verdict(text, binding, grid, definitions):
    return verify(HEAD + text, binding, grid, definitions, kernel="kernel", seconds=10)


@pytest.mark.parametrize("name", KERNELS)
def test_right_kernels_are_proved(name):
    assert verdict(*KERNELS[name])


@pytest.mark.parametrize("name", ATTACKS)
def test_no_edit_by_hand_is_proved(name):
    text, *rest = KERNELS[name]
    for old, new, why in ATTACKS[name]:
        assert text.count(old) >= 1, old
        found = verdict(text.replace(old, new), *rest)
        unknown = found.kind == IF_ZERO and why == "0 of what is not known"
        assert bool(found) == (why is None) and (unknown or found.kind != IF_ZERO), (
            f"{why}: {found}"
        )


@pytest.mark.parametrize(("name", "change", "grid", "why"), BINDINGS)
def test_no_binding_that_does_not_fit_is_proved(name, change, grid, why):
    text, binding, _, definitions = KERNELS[name]
    found = verdict(text, binding | change, grid, definitions)
    assert found.kind not in (PROVED, IF_ZERO), why


# Edits that leave a kernel right: a part of the edit, a part of its statement, and why.
EQUAL = (
    ("branch", "if affine", "the flag is set"),
    ("branch", "if mode == LLAMA", "digits"),
    ("== -> !=", "if mode == LLAMA", "digits"),
    ("branch", "if HAS_BIAS", "the flag is set"),
    ("branch", "if TRAIN", "the flag is set"),
    ("axis", "tl.sum(", "the tile has one axis"),
    ("eviction_policy", "", "speed"),
    ("num_stages", "num_stages", "speed"),
    ("3 -> 4", "num_stages", "speed"),
)
MASKED = ("other", "0 -> 1", "0.0 -> 1.0")  # a lane that is not summed, or times 0


@pytest.mark.parametrize("name", KERNELS)
def test_no_edit_by_machine_is_proved_that_makes_a_kernel_wrong(name):
    text, *rest = KERNELS[name]
    full, start = HEAD + text, HEAD.count("\n")
    for mutant in machine_mutants(full):
        if mutant.line <= start:
            continue
        try:
            found = verify(mutant.applied(full), *rest, kernel="kernel", seconds=10)
        except ValueError as refusal:  # an argument of the binding that is gone
            assert "binding" in str(refusal)
            continue
        code = statement_at(full, mutant.line)
        if found.kind == IF_ZERO:
            assert "other" in str(mutant) or "padding_option" in str(mutant), mutant
        elif found:
            masked = "mask=" in code and any(word in str(mutant) for word in MASKED)
            listed = any(a in str(mutant) and b in code for a, b, _ in EQUAL)
            assert masked or listed, f"{mutant}: {code}"


def swaps(text):
    """Texts in which a name, of which not only the dtype is asked, is another one of the kernel's."""
    start = text.rindex("def kernel(")
    header, _, body = text[start:].partition("):\n")
    names = re.findall(r"(\w+)(?=[,:]|$)", header.partition("(")[2])
    names = [name for name in names if name != "constexpr"]
    pattern = rf"(?<!if )\b({'|'.join(names)})\b(?! *=|\.dtype)"
    for match in re.finditer(pattern, body):
        for name in names:
            if name != match[1]:
                edited = body[: match.start()] + name + body[match.end() :]
                yield f"{text[:start]}{header}):\n{edited}"


@pytest.mark.parametrize("name", KERNELS)
def test_no_exchange_of_two_names_is_proved(name):
    text, *rest = KERNELS[name]
    edits = list(swaps(text))
    for edited in random.Random(name).sample(edits, min(40, len(edits))):
        found = verdict(edited, *rest)
        changed = [
            f"{a.strip()} -> {b.strip()}"
            for a, b in zip(text.split("\n"), edited.split("\n"), strict=True)
            if a != b
        ]
        assert found.kind not in (PROVED, IF_ZERO), changed
