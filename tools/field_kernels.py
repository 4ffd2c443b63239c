"""What published packages' norm kernels store, read from the versions named, which are fetched and never kept.

python tools/field_kernels.py                fetches the packages with pip and prints the table
python tools/field_kernels.py --folder F     keeps the wheels in F; --only TEXT; --json FILE writes the table, too
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from normgrad.symbolic import Defs, tensor, total
from normgrad.symbolic.symbols import j
from normgrad.verify import (
    CHUNK,
    COLUMNS,
    FLOAT,
    OFFSET,
    PROGRAM_COUNT,
    ROWS,
    WHOLE,
    InOut,
    M,
    N,
    Norm,
    Out,
    T,
    eps,
    norm,
    verify,
)

PACKAGES = {
    "liger-kernel": "0.8.5",
    "unsloth": "2026.10.9",
    "xformers": "0.0.35",
    "conch-triton-kernels": "1.3",
    "fla-core": "0.6.0",
    "flag-gems": "5.0.2",
}


@dataclass(frozen=True)
class Case:
    """One kernel in one variant.

    Args:  package, file, kernel, note: where it is, and which variant; binding, grid, helpers: as verify's
           operator: what norm() is given; None for the sum of partial sums
    """

    package: str
    file: str
    kernel: str
    note: str
    grid: str | tuple
    binding: dict
    operator: dict | None = None
    helpers: dict = field(default_factory=dict)

    @property
    def definitions(self) -> Norm:
        """What it is held against."""
        return partial_sums() if self.operator is None else norm(**self.operator)

    @property
    def held_against(self) -> str:
        """The definitions in words."""
        if self.operator is None:
            return "sum of partial sums"
        words = ["layer norm" if self.operator.get("center") else "rms norm"]
        for name, value in self.operator.items():
            if name != "center":
                words.append(f"{name}={value}")
        return ", ".join(words)


def partial_sums() -> Norm:
    """The sum of the rows of `part`."""
    part, sums = tensor("part", M, N), tensor("sum", N)
    defs = Defs()
    defs[sums[j]] = total(M, lambda r: part[r, j])
    return Norm(defs, {"sum": sums[j]})


def rows(names: dict[str, str], kind=T, stride="{}_row_stride") -> dict:
    """{pointer: kind(tensor) with its stride's argument}; names: {pointer: tensor}."""
    return {
        pointer: kind(name, stride=stride.format(pointer.removesuffix("_ptr")))
        for pointer, name in names.items()
    }


def liger() -> Iterator[Case]:
    """Liger-Kernel's rms norm, with a residual, modulated, and layer norm."""
    package, folder = "liger-kernel", "liger_kernel/ops"
    file, fused = f"{folder}/rms_norm.py", f"{folder}/fused_add_rms_norm.py"
    sizes = {"n_cols": N, "n_rows": M, "BLOCK_SIZE": WHOLE, "offset": OFFSET}
    statistics = {"W_ptr": T("weight"), **rows({"RSTD_ptr": "rstd"})}
    outputs = rows({"Y_ptr": "y", "RSTD_ptr": "rstd"}, Out)
    forward = {**rows({"X_ptr": "x"}), "W_ptr": T("weight"), **outputs, "eps": eps}
    backward = {
        **rows({"dY_ptr": "dy", "X_ptr": "x"}),
        **rows({"dX_ptr": "dx"}, Out),
        **statistics,
        "X_dtype": FLOAT,
        "dW_ptr": Out("dw", "p, j", stride="dW_row_stride"),
    }
    chunk = {"rows_per_program": CHUNK}
    for mode, affine in ((0, True), (1, True), (-1, True), (0, False), (1, False)):
        note = f"casting mode {mode}" + ("" if affine else ", no weight")
        operator = {"weight_offset": OFFSET} if affine else {"weight": False}
        flags = {**sizes, "casting_mode": mode, "elementwise_affine": affine}
        back = {**backward, **flags, "COMPUTE_DW": affine}
        if not affine:
            del back["dW_ptr"]
        tiles, programs = {"BLOCK_ROW": ROWS}, ("programs",)
        for kernel, grid, binding in (
            ("_rms_norm_forward_kernel", ("rows",), {**forward, **flags}),
            (
                "_block_rms_norm_forward_kernel",
                ("row tiles",),
                {**forward, **flags, **tiles},
            ),
            ("_rms_norm_backward_kernel", programs, {**back, **chunk}),
            ("_block_rms_norm_backward_kernel", programs, {**back, **tiles}),
        ):
            yield Case(package, file, kernel, note, grid, binding, operator)
    for mode in (0, 1, -1):
        note, flags = f"casting mode {mode}", {**sizes, "casting_mode": mode}
        added = {
            **forward,
            **flags,
            **rows({"R_ptr": "residual"}),
            **rows({"S_ptr": "residual_out"}, Out),
        }
        operator = {"weight_offset": OFFSET, "residual": True}
        kernel = "_fused_add_rms_norm_forward_kernel"
        yield Case(package, fused, kernel, note, "rows", added, operator)
        kernel = "_fused_add_rms_norm_backward_kernel"
        for has in (True, False):
            summed = {"X_ptr": "residual_out", "dS_out_ptr": "dresidual_out"}
            back = {**backward, **flags, **chunk, **rows(summed), "has_dS_out": has}
            both = {**operator, "dresidual_out": has}
            words = f"{note}, {'with' if has else 'without'} the sum's gradient"
            yield Case(package, fused, kernel, words, "programs", back, both)
        yield from liger_modulated(package, folder, mode, forward, backward, sizes)
    yield from liger_layer_norm(package, f"{folder}/layer_norm.py")


def liger_modulated(package, folder, mode, forward, backward, sizes):
    """The norm times 1 + scale, a row of the scale for each row."""
    file = f"{folder}/modulated_rms_norm.py"
    flags = {
        **sizes,
        **rows({"Scale_ptr": "gate"}),
        "casting_mode": mode,
        "elementwise_affine": True,
        "has_shift": False,
        "rows_per_modulation": 1,
    }
    note = f"casting mode {mode}, a scale for each row, no shift"
    operator = {"weight_offset": OFFSET, "gate": "scale"}
    kernel = "_modulated_rms_norm_forward_kernel"
    yield Case(package, file, kernel, note, "rows", {**forward, **flags}, operator)
    back = {**backward, **flags, **rows({"dScale_ptr": "dgate"}, Out)}
    back["rows_per_program"] = CHUNK
    kernel = "_modulated_rms_norm_backward_kernel"
    yield Case(package, file, kernel, note, "programs", back, operator)


def liger_layer_norm(package, file):
    """Layer norm."""
    operator = {"center": True, "bias": True}
    common = {"n_cols": N, "n_rows": M, "BLOCK_SIZE": WHOLE, "W_ptr": T("weight")}
    outputs = {"Y_ptr": "y", "Mean_ptr": "mean", "RSTD_ptr": "rstd"}
    forward = {**rows({"X_ptr": "x"}), **rows(outputs, Out), "B_ptr": T("bias")}
    binding = {**common, **forward, "eps": eps}
    kernel = "_layer_norm_forward_kernel"
    yield Case(package, file, kernel, "", "rows", binding, operator)
    binding = {
        **common,
        "X_ptr": T("x", stride="stride_x"),
        "DY_ptr": T("dy", stride="stride_dy"),
        "Mean_ptr": T("mean", stride="stride_mean"),
        "RSTD_ptr": T("rstd", stride="stride_rstd"),
        "DX_ptr": Out("dx", stride="stride_dx"),
        "DW_ptr": Out("dw", "p, j", stride="stride_dw"),
        "DB_ptr": Out("db", "p, j", stride="stride_db"),
        "rows_per_program": CHUNK,
    }
    kernel = "_layer_norm_backward_kernel"
    yield Case(package, file, kernel, "", "programs", binding, operator)


ROW_DOT = {"_row_dot_in_row_kernel_order(a, b)": "tl.sum(a * b, axis=1)"}


def unsloth() -> Iterator[Case]:
    """unsloth's rms norm (also with the weight counted from 1), with a residual, and layer norm."""
    package, folder = "unsloth", "unsloth/kernels"
    file = f"{folder}/rms_layernorm.py"
    stride = "{}_row_stride"
    base = {"n_cols": N, "n_rows": M, "BLOCK_SIZE": WHOLE, "LONG_INDEXING": True}
    base |= {**rows({"X": "x"}, T, stride), "W": T("weight"), "eps": eps}
    one = {**base, "Y": Out("y", stride="Y_row_stride")}
    per_row = {**one, "r": Out("rstd", stride="r_row_stride")}
    kernel = "_rms_layernorm_forward"
    yield Case(package, file, kernel, "", "rows", per_row, {})
    kernel = "_gemma_rms_layernorm_forward"
    yield Case(package, file, kernel, "", "rows", per_row, {"weight_offset": 1})
    for gemma in (False, True):
        operator = {"weight_offset": 1} if gemma else {}
        note = "the weight counted from 1" if gemma else ""
        tiles = {**one, "ROWS": ROWS, "r": Out("rstd"), "GEMMA": gemma}
        kernel = "_rms_layernorm_forward_rows"
        yield Case(package, file, kernel, note, "row tiles", tiles, operator, ROW_DOT)
        for from_y in (False, True):
            back = {
                **base,
                "X": T("y" if from_y else "x", stride="X_row_stride"),
                "dY": T("dy", stride="dY_row_stride"),
                "dX": Out("dx", stride="dX_row_stride"),
                "GEMMA": gemma,
                "FROM_Y": from_y,
            }
            words = ", ".join(filter(None, [note, "from y" if from_y else ""]))
            yield from unsloth_backward(package, file, words, back, operator)
    sums = {"n_programs": M, "n_cols": N, "BLOCK_ROWS": ROWS, "BLOCK_COLS": COLUMNS}
    sums["partials"] = T("part", "i, j")
    binding, kernel = {**sums, "dW": Out("sum", "j")}, "_rms_sum_dw_partials"
    yield Case(package, file, kernel, "", "column tiles", binding)
    yield from unsloth_layer_norm(package, f"{folder}/layernorm.py", base, sums)
    binding = {
        "X": InOut("x", stride="X_row_stride", then="y"),
        "R": InOut("residual", stride="R_row_stride", then="residual_out"),
        "W": T("weight"),
        "n_cols": N,
        "eps": eps,
        "HAS_RESIDUAL": True,
        "BLOCK_SIZE": WHOLE,
    }
    file, kernel = (
        f"{folder}/fused_add_rms_layernorm.py",
        "_add_rms_layernorm_inference",
    )
    yield Case(package, file, kernel, "", "rows", binding, {"residual": True})


def unsloth_backward(package, file, note, back, operator):
    """The backward of a row or a tile of rows, with and without the gradient of the weight."""
    trained, untrained = f"{note}; dw".removeprefix("; "), note
    partial = {"dW": Out("dw", "p, j")}
    one = {**back, "r": T("rstd", stride="r_row_stride")}
    tiles = {**back, "r": T("rstd"), "ROWS": ROWS}
    for kernel, grid, binding, helpers, chunk in (
        ("_rms_layernorm_backward", "rows", one, {}, "rows_per_program"),
        (
            "_rms_layernorm_backward_rows",
            "row tiles",
            tiles,
            ROW_DOT,
            "blocks_per_program",
        ),
    ):
        untrained_binding = {**binding, "TRAIN_W": False}
        yield Case(
            package, file, kernel, untrained, grid, untrained_binding, operator, helpers
        )
        binding = {**binding, **partial, "TRAIN_W": True, chunk: CHUNK}
        yield Case(
            package, file, kernel, trained, "programs", binding, operator, helpers
        )


def unsloth_layer_norm(package, file, base, sums):
    """Layer norm."""
    operator = {"center": True, "bias": True}
    for bias in (True, False):
        binding = {
            **base,
            "Y": Out("y", stride="Y_row_stride"),
            "r": Out("rstd"),
            "mu": Out("mean"),
            "b": T("bias"),
            "HAS_BIAS": bias,
        }
        one, kernel = {"center": True, "bias": bias}, "layernorm_forward"
        note = "with bias" if bias else "without bias"
        yield Case(package, file, kernel, note, "rows", binding, one)
    back = {
        **base,
        "dY": T("dy", stride="dY_row_stride"),
        "dX": Out("dx", stride="dX_row_stride"),
        "r": T("rstd"),
        "mu": T("mean"),
    }
    yield Case(package, file, "layernorm_backward", "", "rows", back, operator)
    partial = {"dW": Out("dw", "p, j"), "dB": Out("db", "p, j")}
    flags = {"TRAIN_W": True, "TRAIN_B": True, "rows_per_program": CHUNK}
    kernel, binding = "layernorm_backward_dw", {**back, **partial, **flags}
    yield Case(package, file, kernel, "", "programs", binding, operator)
    for which in (0, 1):
        kernel, binding = (
            "_layernorm_sum_partials",
            {**sums, f"out{which}": Out("sum", "j")},
        )
        if which == 0:
            yield Case(package, file, kernel, "the first", ("column tiles", 0), binding)


RSQRT = {"rsqrt(x)": "tl.math.rsqrt(x)"}


def others() -> Iterator[Case]:
    """xformers and conch."""
    package, file = "xformers", "xformers/ops/_triton/rmsnorm_kernels.py"
    base = {"N_COLS": N, "eps": eps, "BLOCK_SIZE": COLUMNS, "w_ptr": T("weight")}
    base["h1_ptr"] = Out("y", stride="stride")
    for weight in (True, False):
        note = "" if weight else "no weight"
        binding = {**base, "INCLUDE_WEIGHT": weight, "x_ptr": T("x", stride="stride")}
        kernel, operator = "_rms_norm_kernel", {"weight": weight}
        yield Case(package, file, kernel, note, "rows", binding, operator, RSQRT)
        added = {
            **binding,
            "x_ptr": InOut("x", stride="stride", then="residual_out"),
            "y_ptr": T("residual", stride="stride"),
        }
        kernel, operator = "_rms_norm_add_kernel", {"weight": weight, "residual": True}
        yield Case(package, file, kernel, note, "rows", added, operator, RSQRT)
    package, folder = "conch-triton-kernels", "conch/kernels/normalization"
    base = {"hidden_size": N, "epsilon": eps, "cxpr_block_size": WHOLE}
    base |= {"weight_ptr": T("weight"), "cxpr_use_residual": False}
    binding = {**base, "x_ptr": T("x"), "output_ptr": Out("y")}
    file, kernel = f"{folder}/rms_norm.py", "_rms_norm_kernel"
    yield Case(package, file, kernel, "", "rows", binding, {})
    binding = {**base, "x_ptr": InOut("x", then="y"), "cxpr_use_residual": True}
    binding["residual_ptr"] = InOut("residual", then="residual_out")
    yield Case(package, file, kernel, "residual", "rows", binding, {"residual": True})
    binding = {"x_ptr": InOut("x", then="y"), "weights_ptr": T("weight")}
    binding |= {"hidden_size": N, "eps": eps, "cxpr_block_size": WHOLE}
    file, kernel = f"{folder}/gemma_rms_norm.py", "_gemma_rms_norm_inplace_kernel"
    yield Case(package, file, kernel, "", "rows", binding, {"weight_offset": 1})


def fla() -> Iterator[Case]:
    """fla's norms of one group, with and without a residual."""
    package, file = "fla-core", "fla/modules/norm/layernorm.py"
    for rms, residual in ((False, False), (False, True), (True, False), (True, True)):
        note = ("rms norm" if rms else "layer norm") + ", residual" * residual
        operator = {"center": not rms, "bias": True, "residual": residual}
        flags = {
            "G": 1,
            "D": N,
            "BD": WHOLE,
            "IS_RMS_NORM": rms,
            "HAS_RESIDUAL": residual,
            "STORE_RESIDUAL_OUT": residual,
            "HAS_WEIGHT": True,
            "HAS_BIAS": True,
        }
        forward = {
            **flags,
            "x": T("x"),
            "y": Out("y"),
            "w": T("weight"),
            "b": T("bias"),
            "rstd": Out("rstd"),
            "eps": eps,
        }
        forward |= {} if rms else {"mean": Out("mean")}
        if residual:
            forward |= {"res": T("residual"), "res_out": Out("residual_out")}
        kernel = "layer_norm_fwd_kernel_row"
        yield Case(package, file, kernel, note, "rows", forward, operator)
        tiles, kernel = {**forward, "T": M, "BT": ROWS}, "layer_norm_fwd_kernel"
        yield Case(package, file, kernel, note, "row tiles", tiles, operator)
        yield from fla_backward(package, file, note, flags, residual, operator)


def fla_backward(package, file, note, flags, residual, operator):
    """The backward of chunks of rows."""
    flags = {
        **flags,
        "T": M,
        "BS": CHUNK,
        "GS": PROGRAM_COUNT,
        "HAS_DRESIDUAL": residual,
        "STORE_DRESIDUAL": residual,
        "RECOMPUTE_OUTPUT": False,
    }
    binding = {
        **flags,
        "x": T("residual_out" if residual else "x"),
        "w": T("weight"),
        "b": T("bias"),
        "dy": T("dy"),
        "dx": Out("dx"),
        "dw": Out("dw", "p, j"),
        "db": Out("db", "p, j"),
        "rstd": T("rstd"),
    }
    binding |= {"mean": T("mean")} if operator["center"] else {}
    if residual:
        binding |= {"dres": T("dresidual_out"), "dres_in": Out("dresidual")}
    operator = {**operator, "dresidual_out": residual}
    kernel = "layer_norm_bwd_kernel_row"
    yield Case(package, file, kernel, note, "programs", binding, operator)
    tiles, kernel = {**binding, "BT": ROWS}, "layer_norm_bwd_kernel"
    yield Case(package, file, kernel, note, "programs", tiles, operator)


def flag_gems() -> Iterator[Case]:
    """FlagGems' rms norm, and those of two of its backends."""
    package, ops = "flag-gems", "flag_gems/ops/rms_norm.py"
    steps = {"stride": "x_stride_r", "column_stride": "x_stride_c"}
    strided = {
        "in_ptr": T("x", **steps),
        "out_ptr": Out("y", stride="y_stride_r", column_stride="y_stride_c"),
    }
    plain = {"in_ptr": T("x"), "out_ptr": Out("y")}
    common = {"INV_RMS": Out("rstd"), "w_ptr": T("weight"), "N": N, "eps": eps}
    binding = {**common, **strided, "BLOCK_SIZE": WHOLE}
    yield Case(package, ops, "rms_norm_kernel", "", "rows", binding, {})
    binding = {**common, **plain, "TILE_N": COLUMNS}
    yield Case(package, ops, "rms_norm_loop_kernel", "", "rows", binding, {})
    binding = {
        "X": T("x", **steps),
        "DY": T("dy", **steps),
        "INV_RMS": T("rstd"),
        "DX": Out("dx", stride="dx_stride_r", column_stride="dx_stride_c"),
        "W": T("weight"),
        "N": N,
        "eps": eps,
        "BLOCK_SIZE": WHOLE,
    }
    yield Case(package, ops, "rms_norm_grad_dx_kernel", "", "rows", binding, {})
    binding = {
        "X": T("x", **steps),
        "DY": T("dy", **steps),
        "INV_RMS": T("rstd"),
        "DW": Out("dw", "p, j"),
        "M": M,
        "N": N,
        "ROW_BLOCK_SIZE": ROWS,
        "COL_BLOCK_SIZE": COLUMNS,
    }
    grid, kernel = ("row tiles", "column tiles"), "rms_norm_grad_dw_kernel"
    yield Case(package, ops, kernel, "", grid, binding, {})
    yield from flag_gems_layer_norm(package)
    yield from flag_gems_backends(package)


def flag_gems_layer_norm(package):
    """Layer norm."""
    file, operator = "flag_gems/ops/layernorm.py", {"center": True, "bias": True}
    sizes = {"M": M, "N": N}
    forward = {
        **sizes,
        "in_ptr": T("x"),
        "out_ptr": Out("y"),
        "weight_ptr": T("weight"),
        "bias_ptr": T("bias"),
        "out_mean_ptr": Out("mean"),
        "out_rstd_ptr": Out("rstd"),
        "eps": eps,
    }
    whole, kernel = {**forward, "TILE_N": WHOLE}, "layer_norm_persistent_kernel"
    yield Case(package, file, kernel, "", "rows", whole, operator)
    kernel, tiles = f"{kernel}_multiline", {**whole, "TILE_M": ROWS}
    yield Case(package, file, kernel, "", "row tiles", tiles, operator)
    kernel, tiles = "layer_norm_loop_kernel", {**forward, "TILE_N": COLUMNS}
    yield Case(package, file, kernel, "", "rows", tiles, operator)
    back = {
        **sizes,
        "dY": T("dy"),
        "X": T("x"),
        "Mean": T("mean"),
        "Rstd": T("rstd"),
        "BLOCK_ROW_SIZE": ROWS,
        "BLOCK_COL_SIZE": COLUMNS,
    }
    kernel, binding = "layer_norm_backward_kernel", {**back, "W": T("weight")}
    binding["dX"] = Out("dx")
    yield Case(package, file, kernel, "", "row tiles", binding, operator)
    kernel, binding = "weight_bias_backward_kernel", {**back, "dW": Out("dw")}
    binding["dB"] = Out("db")
    yield Case(package, file, kernel, "", "column tiles", binding, operator)


def flag_gems_backends(package):
    """Two backends' kernels of their own."""
    file = "flag_gems/runtime/backend/_kunlunxin/ops/rms_norm.py"
    steps = {"stride": "x_stride_r", "column_stride": "x_stride_c"}
    outputs = {"stride": "y_stride_r", "column_stride": "y_stride_c"}
    binding = {
        "X": T("x", **steps),
        "Y": Out("y", **outputs),
        "INV_RMS": Out("rstd"),
        "W": T("weight"),
        "N": N,
        "eps": eps,
        "BLOCK_SIZE": WHOLE,
    }
    kernel = "rms_norm_kernel"
    yield Case(package, file, kernel, "Kunlunxin", "rows", {**binding, "M": M}, {})
    back = {
        "X": T("x"),
        "DY": T("dy"),
        "DX": Out("dx"),
        "W": T("weight"),
        "INV_RMS": T("rstd"),
        "DW": Out("dw"),
        "M": M,
        "N": N,
        "eps": eps,
        "BLOCK_SIZE": WHOLE,
    }
    kernel = "rms_norm_grad_kernel"
    yield Case(package, file, kernel, "Kunlunxin", "rows", back, {})
    file = "flag_gems/runtime/backend/_enflame/gcu400/ops/rms_norm.py"
    binding, kernel = {**binding, "BLOCK_SIZE_M": CHUNK}, "rms_norm_kernel"
    yield Case(package, file, kernel, "Enflame gcu400", "programs", binding, {})


CASES = [*liger(), *unsloth(), *others(), *fla(), *flag_gems()]


def fetched(folder: Path, package: str) -> zipfile.ZipFile:
    """A package's wheel, from the folder or by pip."""
    start = f"{package.replace('-', '_')}-{PACKAGES[package]}-"
    if not list(folder.glob(f"{start}*.whl")):
        pinned = f"{package}=={PACKAGES[package]}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(folder), pinned], check=True)
    return zipfile.ZipFile(next(folder.glob(f"{start}*.whl")))


def fitting(case: Case, text: str) -> dict:
    """The binding without sizes and flags that the kernel does not take."""
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    function = next(node for node in functions if node.name == case.kernel)
    names = {argument.arg for argument in function.args.args}
    return {k: v for k, v in case.binding.items() if k in names or isinstance(v, T)}


def row(case: Case, text: str) -> dict:
    """A row of the table."""
    start = time.perf_counter()
    verdict = verify(
        text,
        fitting(case, text),
        case.grid,
        case.definitions,
        kernel=case.kernel,
        helpers=case.helpers,
    )
    return {
        "package": case.package,
        "version": PACKAGES[case.package],
        "file": case.file,
        "kernel": case.kernel,
        "variant": case.note,
        "against": case.held_against,
        "verdict": verdict.kind,
        "why": verdict.why and f"line {verdict.line}: {verdict.why}",
        "words": str(verdict).split("\n  assumed")[0],
        "assumptions": verdict.assumptions,
        "seconds": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where wheels are kept")
    parser.add_argument("--only", default="", help="kernels whose row has this text")
    parser.add_argument("--json", type=Path, help="a file for the table")
    options = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for case in CASES:
            if options.only not in f"{case.package} {case.kernel} {case.note}":
                continue
            with fetched(folder, case.package) as wheel:
                line = row(case, wheel.read(case.file).decode())
            table.append(line)
            words = [line[name] for name in ("package", "kernel", "variant")]
            print(f"{line['verdict']:30} {line['seconds']:5} s  {'  '.join(words)}")
            if not line["verdict"].startswith("proved"):
                print(line["words"].partition("\n")[2])
    counts: dict[str, int] = {}
    for line in table:
        counts[line["verdict"]] = counts.get(line["verdict"], 0) + 1
    print(f"{len(table)} variants: {counts}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1), encoding="utf8")


if __name__ == "__main__":
    main()
