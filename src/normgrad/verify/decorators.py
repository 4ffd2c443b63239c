"""What the decorators above a kernel set: literals are seen through, all else is refused with its line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .nodes import nodes_of
from .source import Source, is_constexpr, is_jit, last_name, root_of
from .values import NotRead, Wrong, uncompiled

AUTOTUNE = (
    *("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value"),
    *("pre_hook", "post_hook", "warmup", "rep", "use_cuda_graph", "do_bench"),
    "cache_results",
)
# the arguments of Config in Triton 3.7.1
CONFIG = (
    *("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook"),
    "ir_override",
)
# {what autotune hands in besides the numbers of its configurations: those with which a kernel compiles, () for any}
COUNTS = {"num_warps": (1, 2, 4, 8, 16, 32), "num_stages": (), "num_ctas": (1,)}
UNSPECIALIZED = ("do_not_specialize", "do_not_specialize_on_alignment")
JIT = {*UNSPECIALIZED, "debug", "repr"}
# what runs Python that is not read, or another kernel
FOREIGN = ("prune_configs_by", "pre_hook", "post_hook", "do_bench", "ir_override")
# what an expression that computes a size may be made of
ARITHMETIC = (
    *(ast.Constant, ast.Name, ast.Subscript, ast.Attribute, ast.BinOp, ast.Call),
    *(ast.Compare, ast.IfExp, ast.operator, ast.cmpop, ast.expr_context),
)
SIZES = ("min", "max", "cdiv", "next_power_of_2")


@dataclass(frozen=True)
class Setting:
    """What a decorator sets an argument to.

    Args:  value: an expression, of the other arguments under the name `others`; tuned: whether it is one of several
    """

    name: str
    value: ast.expr
    line: int
    others: str = ""
    tuned: bool = False


@dataclass(frozen=True)
class Tuner:
    """An autotune; runs: how many configurations it tries, None where that is not seen."""

    line: int
    runs: int | None
    reset: tuple = ()
    restored: tuple = ()


@dataclass
class Decorators:
    """Those of one kernel.

    Args:  meanings: {name: (its arguments, what it stands for)}, taken for granted
           granted: which of them were, in words
           variable: arguments that Triton makes no constant of where they are 1
           is_called: whether the launch is read, whose other arguments are those that an unseen list sets
           unseen: a list of configurations that is not in the text
    """

    source: Source
    kernel: str
    meanings: Mapping[str, tuple]
    granted: dict[str, None] = field(default_factory=dict)
    settings: list[Setting] = field(default_factory=list)
    tuners: list[Tuner] = field(default_factory=list)
    variable: set[str] = field(default_factory=set)
    is_called: bool = False
    unseen: str = ""

    def __post_init__(self):
        wrappers = self.source.wrappers(self.kernel)
        count = len(self.source.functions[self.kernel][0].decorator_list)
        order = [*wrappers[:count][::-1], *wrappers[count:]]
        if order and list(map(is_jit, order)) != [True] + [False] * (len(order) - 1):
            raise NotRead(f"{self.kernel}: jit needs to stand once, right above it")
        for node in wrappers:
            read = getattr(self, f"_{last_name(node)}", None)
            try:
                if read is not None:
                    if not isinstance(node, ast.Call) and not is_jit(node):
                        raise NotRead(f"{ast.unparse(node)} without a call")
                    read(node)
            except NotRead as reason:
                reason.line = node.lineno
                raise

    def check_names(self, names: list[str]) -> None:
        """Refuse a decorator that sets what is no argument of the kernel."""
        for setting in self.settings:
            if setting.name not in names:
                raise NotRead(
                    f"a decorator sets {setting.name}, which is no argument",
                    setting.line,
                )

    def _literal(self, node):
        """What a helper says that an expression is, else the expression."""
        name = ast.unparse(getattr(node, "func", node))
        if name not in self.meanings:
            return node
        text = self.meanings[name][1]
        self.granted[f"{ast.unparse(node)} is {text}"] = None
        return ast.parse(text, mode="eval").body

    def _pairs(self, node, words) -> Iterator[tuple[str, ast.expr]]:
        """The entries of a dict that is written out."""
        node = self._literal(node)
        if not isinstance(node, ast.Dict):
            raise NotRead(f"{words} {ast.unparse(node)}, which is no dict in the text")
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(getattr(key, "value", None), str):
                raise NotRead(f"{words} with a key that is no text")
            yield key.value, value

    def _arguments(self, node, names):
        """{argument: its expression} of a call."""
        pairs = list(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg is None:
                pairs += self._pairs(keyword.value, "arguments by **")
            else:
                pairs.append((keyword.arg, keyword.value))
        given = dict(pairs)
        if len(given) < len(pairs) or len(node.args) > len(names):
            raise NotRead(f"{ast.unparse(node.func)} with an argument too many")
        for name, value in given.items():
            absent = isinstance(value, ast.Constant) and value.value is None
            if name not in names or name in FOREIGN and not absent:
                raise NotRead(
                    f"{ast.unparse(node.func)} with {name}, which is not read"
                )
        return given

    def _jit(self, node):
        """Keeps what jit makes no constant of."""
        function = self.source.functions[self.kernel][0]
        self.variable = variable_arguments(node, function)

    def _heuristics(self, node):
        values = self._arguments(node, ("values",)).get("values")
        for name, value in self._pairs(values, "heuristics of"):
            match value:
                case ast.Lambda(ast.arguments(args=[parameter], defaults=[]), body):
                    pass
                case _:
                    raise NotRead(f"heuristics for {name} that are no lambda")
            self.settings.append(Setting(name, body, node.lineno, parameter.arg))

    def _autotune(self, node):
        given = self._arguments(node, AUTOTUNE)
        configs, runs = self._literal(given.get("configs", node)), None
        choices = {}
        if self.is_called and isinstance(configs, ast.Call | ast.Name):
            self.unseen = ast.unparse(configs)
            configs = ast.List([])
        match configs:
            case ast.List(elts) | ast.Tuple(elts):
                runs = len(elts) or None
            case ast.ListComp(elt, generators):
                elts, choices = [elt], self._choices(generators)
            case _:
                text = ast.unparse(configs)
                raise NotRead(
                    f"autotune of {text}, which is no list in the text; "
                    f"helpers={{...}} says what it is"
                )
        if "key" not in given:
            raise Wrong("does not launch: autotune is given no key")
        for config in elts:
            root = root_of(getattr(config, "func", config))
            if last_name(config) != "Config" or root not in self.source.imports:
                raise NotRead(f"autotune of {ast.unparse(config)}, which is no Config")
            given_there = self._arguments(config, CONFIG)
            if self.is_called and "kwargs" not in given_there:
                raise Wrong("a TypeError: a Config without its first argument")
            for word in COUNTS:
                _check_count(word, given_there.get(word), choices)
            values = given_there.get("kwargs", ast.Dict([], []))
            for name, value in self._pairs(values, "a Config of"):
                for choice in choices.get(getattr(value, "id", ""), [value]):
                    setting = Setting(name, choice, node.lineno, tuned=True)
                    self.settings.append(setting)
        lists = map(given.get, ("reset_to_zero", "restore_value"))
        names = [names_of(part, "autotune") for part in lists]
        self.tuners.append(Tuner(node.lineno, runs, *names))

    def _choices(self, generators):
        """{name of a comprehension: its values} of what runs over a list in the text."""
        choices = {}
        for generator in generators:
            values = generator.iter
            if isinstance(values, ast.Name) and values.id in self.source.constants:
                values = self.source.constant(values.id)
            lists = [values]
            if isinstance(values, ast.IfExp):
                lists = [values.body, values.orelse]
            if all(isinstance(part, ast.List | ast.Tuple) for part in lists):
                entries = [entry for part in lists for entry in part.elts]
                choices[getattr(generator.target, "id", "")] = entries
        return choices


def _check_count(word, node, choices):
    """Refuses a Config whose number of warps, stages or blocks' groups is not in the text, or is none.

    For `Config({}, num_warps=w) for w in (4, 8)`. It stops w = 3, which Triton refuses when it compiles.

    Args:  node: the number, None for the default; choices: {name of a comprehension: its values}
    """
    for choice in choices.get(getattr(node, "id", ""), [node] * (node is not None)):
        count = getattr(choice, "value", None)
        allowed = COUNTS[word] or (count,)
        if type(count) is not int or count <= 0 or count not in allowed:
            raise NotRead(f"a Config with {word}={ast.unparse(choice)}")


def names_of(node: ast.expr | None, owner: str, kinds: type = str) -> tuple:
    """The names, or the numbers, in a list of them that is written out.

    Args:  owner: whose argument it is, for the refusal; kinds: of what is in it
    """
    absent = node is None or ast.unparse(node) == "None"
    parts = [] if absent else getattr(node, "elts", [None])
    names = tuple(getattr(part, "value", None) for part in parts)
    if not all(isinstance(name, kinds) for name in names):
        text = ast.unparse(node)
        raise NotRead(f"{owner} with {text}, which is no list of names")
    return names


def variable_arguments(node: ast.expr, function: ast.FunctionDef) -> set[str]:
    """The arguments of a function that jit does not specialize, so that they are no constants where they are 1.

    Raises:  NotRead for what jit is not told; Wrong for an argument with tl.constexpr, which Triton does not compile
    """
    lists = {keyword.arg: keyword.value for keyword in getattr(node, "keywords", ())}
    if getattr(node, "args", ()) or not lists.keys() <= JIT:
        raise NotRead(f"{ast.unparse(node)}, whose arguments are not read")
    arguments = {}
    for number, argument in enumerate(function.args.args):
        arguments[number] = arguments[argument.arg] = argument
    variable = set()
    for word in UNSPECIALIZED:
        for key in names_of(lists.get(word), word, str | int):
            if key not in arguments:
                raise NotRead(f"{word} names {key!r}, which is no argument")
            argument = arguments[key]
            if is_constexpr(argument):
                raise uncompiled(f"{word} of {argument.arg}, which is a tl.constexpr")
            if word == "do_not_specialize":
                variable.add(argument.arg)
    return variable


def is_arithmetic(value: ast.expr, source: Source) -> bool:
    """Whether an expression computes a number and does nothing else."""
    for node in nodes_of(value):
        if not isinstance(node, ARITHMETIC):
            return False
        if isinstance(node, ast.Call) and not _is_size(node.func, source):
            return False
    return True


def _is_size(called, source):
    """Whether a function is min, max or one of Triton's own, which the text does not define."""
    *home, name = ast.unparse(called).split(".")
    if name in ("min", "max"):
        paths = source.functions, source.constants, source.imports
        return not home and not any(name in path for path in paths)
    if home:
        return name in SIZES and home == ["triton"] and "triton" in source.imports
    return (f"triton.{name}", 0) in source.imports.get(name, ()) and name in SIZES


def is_power(value: ast.expr) -> bool:
    """Whether an expression is a power of 2, as a block has to be.

    For a decorator that computes a block. Without it `lambda args: args["M"]` is one, which does not compile for M = 3.
    """
    match value:
        case ast.Constant(number):
            return type(number) is int and number > 0 and number.bit_count() == 1
        case ast.Call(ast.Name("min" | "max"), parts, []):
            return all(map(is_power, parts))
        case ast.IfExp(_, first, second) | ast.BinOp(first, ast.Mult(), second):
            return is_power(first) and is_power(second)
        case ast.Call(args=[_], keywords=[]):
            return last_name(value) == "next_power_of_2"
    return False


def is_whole(value: ast.expr, others: str, columns: set[str]) -> bool:
    """Whether it is next_power_of_2 of the number of columns, or no less than that.

    Args:  others: the name of the dict of arguments; columns: those that are the number of columns
    """
    match value:
        case ast.Call(_, [ast.Subscript(ast.Name(root), ast.Constant(name))], []):
            is_power_of_2 = last_name(value) == "next_power_of_2"
            return is_power_of_2 and root == others and name in columns
        case ast.Call(ast.Name("max"), parts, []):
            return any(is_whole(part, others, columns) for part in parts)
    return False


def compared_argument(setting: Setting) -> tuple[str, ast.cmpop | None]:
    """(name, is or is not) of `args[name] is None`, (name, None) of `bool(args[name])`, ("", None) of all else."""
    match setting.value:
        case ast.Compare(
            ast.Subscript(ast.Name(root), ast.Constant(str(name))),
            [ast.Is() | ast.IsNot() as operator],
            [ast.Constant(None)],
        ) if root == setting.others:
            return name, operator
        case ast.Call(
            ast.Name("bool"), [ast.Subscript(ast.Name(root), ast.Constant(str(name)))]
        ) if root == setting.others:
            return name, None
    return "", None
