"""replace_norms on the models of other libraries: what it replaces, what it leaves, and how far the numbers move.

    python tools/models_matrix.py                 all of them
    python tools/models_matrix.py llama mamba2    some

An environment in _build/models, which lent_environment makes, holds transformers, timm and torchvision; torch is lent.
Models are small, made from configurations, with random parameters of both signs: nothing is downloaded.

No bound is chosen. A model's own error is how far its logits, or one parameter's gradients, are from those of the same
numbers in the next wider dtype, float64 for float32 and float32 for bfloat16, over DRAWS inputs; and at least one
rounding of the largest. With norms as exact as its own the difference is at most twice that; FACTOR is twice as much.
A column holds the largest difference and its bound: of the logits, and of the gradient that is nearest to its bound.
Under a model are the same for the first input where torch.compile runs what was replaced, and in how many places the
compiler breaks the model's graph, with our norms and with its own.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial

from lent_environment import ROOT, environment, run

LIBRARIES = ("transformers", "timm", "torchvision")
FACTOR = 4
DRAWS = 12
SEED = 20261123
WIDER = {"float32": "float64", "bfloat16": "float32"}


def import_torchvision() -> None:
    """Its wheels are built for torch with CUDA; beside torch without, the library of operators does not load.

    The import then fails for want of two operators' names. No model here calls them, and timm and transformers import
    torchvision where there is one.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        from torch.library import define

        for name in ("nms", "qnms"):
            define(
                f"torchvision::{name}",
                "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            )
        import torchvision  # noqa: F401


# Models: each builds one and says how it is called and which classes of norms it keeps


@dataclass(frozen=True)
class Model:
    """build(): a module of small sizes; outputs(module, generator): what is compared; kept: classes that are left."""

    build: object
    outputs: object
    kept: tuple[str, ...] = ()


TINY = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = {**TINY, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}


def _transformers(name, kind="ForCausalLM", **options):
    def build():
        import transformers

        return getattr(transformers, name + kind)(
            getattr(transformers, f"{name}Config")(**options)
        )

    return build


def _tokens(model, generator):
    import torch

    out = model(torch.randint(1, 97, (2, 12), generator=generator))
    return out.logits if hasattr(out, "logits") else out.last_hidden_state


def _images(model, generator):
    import torch

    x = torch.randn(2, 3, 32, 32, generator=generator)
    return model(x.to(next(model.parameters()).dtype))


def _rows(model, generator):
    import torch

    return model(
        torch.randn(2, 12, 32, generator=generator).to(next(model.parameters()).dtype)
    )


def _encoder():
    import torch

    layer = torch.nn.TransformerEncoderLayer(
        32, 4, 64, batch_first=True, norm_first=True
    )
    return torch.nn.TransformerEncoder(
        layer, 2, torch.nn.LayerNorm(32), enable_nested_tensor=False
    )


def _timm(module, name, **options):
    def build():
        from importlib import import_module

        return getattr(import_module(f"timm.models.{module}"), name)(
            num_classes=11, **options
        )

    return build


def _torchvision(name):
    def build():
        from torchvision.models import convnext, swin_transformer, vision_transformer

        if name == "ViT":
            return vision_transformer.VisionTransformer(
                32, 8, 2, 4, 32, 64, num_classes=11
            )
        if name == "Swin":
            return swin_transformer.SwinTransformer(
                [4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=11
            )
        blocks = [convnext.CNBlockConfig(8, 16, 1), convnext.CNBlockConfig(16, None, 1)]
        return convnext.ConvNeXt(blocks, num_classes=11)

    return build


MAMBA2 = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_heads": 8,
    "head_dim": 8,
    "state_size": 8,
    "n_groups": 1,
    "chunk_size": 8,
}
GPT2 = {"vocab_size": 97, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
MODELS = {
    "llama": Model(_transformers("Llama", **GROUPED), _tokens),
    "qwen3": Model(_transformers("Qwen3", **GROUPED), _tokens),
    "gemma": Model(_transformers("Gemma", **GROUPED), _tokens),
    "mistral": Model(_transformers("Mistral", **GROUPED), _tokens),
    "olmo2": Model(_transformers("Olmo2", **GROUPED), _tokens),
    "gpt2": Model(_transformers("GPT2", "LMHeadModel", **GPT2), _tokens),
    "bert": Model(_transformers("Bert", "Model", add_pooling_layer=False, **TINY), _tokens),
    "mamba2": Model(_transformers("Mamba2", **MAMBA2), _tokens, ("MambaRMSNormGated",)),
    "torch encoder": Model(_encoder, _rows),
    "timm vit": Model(
        _timm("vision_transformer", "VisionTransformer", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4),
        _images,
    ),
    "timm swin": Model(
        _timm(
            "swin_transformer", "SwinTransformer", img_size=32, patch_size=2, window_size=4, embed_dim=16,
            depths=(2, 2), num_heads=(2, 4),
        ),
        _images,
    ),
    "timm convnext": Model(
        _timm("convnext", "ConvNeXt", depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)), _images, ("LayerNorm2d",)
    ),
    "torchvision vit": Model(_torchvision("ViT"), _images),
    "torchvision swin": Model(_torchvision("Swin"), _images),
    "torchvision convnext": Model(_torchvision("ConvNeXt"), _images, ("LayerNorm2d",)),
}  # fmt: skip


# Comparisons


def _measured(case, model, dtype, seed, run=lambda model: model):
    """{"logits": ..., parameter: its gradient} in float64, of a copy of the model in a dtype; run may compile it."""
    import torch

    model = copy.deepcopy(model).to(getattr(torch, dtype))
    generator = torch.Generator().manual_seed(seed)
    logits = case.outputs(run(model), generator)
    dy = torch.randn(logits.shape, generator=generator).bfloat16().to(logits.dtype)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    grads = torch.autograd.grad(
        logits, list(parameters.values()), dy, allow_unused=True
    )
    tensors = {"logits": logits, **dict(zip(parameters, grads, strict=True))}
    return {name: t.detach().double() for name, t in tensors.items() if t is not None}


def _largest(t):
    return t.abs().max().item()


def _differences(left, right):
    """{name: the largest difference} of what was measured of two models."""
    assert left.keys() == right.keys()
    assert all(t.isfinite().all() for t in [*left.values(), *right.values()])
    return {name: _largest(left[name] - right[name]) for name in left}


def _compiled(case, model, dtype):
    """What is measured of the first input under a compiler, and the number of places where it breaks the graph."""
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    run = partial(torch.compile, backend="aot_eager")
    tensors = _measured(case, model, dtype, SEED, run)
    return tensors, sum(counters["graph_break"].values())


def compared(case: Model, theirs, ours, dtype: str) -> tuple[list, list, int, int]:
    """Of the logits, and of the gradient that is nearest to its bound: (name, the largest difference, its bound).

    Returns:  of all inputs; of the first one, both compiled; the breaks of both graphs, with our norms first
    """
    from normgrad.checks.tolerance import unit_roundoff

    difference, own = Counter(), Counter()
    for draw in range(DRAWS):
        wide = _measured(case, theirs, WIDER[dtype], SEED + draw)
        before = _measured(case, theirs, dtype, SEED + draw)
        after = _measured(case, ours, dtype, SEED + draw)
        # of counters | is the larger number of each name
        own |= Counter(_differences(before, wide))
        least = unit_roundoff(dtype)
        own |= Counter({name: least * _largest(exact) for name, exact in wide.items()})
        difference |= Counter(_differences(after, before))
    assert own.keys() == wide.keys(), "a gradient of 0 shows nothing"
    after, breaks = _compiled(case, ours, dtype)
    before, own_breaks = _compiled(case, theirs, dtype)
    compiled = _differences(after, before)
    return _nearest(difference, own), _nearest(compiled, own), breaks, own_breaks


def _nearest(difference, own):
    rows = {name: (name, difference[name], FACTOR * own[name]) for name in own}
    logits = rows.pop("logits")
    return [logits, max(rows.values(), key=lambda row: row[1] / row[2])]


def randomized(model):
    """The model with random parameters of both signs."""
    import torch

    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            # Vectors, and what begins at 0, as the last layer of some.
            is_vector = parameter.numel() == max(parameter.shape, default=1)
            if is_vector or not parameter.any():
                parameter.normal_(generator=generator)
            # Numbers that every dtype holds: what is compared is arithmetic.
            parameter.copy_(parameter.bfloat16())
    return model


def tried(name: str) -> bool:
    """A row of the table about one model, and what was replaced and left; whether all is as it should be."""
    import torch

    from normgrad import nn

    case = MODELS[name]
    torch.manual_seed(SEED)
    theirs = randomized(case.build().eval())
    ours = copy.deepcopy(theirs)
    done = nn.replace_norms(ours)
    wrong = [] if done.replaced else ["nothing is replaced"]
    if {reason.partition(",")[0] for reason in done.left.values()} != set(case.kept):
        wrong += [f"needs {case.kept} left"]
    lines = {
        "": [f"{name:21} {len(done.replaced):8} {len(done.left):5}"],
        ", compiled": [f"{'    compiled':36}"],
    }
    for dtype in WIDER:
        *tables, breaks, own_breaks = compared(case, theirs, ours, dtype)
        for way, rows in zip(lines, tables, strict=True):
            for tensor, difference, bound in rows:
                lines[way].append(f"{difference:.1e} / {bound:.1e}")
                if difference > bound:
                    wrong.append(f"{dtype}{way}: {tensor} is too far")
        if breaks > own_breaks:
            wrong.append(f"{dtype}: {breaks - own_breaks} new breaks of the graph")
    for cells in lines.values():
        print("  ".join(cells))
    print(f"    breaks of the graph: {breaks}, and {own_breaks} with its own norms")
    for norms in (done.replaced, done.left):
        for kind, count in Counter(norms.values()).items():
            print(f"    {count} x {kind}")
    for reason in wrong:
        print(f"    WRONG: {reason}")
    return not wrong


def main() -> int:
    """0 where every model is as expected; the versions first."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "models", nargs="*", help=f"some of {', '.join(MODELS)} (default: all)"
    )
    parser.add_argument(
        "--here", action="store_true", help="in the Python that runs this file"
    )
    arguments = parser.parse_args()
    if not arguments.here:
        torch = f"torch=={importlib.metadata.version('torch').partition('+')[0]}"
        python = environment(
            ROOT / "_build/models", [torch, *LIBRARIES], lent_first=True
        )
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        done = run(
            python, __file__, "--here", *arguments.models, check=False, **offline
        )
        print(done.stdout + (done.stderr[-8000:] if done.returncode else ""))
        return done.returncode
    import_torchvision()
    print(
        ", ".join(
            f"{name} {importlib.metadata.version(name)}"
            for name in ("torch", *LIBRARIES)
        )
    )
    compared_tensors = ("logits", "gradients")
    columns = [f"{dtype} {name}" for dtype in WIDER for name in compared_tensors]
    print(
        f"{'model':21} replaced   left  "
        + "  ".join(f"{column:17}" for column in columns)
    )
    return 0 if all([tried(name) for name in arguments.models or MODELS]) else 1


if __name__ == "__main__":
    sys.exit(main())
