"""What the numbers of a refutation must be, by an evaluation that is not their own."""

import numpy as np
from points import set_maxima

from normgrad.verify.point import Point
from normgrad.verify.verdict import REFUTED


def point_of(output):
    """The inputs of a replay; what is defined is worked out of them by NumPy."""
    replay, defs = output.replay(), output.case.defs
    generator = np.random.default_rng(0)
    point = Point((replay.sizes["M"], replay.sizes["N"]), defs, generator)
    for symbol in output.case.stored.free_symbols:
        if str(symbol) in replay.sizes:
            point.sizes[symbol] = replay.sizes[str(symbol)]
    derived = {str(getattr(head, "base", head)) for head, _ in defs}
    for name, value in replay.inputs.items():
        if name not in derived:
            point.values[name] = np.array(value) if isinstance(value, list) else value
    set_maxima(point, output.case.largest)
    return point


def replays(verdict):
    """(name, output, its replay) of all that is refuted, or depends on a block, each of which NumPy evaluates too."""
    found = []
    for name, output in verdict.outputs.items():
        if output.kind != REFUTED and not output.replay():
            continue
        replay, case = output.replay(), output.case
        assert replay, output
        assert replay.line in str(verdict)
        point, letters = point_of(output), case.letters
        for side, e in (replay.stored, case.stored), (replay.defined, case.defined):
            needed = point.value(e, letters)
            np.testing.assert_allclose(np.array(side), needed, 1e-9, 1e-9)
        stored, defined = np.array(replay.stored), np.array(replay.defined)
        stored, defined = stored[replay.at], defined[replay.at]
        assert abs(stored - defined) > 1e-7 * max(abs(stored), abs(defined))
        found.append((name, output, replay))
    return found


def ran_as_read(verdict):
    """The replays of a verdict, of which there must be some; where they were run, the run gave what was read."""
    found = [replay for _, _, replay in replays(verdict)]
    assert found
    for replay in found:
        if replay.run is not None:
            np.testing.assert_allclose(replay.run, replay.stored, 1e-6, 1e-6)
    return found
