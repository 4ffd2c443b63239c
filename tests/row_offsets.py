"""Products of rows and sizes in the addresses of a kernel's text that are computed in 32 bits."""

import ast
import re

WIDE = ".to(tl.int64)"
# Numbers of rows and columns: less than M and than N + BLOCK.
PLACES = {"rows", "cols"}
# A weight for each head is one vector of heads * N numbers, which are less than 2**31.
VECTORS = {"head * N"}


def narrow_products(text):
    """The products in addresses of a module's kernels that have no factor of 64 bits."""
    for kernel in ast.walk(ast.parse(text)):
        if isinstance(kernel, ast.FunctionDef) and kernel.decorator_list:
            yield from _narrow_of(kernel)


def _narrow_of(kernel):
    values = [
        (target.id, node.value)
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in getattr(node, "targets", None) or [node.target]
        if isinstance(target, ast.Name)
    ]
    wide = {name for name, value in values if WIDE in ast.unparse(value)}
    addresses = [
        call.args[0]
        for call in ast.walk(kernel)
        if isinstance(call, ast.Call)
        and re.match("tl.(load|store|atomic)", ast.unparse(call))
    ]
    names = set()
    while addresses:
        address = addresses.pop()
        yield from _products(address, wide)
        for node in ast.walk(address):
            if isinstance(node, ast.Name) and node.id not in names | PLACES:
                names.add(node.id)
                addresses += [value for name, value in values if name == node.id]


def _products(node, wide):
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        for part in ast.iter_child_nodes(node):
            yield from _products(part, wide)
        return
    text = ast.unparse(node)
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    if WIDE not in text and not names & wide and text not in VECTORS:
        yield text
