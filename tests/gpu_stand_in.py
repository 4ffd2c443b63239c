"""A device on the CPU for the GPU benchmark, and two implementations that run there."""

import contextlib

import torch

from normgrad.bench import contenders

BUILDERS = {"normgrad": lambda operator: contenders.ours(operator, "torch"), "torch": contenders.eager}


class StandIn:
    """A device whose clock says what it is told: one second a run, or what `script` gives for the number of the run."""

    torch_device, l2_bytes, free = torch.device("cpu"), 4096, 2**30

    def __init__(self, script=lambda number: 1.0, captures=True):
        self.script, self.captures, self.runs = script, captures, []

    def describe(self):
        return {"name": "stand-in", "l2_bytes": self.l2_bytes}

    def free_bytes(self):
        return self.free

    def session(self):
        return contextlib.nullcontext()

    def fresh(self):
        self.runs.append("fresh")

    def synchronize(self):
        pass

    def clock(self):
        return 0.0

    def capture(self, work):
        if not self.captures:
            raise RuntimeError("operation not permitted\nwhen stream is capturing")
        return work

    def seconds(self, run, repeats):
        run()
        self.last = run.__self__
        self.runs.append(id(self.last))
        return self.script(len(self.runs) - self.runs.count("fresh"))


def main():
    """The benchmark's command on the stand-in, with a few small shapes; a copy takes as long as all others."""
    from normgrad.bench import __main__ as command
    from normgrad.bench import device, measure, plan

    device.Cuda, contenders.contenders = StandIn, lambda: BUILDERS
    StandIn.half = "bfloat16"
    for name in ("CALLS", "HOST_CALLS", "HOST_ROUNDS", "WARM_ROUNDS"):
        setattr(measure, name, 1)
    plan.OPERATORS, plan.DTYPES = ("rms_norm", "add_layer_norm"), ("bfloat16", "float32")
    plan.ROUNDS, plan.MEBI, plan.ELEMENTS, plan.ALWAYS = 2, 1, (plan.USUAL,), ((4, 16),)
    plan.COLUMNS, plan.QUICK = (8, 16), {"columns": (16,), "elements": plan.ELEMENTS}
    command.main()


if __name__ == "__main__":
    main()
