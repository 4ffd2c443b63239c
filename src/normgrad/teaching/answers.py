"""What a reader's own numbers are, in words."""

from __future__ import annotations

import torch


def floor(*arrays: torch.Tensor) -> int:
    """Bytes of arrays that are each read once or written once: what no kernel can go below."""
    return sum(array.nbytes for array in arrays)


def _kind(t):
    return f"a tensor of shape {tuple(t.shape)} and dtype {t.dtype}"


def say(
    answer: torch.Tensor, right: torch.Tensor, mistakes: dict[str, torch.Tensor]
) -> bool:
    """Print whether numbers are right, or else which mistake they are, and return whether they are right.

    Args:  answer: of any kind; right: the tensor that it should be
           mistakes: {what went wrong, in words: the numbers that this gives}
    """
    if not isinstance(answer, torch.Tensor):
        print(f"not yet: got {type(answer).__name__}, needs {_kind(right)}")
        return False
    if (answer.shape, answer.dtype) != (right.shape, right.dtype):
        print(f"not yet: got {_kind(answer)}, needs {_kind(right)}")
        return False
    if torch.allclose(answer, right):
        print("right")
        return True
    for words, wrong in mistakes.items():
        if torch.allclose(answer, wrong):
            print(f"not yet: {words}")
            return False
    missing = ~torch.isfinite(answer)
    if missing.any():
        print(
            f"not yet: {int(missing.sum())} of {answer.numel()} numbers are not finite"
        )
    else:
        print(f"not yet: off by up to {(answer - right).abs().max():.2g}")
    return False
