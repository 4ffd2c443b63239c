"""Bytes: the floor of every operation, what other ways of computing it move, and predictions made of nothing else."""

import pytest

from normgrad.bench import results, traffic

BF16 = {"rows": 16384, "columns": 4096, "dtype": "bfloat16"}
FP32_STREAM = BF16 | {"residual_dtype": "float32"}
ELEMENTS = 16384 * 4096
# What, bytes an element, MB.
TABLE = {
    "forward": (traffic.moved("layer_norm", "forward", **BF16), 4, 268.6),
    "backward": (traffic.moved("layer_norm", "backward", **BF16), 6, 402.8),
    "add forward": (traffic.moved("add_layer_norm", "forward", **BF16), 8, 537.0),
    "add backward": (traffic.moved("add_layer_norm", "backward", **BF16), 8, 537.0),
    "add forward, float32 residual": (traffic.moved("add_layer_norm", "forward", **FP32_STREAM), 12, 805.5),
    "add backward, float32 residual": (traffic.moved("add_layer_norm", "backward", **FP32_STREAM), 16, 1073.9),
    "sum, then norm": (traffic.unfused("add_layer_norm", "forward", **BF16), 10, 671.2),
    "norm's backward, then sum": (traffic.unfused("add_layer_norm", "backward", **BF16), 12, 805.5),
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


def test_statistics_count():
    without = BF16 | {"affine": False}
    assert traffic.moved("layer_norm", "forward", **without).per_element == 4 + 8 / 4096
    assert traffic.moved("rms_norm", "backward", **without).per_element == 6 + 4 / 4096


@pytest.mark.parametrize(
    ("operator", "direction", "reads", "writes"),
    [
        ("layer_norm", "forward", "x weight bias", "y mean rstd"),
        ("layer_norm", "backward", "dy x mean rstd weight", "dx dw db"),
        ("rms_norm", "backward", "dy x rstd weight", "dx dw"),
        ("l2_norm", "forward", "x", "y rstd"),
        ("add_rms_norm", "forward", "x residual weight", "y residual_out rstd"),
        ("add_rms_norm", "backward", "dy residual_out dresidual_out rstd weight", "dx dw"),
    ],
)
def test_what_is_read_and_written(operator, direction, reads, writes):
    """dx and dresidual are one array; the backward reads the sum, neither of its terms, and no bias."""
    moved = traffic.moved(operator, direction, **BF16)
    assert set(moved.reads) == set(reads.split()) and set(moved.writes) == set(writes.split())


def test_gradients_of_two_dtypes_are_two_arrays():
    writes = traffic.moved("add_rms_norm", "backward", **FP32_STREAM).writes
    assert (writes["dx"], writes["dresidual"]) == (2 * ELEMENTS, 4 * ELEMENTS)


@pytest.mark.parametrize(
    ("option", "names"), [("out_dtype", ("y", "dy")), ("weight_dtype", ("weight", "bias", "dw", "db"))]
)
def test_a_dtype_of_its_own(option, names):
    """float32 where the rest has two bytes doubles just these."""
    plain, wide = (traffic.moved("layer_norm", "both", **BF16, **extra) for extra in ({}, {option: "float32"}))
    grown = {name: size for side in ("reads", "writes") for name, size in getattr(plain, side).items()
             if getattr(wide, side)[name] == 2 * size}  # fmt: skip
    assert set(grown) == set(names)
    assert wide.total - plain.total == sum(
        side[name] for side in (plain.reads, plain.writes) for name in names if name in side
    )


@pytest.mark.parametrize("operator", traffic.OPERATORS)
def test_both_is_one_after_the_other(operator):
    totals = [traffic.moved(operator, direction, **BF16).total for direction in traffic.DIRECTIONS]
    assert totals[2] == totals[0] + totals[1]


@pytest.mark.parametrize(("rows", "megabytes"), [(132, 4.3), (1056, 34.6)])
def test_partial_rows(rows, megabytes):
    def cost(operator):
        with_them, floor = (traffic.moved(operator, "backward", partial_rows=p, **BF16).total for p in (rows, 0))
        return with_them - floor

    assert round(cost("rms_norm") / 1e6, 1) == megabytes
    assert cost("layer_norm") == 2 * cost("rms_norm")


@pytest.mark.parametrize(
    ("operator", "per_element"), [("rms_norm", 20), ("layer_norm", 22), ("add_rms_norm", 32), ("add_layer_norm", 34)]
)
def test_a_benchmark_that_accumulates(operator, per_element):
    assert round(traffic.accumulating(operator, **BF16).per_element, 1) == per_element


def test_seconds():
    moved = traffic.moved("layer_norm", "backward", **BF16)
    assert round(1e6 * traffic.seconds(moved, 4.3e12), 1) == 93.7
    for bandwidth in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="bytes_per_second"):
            traffic.seconds(moved, bandwidth)


@pytest.mark.parametrize(("operator", "counts"), [("layer_norm", (7, 13)), ("rms_norm", (4, 9)), ("l2_norm", (3, 6))])
def test_operations(operator, counts):
    """Counted on paper, term by term; the residual adds one a direction."""
    assert tuple(traffic.operations(operator, direction) for direction in traffic.DIRECTIONS[:2]) == counts
    if operator != "l2_norm":
        assert traffic.operations(f"add_{operator}", "both") == sum(counts) + 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: traffic.moved("batch_norm", "forward", **BF16), "operator: got 'batch_norm', needs one of layer_norm"),
        (lambda: traffic.moved("rms_norm", "sideways", **BF16), "direction: got 'sideways', needs one of forward"),
        (lambda: traffic.moved("rms_norm", "both", **BF16 | {"dtype": "int8"}), "dtype: got 'int8', needs one of"),
        (lambda: traffic.moved("rms_norm", "both", **BF16 | {"rows": -1}), "rows: got -1, needs at least 0"),
        (lambda: traffic.unfused("rms_norm", "both", **BF16), "operator: got 'rms_norm', needs one of add_layer_norm"),
        (lambda: results.predicted(0.0, "none"), "bytes_per_second: got 0.0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_prediction_is_bytes_over_bandwidth():
    found = results.predicted(4.8e12, "H200", operators=("layer_norm",), columns=(4096,), elements=(64,))
    by_name = {(one["implementation"], one["direction"]): one for one in found["records"]}
    ours, torchs = (by_name[name, "backward"] for name in ("normgrad", "torch"))
    assert found["kind"] == ours["kind"] == "predicted"
    assert ours["median"] == TABLE["backward"][0].total / 4.8e12 and ours["fraction"] == 1
    assert torchs["median"] == TABLE["two kernels"][0].total / 4.8e12
    assert by_name["torch", "forward"]["median"] == by_name["normgrad", "forward"]["median"]
