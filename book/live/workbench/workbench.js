// The workbench: a cell of claims, which a worker with Python proves; it starts with the first click.
(() => {
  "use strict";
  const folder = new URL(".", document.currentScript.src).href;

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // Why Python cannot run here; nothing where it can.
  function obstacle() {
    if (location.protocol === "file:") return "this page was opened from a disk, and browsers let Python start from a server alone";
    if (typeof WebAssembly !== "object") return "this browser has no WebAssembly";
    if (typeof DecompressionStream !== "function") return "this browser is too old for it";
    const missing = window.normgradWorkbench?.missing ?? "its files are not on this site";
    return missing && `it is not on this site (when it was built, ${missing})`;
  }

  // One worker for the page; each question waits for its own answer.
  function python() {
    const worker = new Worker(`${folder}worker.mjs`, {type: "module"});
    const waiting = new Map();
    const ready = new Promise((resolve, reject) => {
      worker.onerror = () => reject(new Error("the worker could not be loaded"));
      worker.onmessage = ({data}) => {
        if (data.ready) return resolve();
        if (data.id === undefined) return reject(new Error(data.failed));
        const {resolve: answer, reject: refuse} = waiting.get(data.id);
        waiting.delete(data.id);
        if ("failed" in data) refuse(new Error(data.failed));
        else answer(data.answer);
      };
    });
    let asked = 0;
    const ask = (what, text) => new Promise((resolve, reject) => {
      waiting.set(++asked, {resolve, reject});
      worker.postMessage({id: asked, ask: what, text});
    });
    return {ready, ask, stop: () => worker.terminate()};
  }

  const WORDS = {proved: "Proved", refuted: "Refuted", undecided: "Undecided", shown: "", error: "Error"};

  function shown({kind, text, latex}) {
    const made = element("div", {class: `workbench-${kind}`});
    if (WORDS[kind]) made.append(element("strong", {}, WORDS[kind]));
    if (latex) made.append(element("div", {class: "math"}, `\\[${latex}\\]`));
    if (!text) return made;
    const words = element("pre", {tabindex: 0}, text);
    made.append(kind === "proved" ? element("details", {}, element("summary", {}, "certificate"), words) : words);
    return made;
  }

  function begin(box) {
    box.classList.add("live");
    const wanted = new URLSearchParams(location.search).get("label") ?? box.querySelector("code").textContent;
    const why = obstacle();
    if (why) {
      const words = `Python cannot run here: ${why}. What the build proved stands at each equation.`;
      box.append(element("p", {class: "live-words"}, words));
      return;
    }
    const label = element("input", {type: "text", id: "workbench-label", value: wanted, size: 24, spellcheck: "false"});
    const load = element("button", {type: "button"}, "load");
    const cell = element("textarea", {id: "workbench-cell", rows: 16, spellcheck: "false", "aria-label": "claims, in Python"});
    const run = element("button", {type: "button"}, "prove");
    const stop = element("button", {type: "button", disabled: ""}, "stop");
    const status = element("span", {role: "status"});
    const found = element("div", {class: "workbench-found", "aria-live": "polite"});
    // MathJax sets a formula when it comes into view, and until then must not lose it: what was found stays, unseen.
    const before = element("div", {hidden: ""});
    let engine;

    async function busy(work, words) {
      load.disabled = run.disabled = true;
      stop.disabled = false;
      const from = performance.now();
      try {
        if (!engine) {
          status.textContent = "loading Python, SymPy and the package: 9 MB, once";
          engine = python();
          await engine.ready;
        }
        status.textContent = words;
        await work(engine);
        status.textContent = `${((performance.now() - from) / 1000).toFixed(1)} s`;
      } catch (error) {
        status.textContent = error.message;
      }
      load.disabled = run.disabled = false;
      stop.disabled = true;
    }

    function open(text) {
      cell.value = text;
      cell.rows = Math.min(30, Math.max(8, text.split("\n").length));
      before.append(...found.children);
    }

    // The cell of an equation was written when the site was built; a label that none has is refused by Python.
    const written = (name) => window.normgradWorkbench.labels.includes(name)
      ? fetch(`${folder}cells/${name}.py`).then((response) => response.text()) : Promise.resolve("");
    const fetchText = async () => {
      const text = await written(label.value.trim());
      if (text) return open(text);
      return busy(async ({ask}) => open(await ask("statement", label.value.trim())), "writing the equation as a cell");
    };

    const judge = () => busy(async ({ask}) => {
      if (!cell.value.trim()) cell.value = await ask("statement", label.value.trim());
      const answer = await ask("judge", cell.value);
      before.append(...found.children);
      found.append(...answer.map(shown));
      window.normgradTypeset?.(found);
    }, "proving");

    load.addEventListener("click", fetchText);
    run.addEventListener("click", judge);
    label.addEventListener("keydown", (event) => event.key === "Enter" && fetchText());
    stop.addEventListener("click", () => {
      engine?.stop();
      engine = undefined;
      load.disabled = run.disabled = false;
      stop.disabled = true;
      status.textContent = "stopped";
    });
    box.replaceChildren(
      element("p", {class: "workbench-bar"}, element("label", {for: "workbench-label"}, "equation"), label, load, run, stop, status),
      cell,
      found,
      before,
    );
    status.textContent = "“prove” loads Python, SymPy and the package: 9 MB, once";
    written(wanted).then((text) => cell.value || open(text));
  }

  document.querySelectorAll(".workbench").forEach(begin);
})();
