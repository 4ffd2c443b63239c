"""verify proves right kernels of many house styles, and proves no wrong one."""

import importlib.util
import inspect
import json
import linecache
import random
import re
from dataclasses import replace
from pathlib import Path

import field_kernels
import pytest
import report
from machine_mutants import machine_mutants, statement_at
from programs import RIGHT, WRONG
from replays import replays
from tables import value
from verify_kernels import ATTACKS, HEAD, HELPED, KERNELS, MISFITS, ROW, UNCHANGED

from normgrad.verify import WHOLE, Out, T, verify
from normgrad.verify.__main__ import main
from normgrad.verify.package import FORWARD, Case

PROVED, IF_ZERO = "proved for every M and N", "proved if masked lanes hold 0"


def verdict(text, binding, grid, definitions):
    return verify(HEAD + text, binding, grid, definitions, kernel="kernel", seconds=10)


def changed(name, old, new):
    """The verdict on a kernel in which a text is another one."""
    text, *launch = KERNELS[name]
    assert old in text
    return verdict(text.replace(old, new), *launch)


@pytest.mark.parametrize("name", KERNELS)
def test_right_kernels_are_proved(name):
    assert verdict(*KERNELS[name])


@pytest.mark.parametrize("name", ATTACKS)
def test_no_edit_by_hand_is_proved(name):
    for old, new, why in ATTACKS[name]:
        result = changed(name, old, new)
        unknown = result.kind == IF_ZERO and why == "0 of what is not known"
        assert bool(result) == (why == "right") and (
            unknown or result.kind != IF_ZERO
        ), f"{why}: {result}"
        replays(result)


@pytest.mark.parametrize("line", MISFITS["bindings"])
def test_no_binding_that_does_not_fit_is_proved(line):
    launch, _, why = line.partition(" -- ")
    name, _, launch = launch.partition(": ")
    change, grid = value(launch)
    text, binding, _, definitions = KERNELS[name]
    result = verdict(text, binding | change, grid, definitions)
    assert result.kind not in (PROVED, IF_ZERO), why


A_ROW = "a program for each row"
ROW_LAUNCH = KERNELS[A_ROW][1:]


def test_a_kernel_with_a_helper_and_with_decorators_that_change_nothing_is_proved():
    assert verdict(HELPED, *ROW_LAUNCH)
    assert verdict(HELPED + "\ninv = triton.jit(inv)\n" + UNCHANGED, *ROW_LAUNCH)
    tuned = "triton.autotune(configs=[triton.Config({}, num_warps=4)], key=['n_cols'])"
    block = "triton.heuristics({'B': lambda a: triton.next_power_of_2(a['n_cols'])})"
    assert verdict(ROW.replace("@", f"@{tuned}\n@{block}\n@"), *ROW_LAUNCH)


@pytest.mark.parametrize("statement", MISFITS["statements"])
def test_no_name_that_the_text_may_change_is_taken_for_what_it_was(statement):
    result = verdict(f"{HELPED}\n{statement}\n", *ROW_LAUNCH)
    assert result.kind == "not read", result


@pytest.mark.parametrize("decorator", MISFITS["decorators"])
def test_no_decorator_is_taken_for_one_that_changes_nothing(decorator):
    text = HELPED.replace(
        "@triton.jit\ndef kernel", f"@{decorator}\n@triton.jit\ndef kernel"
    )
    assert verdict(text, *ROW_LAUNCH).kind == "not read"


@pytest.mark.parametrize("added", MISFITS["undefined"])
def test_no_operation_that_is_never_defined_is_proved(added):
    root = "rsqrt(square + eps)"
    result = changed(A_ROW, root, f"{root} + {added}")
    assert result.kind in ("not read", "wrong in itself"), result


def test_a_promise_to_the_compiler_stands_in_the_claim():
    promise = "    n_cols = tl.multiple_of(n_cols, 16)\n"
    result = changed(A_ROW, "    cols =", f"{promise}    cols =")
    assert result and "what line 11 promises to the compiler" in result.claim


# Edits that leave a kernel right: a part of the edit, a part of its statement, and why.
EQUAL = (
    ("branch", "if affine", "the flag is set"),
    ("branch", "if mode == LLAMA", "digits"),
    ("== -> !=", "if mode == LLAMA", "digits"),
    ("branch", "if HAS_BIAS", "the flag is set"),
    ("branch", "if TRAIN", "the flag is set"),
    ("axis", "tl.sum(", "the tile has one axis"),
    ("eviction_policy", "", "speed"),
    ("num_stages", "num_stages", "speed"),
    ("3 -> 4", "num_stages", "speed"),
    ("- -> +", "shifted = row", "any number may be added to a row"),
    ("pass", "x -= tl.max(", "any number may be added to a row"),
    ("- -> +", "x -= tl.max(", "any number may be added to a row"),
    ("axis=0", "tl.max(", "the tile has one axis"),
    (", 0 -> ", "(a", "the tile has one axis"),
    ("0.0 -> 1.0", "d = 0.0", "m is -inf before, and exp(m) is 0"),
)
MASKED = ("other", "0 -> 1", "0.0 -> 1.0")  # a lane that is not summed, or times 0


@pytest.mark.parametrize("name", KERNELS)
def test_no_edit_by_machine_is_proved_that_makes_a_kernel_wrong(name):
    text, *launch = KERNELS[name]
    full, start = HEAD + text, HEAD.count("\n")
    for mutant in machine_mutants(full):
        if mutant.line <= start:
            continue
        try:
            result = verify(mutant.applied(full), *launch, kernel="kernel", seconds=10)
        except ValueError as refusal:  # an argument of the binding that is gone
            assert "binding" in str(refusal)
            continue
        code = statement_at(full, mutant.line)
        if result.kind == IF_ZERO:
            assert "other" in str(mutant) or "padding_option" in str(mutant), mutant
        elif result:
            masked = "mask=" in code and any(word in str(mutant) for word in MASKED)
            listed = any(a in str(mutant) and b in code for a, b, _ in EQUAL)
            assert masked or listed, f"{mutant}: {code}"
        replays(result)


def swaps(text):
    """(change, text): a name, of which not only the dtype is asked, is another one of the kernel's."""
    start = text.rindex("def kernel(")
    header, _, body = text[start:].partition("):\n")
    names = re.findall(r"(\w+)(?=[,:]|$)", header.partition("(")[2])
    names = [name for name in names if name != "constexpr"]
    pattern = rf"(?<!if )\b({'|'.join(names)})\b(?! *=|\.dtype)"
    for match in re.finditer(pattern, body):
        for name in names:
            if name != match[1]:
                edited = body[: match.start()] + name + body[match.end() :]
                place = body[: match.end()].splitlines()[-1]
                yield f"{place} -> {name}", f"{text[:start]}{header}):\n{edited}"


@pytest.mark.parametrize("name", KERNELS)
def test_no_exchange_of_two_names_is_proved(name):
    text, *launch = KERNELS[name]
    edits = list(swaps(text))
    for change, edited in random.Random(name).sample(edits, min(40, len(edits))):
        result = verdict(edited, *launch)
        assert result.kind not in (PROVED, IF_ZERO), change


@pytest.mark.parametrize(
    ("function", "old", "new", "kind"),
    [
        ("def cast(x, dtype):\n    return 2 * x", "x.to(tl", "cast(x, tl", "refuted"),
        ("def cast(x, dtype):\n    return x", "x.to(tl", "cast(x, tl", PROVED),
        ("def sum(x, axis):\n    return x", "tl.sum(", "sum(", "refuted"),
        ("def sum(x, axis):\n    return tl.sum(x, 0)", "tl.sum(", "sum(", PROVED),
        (
            "def float(x):\n    return 2 * x",
            "rsqrt(square",
            "rsqrt(float(square)",
            "refuted",
        ),
        ("def row(x):\n    return x", "rsqrt(square", "rsqrt(row(square)", "not read"),
    ],
)
def test_names_are_the_module_s_own_before_they_are_python_s(function, old, new, kind):
    text = f"@triton.jit\n{function}\n\n{ROW.replace(old, new)}"
    assert old in ROW and verdict(text, *ROW_LAUNCH).kind == kind


def test_a_refuted_kernel_is_shown_by_its_terms_and_by_values():
    result = changed(A_ROW, "(offset + w)", "w")
    assert result.kind == "refuted" and result.outputs["R"]
    shown = str(result.outputs["Y"])
    assert "stored - defined = -sqrt(N)*weight_offset*x[i, j]/sqrt(" in shown
    assert "fails at M=2, N=3, eps=" in shown and ", defined " in shown
    assert "assumed of the launch: axis 0 of the grid: M programs" in str(result)
    assert "**refuted**" in result._repr_markdown_()
    assert "R is `Out('rstd')`" in result._repr_markdown_()


def test_what_is_taken_for_granted_is_printed():
    atomic = str(verdict(*KERNELS["atomic additions"])).partition("\n")[0]
    width = "with M*s < 2^31 (line 13)"
    assert atomic.endswith(f"dw = dw[j], {width}, if dw is 0 before the kernel runs")
    chunks = verdict(*KERNELS["chunks of rows"]).assumptions
    assert "programs_0 * K is at least the number of rows" in chunks
    load = "* tl.load(rstd"
    quotient = changed("atomic additions", load, f"/ a * a {load}")
    assert quotient and "x[i, j] is not 0" in quotient.assumptions
    filled = changed(A_ROW, ", other=0)\n    dtype", ")\n    dtype")
    assert filled.kind == IF_ZERO and not filled
    assert "(lines 14); Triton leaves it open" in filled.assumptions[0]


def test_a_value_that_depends_on_the_block_is_wrong_in_itself():
    centred = "b_x - b_mean[:, None]"
    masked = f"tl.where(m_d[None, :], {centred}, 0.0)"
    result = changed("tiles by block pointers", masked, centred)
    assert result.kind == "wrong in itself" and "BD*" in str(result)
    assert result.outputs["mean"]


def test_a_kernel_object_is_read_from_its_file_and_those_beside_it():
    rows = pytest.importorskip("normgrad.triton_kernels.rows")
    case = Case(False, True, "clamp", residual=False, bias=False)
    clamped, inside = (
        replace(case, piece=p).definitions() for p in ("clamp", "inside")
    )
    names = [*inspect.signature(rows.forward_rows.fn).parameters]
    binding = case.binding(names, FORWARD) | {"_ROUND_BF16": False}
    of_heads = binding | {"VECTOR": 1}
    del of_heads["heads"]
    for step, kind in (("x_head_step", PROVED), ("x_step", "not read")):
        of_heads["x_ptr"] = T("x", stride="x_step", heads=("heads", step))
        result = verify(rows.forward_rows, of_heads, "row tiles", clamped)
        assert result.kind == kind, result
    assert verify(rows.forward_rows, binding, "row tiles", clamped)
    assert verify(rows.forward_rows, binding, "row tiles", inside).kind == "refuted"
    assert verify(rows.forward_rows, binding, "rows", clamped).kind == "not read"


CHANGES = {
    "as it was": lambda module: None,
    "a local's name": lambda module: setattr(module, "cols", 3),
    "another helper": lambda module: setattr(module, "inv", module.inv2),
    "another number": lambda module: setattr(module, "LLAMA", 2),
    "another module": lambda module: setattr(module, "tl", module.triton),
    "a decorator more": lambda module: setattr(
        module, "kernel", module.triton.heuristics({"eps": lambda a: 0})(module.kernel)
    ),
    "another text": lambda module: Path(module.__file__).write_text(
        HEAD + HELPED.replace("(offset + w)", "w")
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_kernel_object_is_the_one_of_its_text(change, tmp_path):
    pytest.importorskip("triton")
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + HELPED)
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    CHANGES[change](module)
    result = verify(module.kernel, *ROW_LAUNCH)
    same = change in ("as it was", "a local's name")
    assert result.kind == (PROVED if same else "not read"), result


def test_a_number_of_a_file_beside_it_that_is_changed_there_is_not_read(tmp_path):
    text = ROW.replace("rsqrt(square + eps)", "ONE * rsqrt(square + eps)")
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + "from .values import ONE\n\n" + text)
    for lines, kind in (("", PROVED), ("exec('ONE = 2')\n", "not read")):
        number = "import triton.language as tl\nONE = tl.constexpr(1)\n"
        (tmp_path / "values.py").write_text(number + lines)
        result = verify(path, *ROW_LAUNCH)
        assert result.kind == kind, result


CELLS = {
    "cell 1": "import triton\nimport triton.language as tl\ndef once(a):\n    return a",
    "cell 2": "def max(a, b):\n    return 2 * a",
    "cell 3": ROW.replace("rsqrt(", "tl.rsqrt(").replace("LLAMA", "0"),
}


@pytest.mark.parametrize(
    ("value", "kind"),
    [("y", PROVED), ("once(y)", "not read"), ("max(y, y)", "not read")],
)
def test_a_kernel_of_a_notebook_is_read_with_the_modules_of_other_cells(
    value, kind, monkeypatch
):
    pytest.importorskip("triton")
    names = {}
    for cell, text in CELLS.items():
        text = text.replace("cols, y,", f"cols, {value},")
        lines = text.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, cell, (len(text), None, lines, cell))
        exec(compile(text, cell, "exec"), names)
    binding, *launch = ROW_LAUNCH
    result = verify(names["kernel"], binding | dict(mode=1), *launch)
    assert result.kind == kind, result


def test_the_table_of_the_book_is_of_the_bindings_and_the_page_explains_it():
    root = Path(__file__).parents[1]
    table = (root / "src/normgrad/verify/field_kernels.json").read_text()
    rows = json.loads(table)["rows"]
    page = (root / "book/field_kernels.md").read_text()
    for row, case in zip(rows, field_kernels.cases(), strict=True):
        for name in ("package", "file", "note"):
            assert row[name] == case[name]
        assert row["kernel"] == case["name"]
        assert row["version"] == field_kernels.PACKAGES[row["package"]]
        # The page's table prints why one is not read; a wrong kernel needs a sentence.
        reason = row["verdict"] == "not read" and "\n  " in row["words"]
        explained = reason or row["kernel"] in page
        assert row["verdict"] in (PROVED, IF_ZERO) or explained


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("X", "bind pointers as T, Out or InOut; arguments that are not bound: "),
        ("eps", "nothing is guessed from its name: bind it"),
        ("B", "which is bound as no block: WHOLE, COLUMNS or ROWS"),
    ],
)
def test_what_is_not_bound_is_named(name, words):
    binding, *launch = ROW_LAUNCH
    binding = {key: value for key, value in binding.items() if key != name}
    assert words in verdict(ROW, binding, *launch).why


@pytest.mark.parametrize(
    ("change", "grid", "words"),
    [
        (dict(Z=T("gate")), "rows", "binding: got Z, needs one of Y, Y_stride"),
        (dict(Y=Out("z", "i, j")), "rows", "binding: got the output z, needs"),
        (dict(Y_stride=WHOLE), "rows", "needs at most one block of rows and one"),
        ({}, "row", "grid: got 'row', needs numbers or one of"),
    ],
)
def test_a_binding_that_makes_no_sense_is_refused(change, grid, words):
    binding, _, definitions = ROW_LAUNCH
    with pytest.raises(ValueError, match=words):
        verdict(ROW, binding | change, grid, definitions)


def test_the_kernels_of_a_text_are_named_and_no_other_functions():
    text = f"{HEAD}{HELPED}\ndef launch():\n    pass\n"
    with pytest.raises(ValueError, match="kernel: got None, needs one of inv, inv2, k"):
        verify(text, *ROW_LAUNCH)
    with pytest.raises(ValueError, match="needs one of inv, inv2, kernel$"):
        verify(text, *ROW_LAUNCH, kernel="start")


def test_the_command_prints_a_form_and_takes_no_binding_silently(
    tmp_path, capsys, monkeypatch
):
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + KERNELS["chunks of rows"][0])
    words = ["verify", str(file), "--kernel", "kernel"]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 2
    form = capsys.readouterr().out
    assert "--bind 'DX=Out(\"dx\")'" in form and "--bind 'K=?'" in form
    for bound in (
        'DY=T("dy", stride="dy_stride")',
        'DX=Out("dx", stride="dx_stride")',
        'X=T("x", stride="x_stride")',
        'W=T("weight")',
        'MEAN=T("mean")',
        'R=T("rstd")',
        'DW=Out("dw", "p, j", stride="dw_stride")',
        'DB=Out("db", "p, j", stride="dw_stride")',
        "n_rows=M",
        "n_cols=N",
        "K=CHUNK",
        "B=WHOLE",
    ):
        words += ["--bind", bound]
    words += ["--norm", "center=True, bias=True", "--grid", "programs"]
    monkeypatch.setattr("sys.argv", [*words, "--bind", "Z=N"])
    with pytest.raises(SystemExit):
        main()
    assert "binding: got Z, needs one of DY" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0
    assert capsys.readouterr().out.startswith("proved for every M and N: kernel: DX")


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_proved_and_says_what_it_assumes(program):
    result = program.verdict(run=True)
    assert result and len(result.outputs) == len(program.outputs)
    for text in result.assumptions:
        assert all(part in str(result) for part in text.split("; "))
    assert any("overlap" in text for text in result.assumptions)


@pytest.mark.parametrize("program", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_not_proved(program):
    result = program.verdict(run=False)
    assert result.kind in ("not read", "wrong in itself", "refuted")
    assert result.counterexample if result.kind == "refuted" else result.why


def test_what_is_wrong_in_the_table_has_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["report.py", "--folder", str(tmp_path)])
    report.main()
    texts = [path.read_text() for path in tmp_path.iterdir()]
    assert len(texts) == 8
    inputs = "M = 1|M = 2|M=2|M = 3|any, as it does not compile"
    for text in texts:
        for part in ("**Where.**", inputs, "**Fix.** "):
            assert re.search(part.replace("*", r"\*"), text), text
    with pytest.raises(ValueError, match="names no input"):
        report.smallest("wrong in itself")
