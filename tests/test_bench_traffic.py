"""Bytes: the floor of every operation, what other ways of computing it move, and predictions made of nothing else."""

import pytest

from normgrad.teaching import bytes as traffic
from normgrad.teaching.bytes import by_package as ours

BF16 = {"rows": 16384, "columns": 4096, "dtype": "bfloat16"}
FP32_STREAM = BF16 | {"residual_dtype": "float32"}
ELEMENTS = 16384 * 4096
# What, bytes an element, MB.
TABLE = {
    "forward": (traffic.moved("layer_norm", "forward", **BF16), 4, 268.6),
    "backward": (traffic.moved("layer_norm", "backward", **BF16), 6, 402.8),
    "add forward": (traffic.moved("add_layer_norm", "forward", **BF16), 8, 537.0),
    "add backward": (traffic.moved("add_layer_norm", "backward", **BF16), 8, 537.0),
    "add forward, float32 residual": (
        traffic.moved("add_layer_norm", "forward", **FP32_STREAM),
        12,
        805.5,
    ),
    "add backward, float32 residual": (
        traffic.moved("add_layer_norm", "backward", **FP32_STREAM),
        16,
        1073.9,
    ),
    "sum, then norm": (traffic.unfused("add_layer_norm", "forward", **BF16), 10, 671.2),
    "norm's backward, then sum": (
        traffic.unfused("add_layer_norm", "backward", **BF16),
        12,
        805.5,
    ),
    # the statistics are read twice as well: 0.1 MB
    "two kernels": (traffic.two_kernels("layer_norm", **BF16), 10, 671.4),
    "float32 dw matrix": (traffic.matrix("rms_norm", **BF16), 14, 939.6),
    "float32 dw matrix, dy again": (traffic.matrix("layer_norm", **BF16), 16, 1073.9),
}


@pytest.mark.parametrize("name", TABLE)
def test_table(name):
    moved, per_element, megabytes = TABLE[name]
    assert round(moved.per_element, 1) == per_element
    assert round(moved.total / 1e6, 1) == megabytes


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


def test_gradients_of_two_dtypes_are_two_arrays():
    writes = traffic.moved("add_rms_norm", "backward", **FP32_STREAM).writes
    assert (writes["dx"], writes["dresidual"]) == (2 * ELEMENTS, 4 * ELEMENTS)


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


# Bytes of the backward's matrices, statistics (c1 and c2 among them), vectors, and partial sums written and read, on
# paper. Centred rows of 16384 are split into 4 blocks of columns; at 8192, and at 16384 where the rows are not centred,
# a program takes all registers of a multiprocessor.
KERNELS = {
    ("layer_norm", 16384, 4096, 132): (
        6 * ELEMENTS,
        8 * 16384,
        6 * 4096,
        2 * 2 * 264 * 4096 * 4,
    ),
    ("layer_norm", 4096, 16384, 132): (
        10 * ELEMENTS,
        32 * 4096,
        8 * 16384,
        2 * 2 * 66 * 16384 * 4,
    ),
    ("rms_norm", 1024, 65536, 108): (
        10 * ELEMENTS,
        24 * 1024,
        6 * 65536,
        2 * 13 * 65536 * 4,
    ),
    ("add_rms_norm", 2, 4096, 132): (8 * 2 * 4096, 4 * 2, 4 * 4096, 2 * 2 * 4096 * 4),
    ("rms_norm", 4096, 16384, 132): (
        6 * ELEMENTS,
        4 * 4096,
        4 * 16384,
        2 * 132 * 16384 * 4,
    ),
    ("l2_norm", 4096, 16384, 132): (6 * ELEMENTS, 4 * 4096, 0, 0),
}


@pytest.mark.parametrize("point", KERNELS)
def test_what_our_backward_moves(point):
    operator, rows, columns, multiprocessors = point
    moved = ours(
        operator,
        "backward",
        multiprocessors=multiprocessors,
        rows=rows,
        columns=columns,
        dtype="bfloat16",
    )
    assert moved.total == sum(KERNELS[point])


def test_c1_and_c2_come_from_the_sum_not_from_its_terms():
    """A float32 residual stream: dy has 2 bytes, residual_out 4, and both are read twice."""
    shape = {
        "rows": 4096,
        "columns": 16384,
        "dtype": "bfloat16",
        "residual_dtype": "float32",
    }
    reads = ours("add_rms_norm", "backward", multiprocessors=132, **shape).reads
    assert (reads["dy"], reads["residual_out"], reads["dresidual_out"]) == (
        4 * ELEMENTS,
        8 * ELEMENTS,
        4 * ELEMENTS,
    )
    assert "x" not in reads


def test_portable_sums_are_as_many_on_every_gpu():
    floor = traffic.moved("rms_norm", "backward", **BF16).total
    for count in (8, 132):
        moved = ours(
            "rms_norm", "backward", multiprocessors=count, portable_sums=True, **BF16
        )
        assert moved.total == floor + 2 * 256 * 4096 * 4


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
