"""What language models write: verdicts on their norm programs, whose texts stay outside of this project.

python tools/model_programs.py FOLDER                     reads FOLDER/records.jsonl, and prints the table
python tools/model_programs.py FOLDER --json FILE         writes the facts, too; --only TEXT: of records with this text
python tools/model_programs.py FOLDER --run --json FILE   executes what FILE has a verdict on, and adds what it gave
python tools/model_programs.py FOLDER --words FILE --gpu  executes what FILE has a verdict on, on this machine's GPU

Records are lines of JSON with an id, whose file names the model, a task, its kind, and a code. They are read, and only
--run executes them: in Triton's interpreter, each in a process without a network. The page of the book that shows the
table, and its rules, is book/model_programs.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from normgrad.verify import Norm, cross_entropy, eps, log_softmax, norm, softmax, verify
from normgrad.verify.entries import AUTOGRAD, LAUNCHER, MODULE, TRITON, Entry, entries
from normgrad.verify.proposal import size_of, tensor_of
from normgrad.verify.verdict import IF_ZERO, KINDS, NOT_READ, PROVED, REFUTED, WRONG

# {what the name of a file has: the model}
MODELS = {
    "claude-3-5-sonnet": "Claude 3.5 Sonnet",
    "gpt-4o": "GPT-4o",
    "o1-2024": "o1",
    "DeepSeek-R1": "DeepSeek-R1",
    "Qwen2.5-72B": "Qwen2.5-72B",
    "qwen_": "Qwen, for code",
    "deepseek": "DeepSeek, for code",
}
OPERATORS = {"ln": "LayerNorm", "rms": "RMSNorm", "l2": "L2", "softmax": "softmax"}
OPERATORS |= {"log_softmax": "log-softmax", "lse": "log-sum-exp"}
OPERATORS |= {"cross_entropy": "cross entropy"}
# {what the name of a task of softmax and its kin has: the operator}
TASKS = {"log_softmax": "log_softmax", "logsumexp": "lse", "_ce_": "cross_entropy"}
TASKS |= {"cross_entropy": "cross_entropy", "softmax": "softmax"}
# {an operator: its definitions, and the names of the tensors that they know}
DEFINED = {
    "softmax": (softmax, "x y dy dx"),
    "log_softmax": (log_softmax, "x y dy dx"),
    "lse": (cross_entropy, "x lse"),
    "cross_entropy": (cross_entropy, "x target loss lse dloss dx"),
}
# {a setting: with what it is the operator alone, for the last axis}
SETTINGS = {"dim": -1, "axis": -1, "smoothing": 0.0, "label_smoothing": 0.0}
SETTINGS |= {"lse_square_scale": 0.0, "logit_scale": 1.0, "ignored_index": -100}
SETTINGS |= {"ignore_index": -100}
# what is missing of these is imported, as a test that a text is pasted into does
IMPORTS = {
    "torch": "import torch",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "math": "import math",
    "nn": "import torch.nn as nn",
    "F": "import torch.nn.functional as F",
}
WHAT = ("does not parse", "no kernel", "no launcher", "program")
PROGRAM = WHAT[-1]
# {what is wrong: what a verdict's reason says of it}, the first that fits
REASONS = {
    "a name that nothing has": r"NameError|AttributeError",
    "a launch that Triton refuses": r"does not launch",
    "an error of Python's": r"TypeError|index -?\d+ of",
    "a block whose length is no power of 2": r"no power of 2",
    "does not compile": r"does not compile",
    "a block shorter than the row": r"one block of|leaves columns out",
    "entries that no program stores": r"stores .* at most",
    "lanes past the row's end are counted": (
        r"next_power_of_2|choice of a block|which autotune chooses|^cdiv"
    ),
    "reads or writes past the end": r"past the end",
    "a function of kernels in a launcher": r"outside of a kernel",
    "rows that are left out": r"needs M|programs|rows but the first",
    "rows at another stride": r"apart, and they lie|rows to lie",
    "a result that is not written": r"written|holds nothing",
    "eps at another place": r"placement=",
    "N - 1 in place of N": r"in place of N - 1",
    "another norm": r"^it is .* of norm",
}
GRADIENT, FORMULA = "a wrong gradient", "another formula"
NO_EPS = "the eps that is given is not used"
# {what is not followed: what a verdict's reason says of it}
UNREAD = {
    "memory that torch's compiler allocates": r"empty_strided|_inductor|torch\._C",
    "a weight with two axes": r"\bW(eight)?\b.*(ndim|shape)|axis 1 of an array",
    "an address": r"which (rows|columns)|first of several|of another place|view|reshape",
    "a condition on sizes": r"past the end|which may be no positive|divide",
}
NO_NAME, SLOW, LINE = "an argument without a telling name", "too slow", "another line"
# what is kept of a record
FACTS = {"model", "record", "operator", "what", "calls", "verdict", "kind", "line"}
FACTS |= {"seconds", "call", "imports", "borne out", "usual", "runs", "ran right"}
FACTS |= {"gpu"}
PROCESSOR_SECONDS = 90
# sizes of runs: odd ones, and one of the usual kind
ODD, USUAL = ((3, 5), (4, 37)), (32, 128)
LARGE_EPS, USUAL_EPS = 0.1, 1e-5


def role_of(name: str) -> str | None:
    """What a parameter or a result is by its name; None for a name that says nothing."""
    size = size_of(name)
    return tensor_of(name) or size and str(size)


def operator_of(record: dict) -> str:
    """The operator of a record's task, a key of OPERATORS."""
    kind = record["kind"][0]
    if kind != "softmax":
        return kind
    return next(operator for text, operator in TASKS.items() if text in record["task"])


def model_of(record: str) -> str:
    """The model that a record is from."""
    file = record.rpartition("/")[2]
    return next(model for text, model in MODELS.items() if text in file)


def with_imports(code: str) -> str:
    """The text with one line in front, which imports what is missing."""
    bound = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            bound |= {name.asname or name.name.partition(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom):
            bound |= {name.asname or name.name for name in node.names}
    missing = [
        line
        for name, line in IMPORTS.items()
        if name not in bound and re.search(rf"(?<![\w.]){name}\.", code)
    ]
    return "; ".join([*missing, "pass"]) + "\n" + code


@dataclass
class Call:
    """What is called of a text.

    Args:  name, kind: of a function, an autograd Function or a layer; parameters: of it, in order
           of_init: those of a layer's __init__; trained: {a layer's weight: what it is}
           bound: {parameter: what it is}; outputs: the names of the results, None where they say nothing
           tail: lines that are added to the text
    """

    name: str
    kind: str
    parameters: list[str] = field(default_factory=list)
    of_init: list[str] = field(default_factory=list)
    trained: dict[str, str] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    outputs: list[str] | None = None
    tail: str = ""

    @property
    def roles(self) -> set[str]:
        """What its arguments are."""
        return {*self.bound.values(), *self.trained.values()}

    def definitions(self, operator: str) -> Norm:
        """What it should be."""
        if operator in DEFINED:
            return DEFINED[operator][0]()
        return norm(
            center=operator == "ln",
            reduce="sum" if operator == "l2" else "mean",
            residual="residual" in self.roles,
            weight="weight" in self.roles,
            bias="bias" in self.roles,
        )


def parameters_of(function: ast.FunctionDef) -> dict[str, str | None]:
    """{parameter: the text of its default}."""
    arguments = function.args
    names = [a.arg for a in arguments.posonlyargs + arguments.args]
    parameters = dict.fromkeys(names)
    defaults = arguments.defaults
    for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        parameters[name] = ast.unparse(value)
    for argument, value in zip(
        arguments.kwonlyargs, arguments.kw_defaults, strict=True
    ):
        parameters[argument.arg] = value and ast.unparse(value)
    return parameters


def call_of(entry: Entry, node: ast.FunctionDef | ast.ClassDef, operator: str) -> Call:
    """What is called where an entry of a text is, by the names of its parameters and results."""
    call, parameters = Call(entry.name, entry.kind), {}
    methods = {
        part.name: part
        for part in ast.iter_child_nodes(node)
        if isinstance(part, ast.FunctionDef)
    }
    if isinstance(node, ast.FunctionDef):
        function, parameters = node, parameters_of(node)
    else:
        function = methods["forward"]
        for name in ("__init__", "forward")[entry.kind == AUTOGRAD :]:
            if name in methods:
                arguments = parameters_of(methods[name])
                del arguments[next(iter(arguments))]
                parameters |= arguments
                if name == "__init__":
                    call.of_init = list(arguments)
        for name in re.findall(
            r"self\.(\w+) = (?:torch\.)?nn\.Parameter", ast.unparse(node)
        ):
            if role_of(name):
                call.trained[name] = role_of(name)
    call.parameters = list(parameters)
    call.bound |= {k: v for k, v in call.trained.items() if k not in parameters}
    roles = {name: role_of(name) for name in parameters}
    if operator in DEFINED:
        tensors = {*DEFINED[operator][1].split(), "M", "N"}
        settings = {name: SETTINGS.get(name.lower()) for name in parameters}
        call.bound |= {k: v for k, v in settings.items() if v is not None}
        for name, role in roles.items():
            if role not in tensors or name in call.bound:
                roles[name] = None
    for name, role in roles.items():
        if role in ("residual", "residual_out") and parameters[name] is not None:
            roles[name] = None
    is_backward = not {"dy", "dloss"}.isdisjoint(roles.values())
    own = {"dx": "(M, N)", "dw": "(N,)", "db": "(N,)"}
    own |= {} if is_backward else {"y": "(M, N)", "loss": "(M,)", "lse": "(M,)"}
    for name, role in roles.items():
        if role in own:
            if parameters[name] is None:
                call.bound[name] = own[role]
        elif role and role not in call.roles - {"N"}:
            call.bound[name] = role
    call.outputs = outputs_of(function, call, operator)
    if entry.kind == AUTOGRAD and "backward" not in methods:
        return forward_alone(call, parameters)
    return call


def outputs_of(function, call, operator):
    """The names of the results in the last return; y, or dx, of one alone."""
    returns = [
        part.value for part in ast.walk(function) if isinstance(part, ast.Return)
    ]
    last = returns[-1] if returns else None
    while isinstance(last, ast.IfExp):
        last = last.body
    parts = getattr(last, "elts", [last])
    gradients = not {"dy", "dloss"}.isdisjoint(call.roles)
    if len(parts) == 1:
        alone = {"lse": "lse", "cross_entropy": "loss"}.get(operator, "y")
        return ["dx" if gradients else alone]
    outcomes = []
    for part in parts:
        while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            part = part.func.value
        outcomes.append(role_of(getattr(part, "id", "")))
    own_names = ("y", "mean", "rstd", "loss", "lse")
    if gradients:
        own_names = ("dx", "dw", "db")
        # a gradient of what the operator lacks
        while outcomes[-1] not in own_names and len(outcomes) > 1:
            outcomes.pop()
    is_known = set(outcomes) <= set(own_names) and len(set(outcomes)) == len(outcomes)
    return outcomes if is_known else None


def forward_alone(call, parameters):
    """The call of an autograd Function that has no backward, as a function that applies it."""
    last = max(call.parameters.index(name) for name in call.bound)
    arguments = []
    for name in call.parameters[: last + 1]:
        arguments.append(name if name in call.bound else str(parameters[name]))
        if name == "normalized_shape":
            arguments[-1] = f"({list(call.bound)[0]}.shape[-1],)"
    bound = {k: v for k, v in call.bound.items() if v != "N" or k != "normalized_shape"}
    head = f"def applied({', '.join(bound)}):"
    tail = f"\n\n{head}\n    return {call.name}.apply({', '.join(arguments)})\n"
    return Call("applied", LAUNCHER, list(bound), [], {}, bound, call.outputs, tail)


def calls_of(code: str, operator: str) -> tuple[str, list[Call]]:
    """(what a text is, what is called of it): what launches a kernel and is used by nothing else of the text.

    An autograd Function or a function; a layer where there are none; what is used elsewhere where there is no layer.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return WHAT[0], []
    offered = entries(code)
    if all(entry.kind != TRITON for entry in offered):
        return WHAT[1], []
    nodes = {getattr(node, "name", None): node for node in ast.walk(tree)}
    launchers = [entry for entry in offered if entry.kind in (AUTOGRAD, LAUNCHER)]
    layers = [entry for entry in offered if entry.kind == MODULE]
    if not launchers:
        layers = [entry for entry in layers if is_launching(nodes[entry.name])]
    top = [entry for entry in launchers if not entry.helper]
    top_entries = top or layers or launchers
    if not top_entries:
        return WHAT[2], []
    calls = [call_of(entry, nodes[entry.name], operator) for entry in top_entries]
    return PROGRAM, calls


def is_launching(node: ast.AST) -> bool:
    """Whether there is a kernel[grid](...) in it."""
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(isinstance(function, ast.Subscript) for function in calls)


def kind_of(verdict, call: Call) -> str:
    """What is wrong, or why a program is not read, of one verdict; "" of a proof."""
    if verdict.kind in (PROVED, IF_ZERO):
        return ""
    parts = [verdict, *verdict.outputs.values()]
    words = [part.why for part in parts if part.kind == verdict.kind and part.why]
    reasons = UNREAD if verdict.kind == NOT_READ else REASONS
    for kind, text in reasons.items():
        if any(re.search(text, why) for why in words):
            return kind
    if verdict.kind == NOT_READ:
        return LINE
    refuted = {k: v for k, v in verdict.outputs.items() if v.kind == verdict.kind}
    stored = [part.stored for part in refuted.values() if part.stored is not None]
    if "eps" in call.roles and stored and not any(e.has(eps) for e in stored):
        return NO_EPS
    return GRADIENT if refuted.keys() & {"dx", "dw", "db"} else FORMULA


def judged(code: str, call: Call, operator: str) -> dict:
    """The verdict on one call, as facts; `words` is printed and not kept."""
    start = time.process_time()
    try:
        verdict = verify(
            with_imports(code) + call.tail,
            call.definitions(operator),
            call.outputs,
            name=call.name,
            **call.bound,
        )
    except ValueError as reason:
        facts = {"verdict": NOT_READ, "kind": NO_NAME, "line": None}
        words = str(reason)
    else:
        line = verdict.line and verdict.line - 1
        facts = {"verdict": verdict.kind, "kind": kind_of(verdict, call), "line": line}
        words = str(verdict).partition("\n  assumed")[0]
    seconds = round(time.process_time() - start, 1)
    return {**facts, "seconds": seconds, "words": words}


def in_a_process(function, *arguments) -> dict | None:
    """What a function returns in a process of its own; None where that ran out of its processor time."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS,) * 2)
        with os.fdopen(writing, "w", encoding="utf8") as pipe:
            json.dump(function(*arguments), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def row_of(record: dict) -> dict:
    """The facts about a record: of its calls the one with the worst verdict counts."""
    operator, code = operator_of(record), record["code"]
    what, calls = calls_of(code, operator)
    row = {
        "model": model_of(record["id"]),
        "record": record["id"],
        "operator": OPERATORS[operator],
        "what": what,
        "calls": len(calls),
    }
    if what != PROGRAM:
        return row
    results = [in_a_process(judged, code, call, operator) for call in calls]
    for position, result in enumerate(results):
        if result is None:
            results[position] = {
                "verdict": NOT_READ,
                "kind": SLOW,
                "line": None,
                "seconds": PROCESSOR_SECONDS,
                "words": "",
            }
    ranks = [KINDS.index(result["verdict"]) for result in results]
    worst = ranks.index(max(ranks))
    seconds = round(sum(result["seconds"] for result in results), 1)
    is_lacking = not with_imports(code).startswith("pass")
    return {
        **row,
        **results[worst],
        "seconds": seconds,
        "call": worst,
        "imports": is_lacking,
    }


def job_of(record: dict, call: Call, words: str, **options) -> dict:
    """What tools/model_runs.py is asked."""
    has_eps = "eps" in call.bound.values()
    eps = USUAL_EPS if options["usual"] else LARGE_EPS
    numbers = {
        float(text)
        for text in re.findall(r"\b\d(?:\.\d*)?e-\d+|\b0\.0\d+", record["code"])
    }
    numbers_tried = sorted(n for n in numbers if 0 < n <= 0.01) or [USUAL_EPS]
    return {
        "code": with_imports(record["code"]) + call.tail,
        "name": call.name,
        "kind": call.kind,
        "parameters": call.parameters,
        "of_init": call.of_init,
        "trained": call.trained,
        "bound": {k: v for k, v in call.bound.items() if k not in call.trained},
        "outputs": call.outputs,
        "operator": operator_of(record),
        "eps": eps,
        "eps_tried": [eps] if has_eps else numbers_tried,
        "small": 1.0 if has_eps else 0.01,
        "leading": "(B, T, N)" in words,
        "heads": "vectors (T, N)" in words,
        "apart": False,
        "compile": False,
        **options,
    }


def ran(jobs: list[dict], is_compiled: bool, on_gpu: bool = False) -> list[list]:
    """What each run gave, in processes without a network; see tools/model_runs.py."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("HOME", "TMPDIR", "TRITON_CACHE_DIR")
        environment = dict.fromkeys(names, folder) | {"PATH": os.environ["PATH"]}
        # where a driver of a GPU lies
        if "LD_LIBRARY_PATH" in os.environ:
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        environment["TRITON_INTERPRET"] = str(int(not is_compiled))
        command = ["unshare", "--map-root-user", "--net", sys.executable]
        command.append(str(Path(__file__).with_name("model_runs.py")))
        if on_gpu:
            command.append("cuda")
        done = subprocess.run(
            command,
            input="\n".join(map(json.dumps, jobs)),
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            check=True,
        )
    return list(map(json.loads, done.stdout.splitlines()))


def is_right(answers: list) -> bool:
    """Whether every result of every run is right."""
    return all(isinstance(g, dict) and set(g.values()) == {"right"} for g in answers)


# what torch says where the stand-in for a GPU keeps an operator of its own from running at all
UNRUN = ("Duplicate torch object",)


def called(row: dict, records: dict[str, dict]) -> tuple[dict, Call, str]:
    """What a job is made of: a row's record, what is called of it, and the words of the verdict."""
    record = records[row["record"]]
    calls = calls_of(record["code"], operator_of(record))[1]
    return record, calls[row["call"]], row["words"]


def odd_job(record: dict, call: Call, words: str) -> dict:
    """The job at odd sizes, and at those that a verdict names."""
    own_sizes = re.findall(r"M ?= ?(\d+), N ?= ?(\d+)", words)
    sizes = {*ODD, *[tuple(map(int, size)) for size in own_sizes]}
    return job_of(record, call, words, usual=False, sizes=sorted(sizes))


def add_runs(rows: list[dict], records: dict[str, dict]) -> None:
    """Run each program, and keep in its row what it gave, and whether that bears the verdict out."""
    rows = [row for row in rows if row.get("verdict") in KINDS]
    calls = [called(row, records) for row in rows]
    odd = ran([odd_job(*call) for call in calls], False)
    bad = [k for k, row in enumerate(rows) if row["verdict"] in (WRONG, REFUTED)]
    jobs = [job_of(*calls[k], usual=True, sizes=[USUAL]) for k in bad]
    usual = dict(zip(bad, ran(jobs, False), strict=True))
    decided = [k for k, row in enumerate(rows) if row["verdict"] != NOT_READ]
    jobs = [job_of(*calls[k], usual=False, sizes=ODD[:1]) for k in decided]
    compiled = dict(zip(decided, ran(jobs, True), strict=True))
    apart = [k for k, row in enumerate(rows) if "any stride from N on" in row["words"]]
    jobs = [job_of(*calls[k], usual=False, sizes=ODD, apart=True) for k in apart]
    strided = dict(zip(apart, ran(jobs, False), strict=True))
    for position, row in enumerate(rows):
        answers = [*odd[position], *strided.get(position, [])]
        if all(text in str(answer) for answer in answers for text in UNRUN):
            continue
        row["ran right"] = is_right(answers)
        row["given"] = [answers, usual.get(position), compiled.get(position)]
        if row["verdict"] == NOT_READ:
            continue
        raised = [text for text in compiled[position] if isinstance(text, str)]
        is_proof = row["verdict"] in (PROVED, IF_ZERO)
        row["borne out"] = is_proof == (is_right(answers) and not raised)
        if position in usual:
            row["runs"] = isinstance(usual[position][0], dict) and not raised
            row["usual"] = is_right(usual[position]) and not raised


def add_gpu_runs(rows: list[dict], records: dict[str, dict]) -> None:
    """Run each program that was decided on this machine's GPU, and keep what it gave at odd and at usual sizes.

    Entries between tensors are nan there, too. A verdict is borne out as in `add_runs`.
    """
    rows = [row for row in rows if row.get("verdict") in set(KINDS) - {NOT_READ}]
    jobs = []
    for row in rows:
        call = called(row, records)
        jobs += [odd_job(*call), job_of(*call, usual=True, sizes=[USUAL])]
    count = os.cpu_count()
    with ThreadPoolExecutor(count) as pool:
        done = pool.map(lambda k: ran(jobs[k::count], True, True), range(count))
    answers = [None] * len(jobs)
    for position, results in enumerate(done):
        answers[position::count] = results
    for position, row in enumerate(rows):
        odd, usual = answers[2 * position : 2 * position + 2]
        is_proof = row["verdict"] in (PROVED, IF_ZERO)
        row["given by a GPU"] = [odd, usual]
        row["gpu"] = {"borne out": is_proof == is_right(odd), "usual": is_right(usual)}
        if not row["gpu"]["borne out"]:
            print(row["verdict"], row["kind"], row["record"], odd, usual, sep="\n  ")


def gpu() -> dict:
    """This machine's GPU, the versions, and the day."""
    import torch
    import triton

    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": str(date.today()),
    }


def add_earlier_gpu_runs(rows: list[dict], facts: dict) -> None:
    """What a GPU gave earlier, for each row whose verdict is the same as then."""
    earlier = {row["record"]: row for row in facts["rows"] if "gpu" in row}
    for row in rows:
        found = earlier.get(row["record"], {})
        same = all(row.get(name) == found.get(name) for name in ("verdict", "call"))
        if found and same:
            row.setdefault("gpu", found["gpu"])


def written(rows: list[dict], gpu_facts: dict) -> str:
    """The facts as JSON, without words."""
    facts = [{k: v for k, v in row.items() if k in FACTS} for row in rows]
    lines = ",\n".join(map(json.dumps, facts))
    head = f'"date": "{date.today()}",\n"gpu": {json.dumps(gpu_facts)},'
    return f'{{{head}\n"rows": [\n{lines}\n]}}\n'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where records.jsonl is")
    parser.add_argument("--only", default="", help="records whose id has this text")
    parser.add_argument("--json", type=Path, help="a file for the facts")
    parser.add_argument("--run", action="store_true", help="execute the programs, too")
    parser.add_argument("--gpu", action="store_true", help="the same on the GPU")
    parser.add_argument("--words", type=Path, help="a file for all that is known")
    options = parser.parse_args()
    text = (options.folder / "records.jsonl").read_text(encoding="utf8")
    records = {record["id"]: record for record in map(json.loads, text.splitlines())}
    rows = []
    if options.words and options.words.exists():
        rows = json.loads(options.words.read_text(encoding="utf8"))
    read_ids = {row["record"] for row in rows}
    for name, record in records.items():
        if options.only in name and name not in read_ids:
            rows.append(row_of(record))
            row = rows[-1]
            print(
                row.get("verdict", row["what"]), row.get("kind", ""), name, flush=True
            )
    if options.run:
        add_runs(rows, records)
    facts = {"gpu": {}, "rows": []}
    if options.json and options.json.exists():
        facts = json.loads(options.json.read_text(encoding="utf8"))
        add_earlier_gpu_runs(rows, facts)
    if options.gpu:
        add_gpu_runs(rows, records)
        facts["gpu"] = gpu()
    if options.words:
        options.words.write_text(json.dumps(rows, indent=1), encoding="utf8")
    if options.json:
        options.json.write_text(written(rows, facts["gpu"]), encoding="utf8")
    print(dict(Counter(row.get("verdict", row["what"]) for row in rows)))


if __name__ == "__main__":
    main()
