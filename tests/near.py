"""How near tensors have to be, where the contract's bounds are not asked for."""

from normgrad.checks.tolerance import unit_roundoff


def near(tensor, reference, roundings=64, dtype="float64"):
    """Whether a tensor is off by no more than so many roundings of the reference's largest number."""
    room = roundings * unit_roundoff(dtype) * reference.abs().max()
    return (tensor - reference).abs().max() <= room
