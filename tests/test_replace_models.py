"""Norms as public models write them, with other names: replaced and proved equal, and their wrong neighbours left."""

import copy
import linecache
from itertools import count

import pytest
import torch
from near import near
from tables import blocks, lines

from normgrad import nn

COLUMNS, HEADS = 12, 3
HEADER = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
_serial = count()


def _class(text):
    """The last class of a text, which inspect finds."""
    file = f"<models {next(_serial)}>"
    text = HEADER + text
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    scope = {"__name__": "models"}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    *_, last = (value for value in scope.values() if isinstance(value, type))
    return last


def _table():
    """{name: (its text, what the report says of it, {an edit: what is said then})}."""
    table = {}
    for name, report, text in blocks("replaced_models.txt"):
        if text:
            table[name] = (text, report, edits := {})
        else:
            edit, _, reason = report.partition(" -- ")
            edits[edit] = reason
    return table


TABLE = _table()
WRONG = [(name, edit) for name, (*_, edits) in TABLE.items() for edit in edits]


def _model(text, generator):
    model = torch.nn.Sequential(_class(text)())
    for tensor in (*model.parameters(), *model.buffers()):
        torch.nn.init.normal_(tensor, generator=generator)
    return model


def _input(model, generator):
    shapes = [t.shape for t in (*model.parameters(), *model.buffers())]
    heads = [HEADS] if any(len(shape) == 2 for shape in shapes) else []
    return torch.randn(2, 5, *heads, COLUMNS, generator=generator)


def _outputs(module, inputs, dy):
    inputs = [t.clone().requires_grad_() for t in inputs]
    y = module(*inputs)
    return [y, *torch.autograd.grad(y, [*inputs, *module.parameters()], dy)]


@pytest.mark.parametrize("name", TABLE)
def test_a_models_norm_is_replaced_and_equal(name, torch_rng):
    text, report, _ = TABLE[name]
    model = _model(text, torch_rng)
    theirs, state = copy.deepcopy(model), dict(model.state_dict(keep_vars=True))
    outcome = nn.replace_norms(model, backend="torch", rounding="once")
    said = "; ".join((*outcome.replaced.values(), *outcome.proofs.values()))
    assert said == report and outcome.proved == ("0",) and not outcome.left
    for key, tensor in model.state_dict(keep_vars=True).items():
        assert state.pop(key) is tensor
    assert not state and type(model[0]) is not type(theirs[0])
    x = _input(model, torch_rng)
    count = 1 + isinstance(model[0], nn.GatedRMSNorm)
    *inputs, dy = torch.randn(count + 1, *x.shape, generator=torch_rng)
    outputs = [_outputs(m[0], inputs, dy) for m in (model, theirs)]
    for got, want in zip(*outputs, strict=True):
        assert near(got, want, dtype="float32")
    assert copy.deepcopy(model)[0](*inputs).equal(model[0](*inputs))


@pytest.mark.parametrize(("name", "edit"), WRONG)
def test_a_wrong_neighbour_is_left(name, edit, torch_rng):
    text, _, edits = TABLE[name]
    old, new = lines(edit).split(" => ")
    assert text.count(old) == 1
    model = _model(text.replace(old, new), torch_rng)
    before = model[0]
    outcome = nn.replace_norms(model, backend="torch", rounding="once")
    assert model[0] is before and edits[edit] in outcome.left["0"], outcome
