"""Equations as objects: what the button below each of them offers, and that the search finds them first."""

import json
from urllib.parse import urldefrag

import pytest
from built_site import SITE, equations
from test_site import parsed

LN_DX = "book/layer_norm_graph.html"
# What readers type, and where the first hit has to lead: a label, or a page and its anchor.
SEARCHES = {
    "rstd": "ln-forward",
    "dx": "ln-dx",
    "ln-dx": "ln-dx",
    "dx of LayerNorm": "ln-dx",
    "the gradient of layer normalization": "ln-dx",
    "layer_norm": "ln-y",
    "rms norm backward": "rms-dx",
    "c_1": "ln-names",
    "wdy": "ln-names",
    "kappa": "eps-kappa",
    "Bessel": "layer_norm.html#your-turn-the-variance-with-n-1",
    "unbiased": "layer_norm.html#your-turn-the-variance-with-n-1",
    "Flux": "eps_practice.html#who-does-what",
    "x_hat": "ln-forward",
    "rms-dx": "rms-dx",
    "native_layer_norm_backward": "ln-dx",
    "_layer_norm_bwd_dx_fused": "ln-dx",
    "fused_add_rms_norm": "res-forward",
    "grad_weight": "ln-dw",
    "Welford": "fp-welford",
    "hessian": "twice-dx",
    "weight gradient": "ln-dw",
    "gradcheck float32": "testing_gradients.html#why-float32-fails",
    "eps inside sqrt": "eps.html#",
    "Triton layer norm": "write_kernel.html#",
    "1+w gemma": "relatives.html#a-weight-that-begins-at-0",
    "layernorm dx formula": "ln-dx",
    "dgamma": "ln-dw",
    "huggingface": "your_model.html#",
    "how to install": "your_model.html#",
    "rmsnorm weight gradient": "rms-dw",
    "triton layer norm backward": "write_kernel_backward.html#",
    "race condition dw": "write_kernel_backward.html#step-6-one-program-a-row-and-a-race",
    "bf16 gradients": "your_model.html#why-rmsnorm-s-bfloat16-gradient-differs-from-your-model-s",
    "how do I prove my own kernel": "field_kernels.html#",
    "finite differences": "testing_gradients.html#",
    "batch norm": "batch-dx",
    "double backward": "twice-dx",
    "does torch.compile work": "your_model.html#",
    "fused residual add": "residual.html#",
    "homework 2": "hw2.html#",
    "variance negative": "floating_point.html#the-variance-in-two-passes",
    "homework submit grade": "homework.html#",
    "LLaMA": "your_model.html#",
    "residual fused triton": "write_kernel_residual.html#",
    "layer norm gradient derivation": "ln-dx",
    "why divide by N": "eps_practice.html#who-divides-by-what",
    "bf16 gradient": "your_model.html#why-rmsnorm-s-bfloat16-gradient-differs-from-your-model-s",
    "fused add norm": "residual.html#",
    "gradcheck fails": "testing_gradients.html#why-float32-fails",
    "torch compile": "your_model.html#",
    "vmap": "api.html#what-works-with-what",
    "citation": "intro.html#run-it",
    "how to cite": "intro.html#run-it",
    "license": "intro.html#run-it",
    "numerical stability": "floating_point.html#",
    "catastrophic cancellation": "floating_point.html#the-variance-in-two-passes",
    "cuda kernel": "write_kernel.html#",
    "second derivative": "twice-dx",
    "gradient penalty": "higher_derivatives.html#",
    "chain rule": "notation.html#local-and-total-derivatives",
    "solutions": "homework.html#",
    "gpu times": "bytes.html#",
    "batchnorm backward": "batch-dx",
    "masked load": "write_kernel.html#programs-pointers-loads-and-stores",
}


def shown(page):
    """What the build wrote for the buttons of a page."""
    text = (SITE / "_static/equations" / page.replace(".html", ".js")).read_text(
        encoding="utf8"
    )
    return json.loads(text.removeprefix("normgradEquations(").removesuffix(");\n"))


@pytest.fixture(scope="module")
def numbers():
    return {entry["label"]: entry["number"] for entry in equations()}


def test_the_button_is_used_by_keyboard_and_copies(read):
    from playwright.sync_api import expect

    page = read().open(LN_DX)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator('button.equation-menu[data-label="ln-dx"]')
    button.focus()
    page.keyboard.press("Enter")
    panel = page.locator(".equation-panel")
    written = shown(LN_DX)["ln-dx"]
    for name, key in (("LaTeX", "latex"), ("NumPy", "numpy"), ("torch", "torch")):
        panel.get_by_role("button", name=f"Copy {name}").click()
        expect(panel.get_by_role("status")).to_have_text(f"{name} copied")
        assert page.evaluate("navigator.clipboard.readText()") == written[key]
    assert "tag" not in written["latex"] and "rstd" in written["latex"]
    panel.get_by_role("button", name="See the proof").press("Enter")
    page.wait_for_selector(".equation-proof mjx-math")
    assert "R2 differentiate" in panel.inner_text()
    assert page.locator(".equation-panel mjx-merror").count() == 0
    page.keyboard.press("Escape")
    assert (
        panel.count() == 0
        and page.evaluate("document.activeElement.dataset.label") == "ln-dx"
    )


def test_every_numbered_equation_has_its_button_and_every_proof_is_legible(
    read, numbers
):
    files = [
        path.relative_to(SITE / "_static/equations")
        for path in (SITE / "_static/equations").rglob("*.js")
    ]
    written = {
        label: equation
        for file in files
        for label, equation in shown(str(file)).items()
    }
    assert written.keys() == numbers.keys()
    displays = sorted(
        {
            latex
            for equation in written.values()
            for _, latex in equation.get("proof", ())
        },
        key=len,
    )
    page = read().open(LN_DX)
    # a tenth of all lines, of every length
    errors = page.evaluate(
        "all => all.filter(one => MathJax.tex2chtml(one).querySelector('mjx-merror'))",
        displays[::10],
    )
    assert errors == []


def test_the_search_finds_the_right_object_first(read, numbers):
    page = read().open("search.html")
    searches = SEARCHES | {
        numbers["ln-dx"]: "ln-dx",
        f"({numbers['eps-kappa']})": "eps-kappa",
    }
    wrong = {}
    for query, target in searches.items():
        page.goto(page.url.partition("?")[0] + "?q=" + query)
        first = page.locator(".search-objects a").first.get_attribute("href")
        end = target.removesuffix("#") if "#" in target else f"#equation-{target}"
        if not first.endswith(end):
            wrong[query] = first
        # Sphinx wants all the words on one page
        message = page.locator("#search-results", has_text="did not match")
        if message.locator("p:visible").count():
            wrong[query] = "a match below the message that there is none"
    assert wrong == {}


def test_what_the_search_leads_to_is_there():
    text = (SITE / "_static/search_objects.js").read_text(encoding="utf8")
    objects = json.loads(
        text.removeprefix("window.normgradObjects = ").removesuffix(";\n")
    )
    keys = set()
    for place in objects["places"]:
        keys.add(place.get("label", place["address"]))
        target, anchor = urldefrag(place["address"])
        assert not anchor or anchor in parsed(SITE / target).ids, place
    assert keys.issuperset(objects["names"].values())
