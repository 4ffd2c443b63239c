"""Bytes: the floor of every operation, what other ways of computing it move, and predictions made of nothing else."""

import pytest

from normgrad.teaching import bytes as traffic
from normgrad.teaching.bytes import by_package as ours

BF16 = {"rows": 16384, "columns": 4096, "dtype": "bfloat16"}


@pytest.mark.parametrize(
    ("operator", "direction", "reads", "writes"),
    [
        ("layer_norm", "forward", "x weight bias", "y mean rstd"),
        ("layer_norm", "backward", "dy x mean rstd weight", "dx dw db"),
        ("rms_norm", "backward", "dy x rstd weight", "dx dw"),
        ("l2_norm", "forward", "x", "y rstd"),
        ("add_rms_norm", "forward", "x residual weight", "y residual_out rstd"),
        (
            "add_rms_norm",
            "backward",
            "dy residual_out dresidual_out rstd weight",
            "dx dw",
        ),
    ],
)
def test_what_is_read_and_written(operator, direction, reads, writes):
    """dx and dresidual are one array; the backward reads the sum, neither of its terms, and no bias."""
    moved = traffic.moved(operator, direction, **BF16)
    assert set(moved.reads) == set(reads.split()) and set(moved.writes) == set(
        writes.split()
    )


@pytest.mark.parametrize(
    ("option", "names"),
    [("out_dtype", ("y", "dy")), ("weight_dtype", ("weight", "bias", "dw", "db"))],
)
def test_a_dtype_of_its_own(option, names):
    """float32 where the rest has two bytes doubles just these."""
    plain, wide = (
        traffic.moved("layer_norm", "both", **BF16, **extra)
        for extra in ({}, {option: "float32"})
    )
    grown = {name: size for side in ("reads", "writes") for name, size in getattr(plain, side).items()
             if getattr(wide, side)[name] == 2 * size}  # fmt: skip
    assert set(grown) == set(names)
    assert wide.total - plain.total == sum(
        side[name]
        for side in (plain.reads, plain.writes)
        for name in names
        if name in side
    )


@pytest.mark.parametrize(
    ("operator", "counts"),
    [("layer_norm", (7, 13)), ("rms_norm", (4, 9)), ("l2_norm", (3, 6))],
)
def test_operations(operator, counts):
    """Counted on paper, term by term; the residual adds one a direction."""
    assert (
        tuple(
            traffic.operations(operator, direction)
            for direction in traffic.DIRECTIONS[:2]
        )
        == counts
    )
    if operator != "l2_norm":
        assert traffic.operations(f"add_{operator}", "both") == sum(counts) + 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: traffic.moved("batch_norm", "forward", **BF16),
            "operator: got 'batch_norm', needs one of layer_norm",
        ),
        (
            lambda: traffic.moved("rms_norm", "sideways", **BF16),
            "direction: got 'sideways', needs one of forward",
        ),
        (
            lambda: traffic.moved("rms_norm", "both", **BF16 | {"dtype": "int8"}),
            "dtype: got 'int8', needs one of",
        ),
        (
            lambda: traffic.moved("rms_norm", "both", **BF16 | {"rows": -1}),
            "rows: got -1, needs at least 0",
        ),
        (
            lambda: traffic.unfused("rms_norm", "both", **BF16),
            "operator: got 'rms_norm', needs one of add_layer_norm",
        ),
        (
            lambda: ours("rms_norm", "both", multiprocessors=0, **BF16),
            "multiprocessors: got 0, needs at least 1",
        ),
        (
            lambda: ours("rms_norm", "sideways", multiprocessors=1, **BF16),
            "direction: got 'sideways'",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("columns", [4096, 9000])
def test_our_kernels_move_what_the_model_says(columns):
    """Counted in the interpreter; what a kernel reads again is known: rows read the weight, blocks the statistics."""
    torch = pytest.importorskip("torch")
    triton_kernels = pytest.importorskip("normgrad.triton_kernels")
    if not triton_kernels.INTERPRETED:
        pytest.skip("Triton compiles in this run")
    from normgrad import LAYER_NORM
    from normgrad.teaching.watch import watch

    rows, generator = 6, torch.Generator().manual_seed(1)
    dy, dresidual_out, p = torch.randn(3, rows, columns, generator=generator)
    weight, mean, rstd = (
        torch.randn(columns, generator=generator),
        p.mean(1),
        p.std(1).reciprocal(),
    )
    with watch() as counted:
        triton_kernels.backward(
            dy, dresidual_out, p, weight, mean, rstd, LAYER_NORM, [torch.float32] * 4
        )
    shape = {"rows": rows, "columns": columns, "dtype": "float32"}
    model = ours("add_layer_norm", "backward", multiprocessors=1, **shape)
    # 2 programs hold whole rows; 9000 columns are 3 blocks, 4 statistics each, and 6 programs read the weight for c1
    again = {4096: columns, 9000: 5 * columns + 2 * 4 * rows}[columns]
    loaded, stored = (sum(row[side] for row in counted.arguments()) for side in (1, 2))
    assert (
        sum(model.reads.values()) + 4 * again == loaded
        and sum(model.writes.values()) == stored
    )
