"""What a reader's own numbers are, in words."""

from __future__ import annotations

import torch


def floor(*arrays: torch.Tensor) -> int:
    """Bytes of arrays that are each read once or written once: what no kernel can go below."""
    return sum(array.nbytes for array in arrays)


def say(
    answer: torch.Tensor, right: torch.Tensor, mistakes: dict[str, torch.Tensor]
) -> None:
    """Print whether numbers are right, or else which mistake they are.

    Args:  answer, right: the reader's numbers and what they should be, of one shape
           mistakes: {what went wrong, in words: the numbers that this gives}
    """
    if torch.allclose(answer, right):
        print("right")
        return
    for words, wrong in mistakes.items():
        if torch.allclose(answer, wrong):
            print(f"not yet: {words}")
            return
    missing = int((~torch.isfinite(answer)).sum())
    if missing:
        print(f"not yet: {missing} of {answer.numel()} numbers are not finite")
    else:
        print(f"not yet: off by up to {(answer - right).abs().max():.2g}")
