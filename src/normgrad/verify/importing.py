"""Whether the lines that run where a module is imported ask for what is not there: a name, or a part of Triton."""

from __future__ import annotations

import abc
import ast
import builtins
import contextlib
import dataclasses
import functools
import math
import typing

from .nodes import nodes_of
from .values import NotRead, Wrong

NAMES = {
    *dir(builtins),
    *("__file__", "__path__", "__cached__", "__annotations__", "__builtins__"),
}
VERSION = "3.7.1"
# {a library: what it has}; of Triton in that version
LIBRARIES = {
    "triton": """
        AsyncCompileMode CompilationError Config FutureKernel InterpreterError JITFunction KernelInterface MockTensor
        OutOfResources TensorWrapper TritonError autotune backends cdiv compile compiler constexpr_function errors
        heuristics jit knobs language must_use_result next_power_of_2 reinterpret runtime set_allocator testing tools
    """.split(),
    "triton.runtime": """
        Autotuner Config Heuristics InterpreterError JITFunction KernelInterface MockTensor OutOfResources
        RedisRemoteCacheBackend RemoteCacheBackend TensorWrapper autotune autotuner build cache driver errors heuristics
        jit reinterpret
    """.split(),
    "triton.language.math": """
        List T abs ceil core cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi wraps
    """.split(),
    "triton.language": """
        PropagateNan TRITON_MAX_TENSOR_NUMEL abs add advance arange argmax argmin associative_scan assume atomic_add
        atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor bfloat16 bitonic_merge block_type
        broadcast broadcast_to cast cat cdiv ceil clamp condition const constexpr constexpr_type core cos cumprod cumsum
        debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp exp2 expand_dims extra fdiv flip
        float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma full gather histogram
        inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log log2
        make_block_ptr make_tensor_descriptor map_elementwise math max max_constancy max_contiguous maximum min minimum
        mul multiple_of num_programs pair_uniform_to_normal permute philox philox_impl pi32_t pointer_type program_id
        rand rand4x randint randint4x randn randn4x random range ravel reduce reduce_or reshape rsqrt sigmoid sin slice
        softmax sort split sqrt sqrt_rn squeeze standard static_assert static_print static_range store
        store_tensor_descriptor str_to_ty sub sum swizzle2d target_info tensor tensor_descriptor tensor_descriptor_type
        to_tensor topk trans tuple tuple_type uint16 uint32 uint64 uint8 uint_to_uniform_float umulhi unsqueeze view
        void where xor_sum zeros zeros_like
    """.split(),
}
LIBRARIES |= {
    library.__name__: dir(library)
    for library in (abc, contextlib, dataclasses, functools, math, typing)
}
# of Python's own functions those that take a function, and give what may stand in its place
DECORATORS = ("classmethod", "property", "staticmethod")


@functools.lru_cache(maxsize=64)
def check_bound(tree: ast.Module, is_plain: bool = False) -> None:
    """Refuse a module whose lines name what is not bound before, as in a default, a base or a decorator.

    For a text that has other functions beside the one that is read. It stops `def kernel(..., B: tl.constexpr = BLOCK)`
    in a text without BLOCK, which no binding mends: the import ends in a NameError.

    Args:    is_plain: whether the text binds no name, and changes no library, without saying so
    Raises:  Wrong for what a line that is sure to run lacks in a text that is plain; else NotRead
    """
    _Importing(tree, is_plain).visit(tree)


def only_imports(node: ast.Try, library: str = "") -> bool:
    """Whether a `try` imports, keeps in flags that it has, and does something else only where an import fails.

    For `try: import triton` with `HAS_TRITON = True` in it. It stops a `try` that calls.

    Args:  library: that all imports are of; "" for any
    """
    imports = []
    for line in node.body:
        match line:
            case ast.Import(names=names):
                imports += [part.name for part in names]
            case ast.ImportFrom(module=str(path), level=0):
                imports.append(path)
            case ast.ImportFrom():
                imports.append("")
            case ast.Assign([ast.Name()], ast.Constant()):
                pass
            case _:
                return False
    tops = {path.partition(".")[0] for path in imports}
    return bool(imports) and (not library or tops == {library})


def binds_alone(node: ast.Try) -> bool:
    """Whether a `try` only binds names to imports and constants, wherever it ends.

    For `except ImportError: triton = None`. It stops `except ImportError: torch.rsqrt = torch.sqrt`, and
    `from fast import *`.
    """
    lines = [*node.body, *node.orelse, *node.finalbody]
    for handler in node.handlers:
        lines += handler.body
    for line in lines:
        match line:
            case ast.ImportFrom(names=[ast.alias("*")]):
                return False
            case ast.Import() | ast.ImportFrom() | ast.Pass():
                pass
            case ast.Assign([ast.Name()], ast.Constant()):
                pass
            case _:
                return False
    return True


class _Importing(ast.NodeVisitor):
    """Goes through a module as Python runs it; functions' bodies, and what is caught, are left out."""

    def __init__(self, tree, is_plain):
        self.bound = set(NAMES)
        # whether a NameError is caught, whether a line is sure to run, and whether annotations are left as text
        self.is_caught, self.is_sure, self.is_lazy = False, True, False
        # whether an expression may not run, or its error may be passed over, so that it accuses nobody
        self.is_doubtful = not is_plain
        self.libraries: dict[str, str] = {}
        for node in nodes_of(tree):
            match node:
                case ast.Global(names=names):
                    self.bound.update(names)
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    self.is_caught = True
                case ast.ImportFrom(module="__future__"):
                    self.is_lazy |= "annotations" in [n.name for n in node.names]

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
            self.libraries.pop(node.id, None)
        elif node.id not in self.bound:
            why = f"{node.id} has no value where the module is imported"
            self.refuse(node, why, "a NameError")

    def refuse(self, node, why, error=""):
        """Refuse a line; where it is sure to run in every version of Python, by the error in which it ends."""
        if self.is_caught:
            return
        is_wrong = error and self.is_sure and not self.is_doubtful
        reason = Wrong(f"{error}: {why}") if is_wrong else NotRead(why)
        reason.line = node.lineno
        raise reason

    def visit_Import(self, node):
        for part in node.names:
            name = (part.asname or part.name).partition(".")[0]
            self.bound.add(name)
            self.libraries[name] = part.name if part.asname else name

    def visit_ImportFrom(self, node):
        for part in node.names:
            self._check_part(node, "" if node.level else node.module, part.name)
            name = part.asname or part.name
            self.bound.add(name)
            self.libraries[name] = f"{node.module}.{part.name}"

    def visit_Attribute(self, node):
        """A part of a value."""
        self.visit(node.value)
        path = self.libraries.get(getattr(node.value, "id", None), "")
        self._check_part(node, path, node.attr)

    def _check_part(self, node, path, name):
        known = not self.is_sure or name in LIBRARIES.get(path, (name,))
        if not known and not name.startswith("_"):
            error = f"an AttributeError of Triton {VERSION}"
            is_read = isinstance(getattr(node, "ctx", None), ast.Load)
            is_own = path == "triton.language" and is_read
            self.refuse(
                node, f"{path}.{name}, which {path} does not have", error * is_own
            )

    def generic_visit(self, node):
        """Values before the targets that they are given to, and the names of what has one."""
        for child in sorted(ast.iter_child_nodes(node), key=_is_target):
            self.visit(child)
        for name in (getattr(node, "name", None), getattr(node, "rest", None)):
            if isinstance(name, str):
                self.bound.add(name)

    def visit_Raise(self, node):
        if self.is_sure:
            self.refuse(node, "an error that the text raises")

    def visit_FunctionDef(self, node):
        for decorator in node.decorator_list:
            self.visit(decorator)
            name = getattr(decorator, "id", DECORATORS[0])
            if name in dir(builtins) and name not in DECORATORS:
                self.refuse(node, f"{name}, which is no decorator")
        # Python 3.14 leaves annotations as they are; jit looks at a kernel's
        is_jit = "jit" in " ".join(map(ast.unparse, node.decorator_list))
        self._visit_all([node.args], is_doubtful=self.is_doubtful or not is_jit)
        self.annotated(node.returns)
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_arg(self, node):
        self.annotated(node.annotation, self.is_doubtful)

    def visit_AnnAssign(self, node):
        self.annotated(node.annotation)
        for part in (node.value, node.target):
            if part is not None:
                self.visit(part)

    def annotated(self, annotation, is_doubtful=True):
        """An annotation, which Python evaluates where no line of the text says that it does not."""
        if annotation is not None and not self.is_lazy:
            self._visit_all([annotation], is_doubtful=is_doubtful)

    def _visit_all(self, nodes, **state):
        """Nodes, with another state while they are read."""
        outside = {name: getattr(self, name) for name in state}
        vars(self).update(state)
        for node in nodes:
            self.visit(node)
        vars(self).update(outside)

    def visit_For(self, node):
        parts = (node.iter, node.target, *node.body, *node.orelse)
        self._visit_all(parts, is_sure=False)

    def visit_While(self, node):
        """Lines that may be left out, as those of another version are."""
        self._visit_all(ast.iter_child_nodes(node), is_sure=False)

    visit_match_case = visit_While

    def visit_ExceptHandler(self, node):
        self.bound.add(node.name)
        self.visit_While(node)

    def visit_With(self, node):
        """What may not run, or whose error may be passed over, as `tl.nope if hasattr(tl, "nope") else None`."""
        self._visit_all(ast.iter_child_nodes(node), is_doubtful=True)

    visit_IfExp = visit_BoolOp = visit_Compare = visit_Assert = visit_With

    def visit_Lambda(self, node):
        self.visit(node.args)

    def visit_ClassDef(self, node):
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        outside = set(self.bound)
        for part in node.body:
            self.visit(part)
        try:
            _made(node)
        except (TypeError, ValueError) as reason:
            self.refuse(node, f"the class {node.name}: {reason}")
        self.bound = outside | {node.name}

    def visit_ListComp(self, node):
        outside = set(self.bound)
        for part in node.generators:
            parts = (part.iter, part.target, *part.ifs)
            self._visit_all(parts, is_doubtful=True)
        self._visit_all(ast.iter_child_nodes(node), is_doubtful=True)
        assigned = [n.target for n in nodes_of(node) if isinstance(n, ast.NamedExpr)]
        self.bound = outside | {target.id for target in assigned}

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_Try(self, node):
        is_caught = self.is_caught or bool(node.handlers)
        self._visit_all(node.body, is_caught=is_caught)
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_If(self, node):
        """A branch; one for a text that is run as a program is left out."""
        is_main = "__name__" in ast.unparse(node.test)
        parts = (node.test, *([] if is_main else node.body), *node.orelse)
        self._visit_all(parts, is_sure=False)


def _made(node):
    """Makes a class of Python's own bases, and of what is written out in another's body.

    Raises:  TypeError or ValueError where Python makes none, as for two fields of a dataclass in the wrong order
    """
    bases = [getattr(base, "id", "") for base in node.bases]
    if len({*map(ast.unparse, node.bases)}) < len(bases):
        raise TypeError("duplicate base class")
    if any(isinstance(base, ast.Constant) for base in node.bases):
        raise TypeError("a base that is no class")
    is_known = all(base in dir(builtins) for base in bases) and not node.keywords
    parts, annotations = {}, {}
    for line in node.body:
        match line:
            case ast.FunctionDef(name=name):
                parts[name] = _made
            case ast.AnnAssign(ast.Name(name), annotation, value):
                text = ast.unparse(annotation)
                if "ClassVar" not in text:
                    keys = "KW_ONLY" in text
                    annotations[name] = dataclasses.KW_ONLY if keys else int
                if value is not None:
                    parts[name] = _value(value)
            case ast.Assign([ast.Name(name)], value) if _value(value) != 0:
                parts[name] = _value(value)
    own = [getattr(builtins, base) for base in bases] if is_known else []
    kind = type(node.name, tuple(own), parts | {"__annotations__": annotations})
    for decorator in node.decorator_list:
        called = getattr(decorator, "func", decorator)
        if is_known and ast.unparse(called).rpartition(".")[2] == "dataclass":
            words = getattr(decorator, "keywords", ())
            options = {word.arg: _value(word.value) for word in words}
            if None not in options:
                dataclasses.dataclass(**options)(kind)


def _value(node):
    """A value that is written out, or a number for any other one."""
    match node:
        case ast.Call(ast.Name("field") | ast.Attribute(attr="field"), [], keywords):
            values = {keyword.arg: _value(keyword.value) for keyword in keywords}
            options = {key: values[key] for key in ("init", "kw_only") if key in values}
            if {"default", "default_factory"} & values.keys():
                options["default"] = 0
            return dataclasses.field(**options)
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError):
        return 0


def _is_target(node):
    return isinstance(getattr(node, "ctx", None), ast.Store)
