// The button below a numbered equation: its LaTeX and its code to copy, its proof, and where else it stands. What it shows
// is written by the build, one script a page, which comes with the first click; so this works from a folder, too.
(() => {
  const known = {}, coming = {};
  window.normgradEquations = (found) => Object.assign(known, found);

  function load(page) {
    coming[page] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${document.documentElement.dataset.content_root}_static/equations/${page}.js`;
      Object.assign(script, {onload: resolve, onerror: reject});
      document.head.append(script);
    });
    return coming[page];
  }

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const hidden = element("textarea", {style: "position: fixed; opacity: 0"});
    hidden.value = text;
    document.body.append(hidden);
    hidden.select();
    document.execCommand("copy");
    hidden.remove();
  }

  function copies(name, text, status) {
    const button = element("button", {type: "button"}, `Copy ${name}`);
    button.onclick = async () => {
      await copy(text);
      status.textContent = `${name} copied`;
    };
    return button;
  }

  function proof(shown) {
    const rows = shown.proof.map(([rule, latex]) => element("div", {class: "proof-step"},
      element("span", {}, rule), element("div", {class: "math"}, `\\[${latex}\\]`)));
    return element("div", {class: "equation-proof", tabindex: "-1"}, ...rows);
  }

  function open(button, shown) {
    const status = element("span", {role: "status"});
    const panel = element("div", {class: "equation-panel", role: "group", "aria-label": button.getAttribute("aria-label")});
    for (const [name, key] of [["LaTeX", "latex"], ["derivation", "derivation"], ["NumPy", "numpy"],
      ["torch", "torch"]]) {
      if (shown[key]) panel.append(copies(name, shown[key], status));
    }
    if (shown.proof?.length) {
      const see = element("button", {type: "button", "aria-expanded": "false"}, "See the proof");
      see.onclick = () => {
        const there = panel.querySelector(".equation-proof");
        see.setAttribute("aria-expanded", String(!there));
        if (there) return there.remove();
        const made = proof(shown);
        panel.append(made);
        window.normgradTypeset?.(made);
      };
      panel.append(see);
    }
    for (const [text, address] of shown.links) {
      panel.append(element("a", {href: document.documentElement.dataset.content_root + address}, text));
    }
    panel.append(status);
    button.closest("p").after(panel);
    button.setAttribute("aria-expanded", "true");
  }

  function close(button) {
    const panel = button.closest("p").nextElementSibling;
    if (panel?.matches(".equation-panel")) panel.remove();
    button.setAttribute("aria-expanded", "false");
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button.equation-menu");
    if (!button) return;
    if (button.getAttribute("aria-expanded") === "true") return close(button);
    await load(button.dataset.page);
    open(button, known[button.dataset.label]);
  });

  document.addEventListener("keydown", (event) => {
    const panel = event.key === "Escape" && event.target.closest?.(".equation-panel");
    if (!panel) return;
    const button = panel.previousElementSibling.querySelector("button.equation-menu");
    close(button);
    button.focus();
  });
})();
