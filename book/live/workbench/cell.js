// The live cell: a field of text that Python answers, in a worker of this site. One for all pages: loading, stopping, a
// limit of time, the keyboard, what is announced, the marked lines, and the reader's text, which this browser keeps.
// Nothing of it is loaded before the reader asks.
window.normgradCell = (() => {
  "use strict";
  const folder = new URL(".", document.currentScript.src).href;
  const here = () => window.normgradWorkbench ?? {};
  // The archives that only some pages need; a page adds its own.
  const RARE = ["verify.zip"], archives = new Set();
  function bytes() {
    const loaded = Object.entries(here().bytes ?? {}).filter(([name]) => !RARE.includes(name) || archives.has(name));
    return loaded.reduce((sum, [, size]) => sum + size, 0);
  }
  const megabytes = (count) => `${Math.round(count / 1e6)} MB`;

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
    const missing = here().missing ?? "its files are not on this site";
    return missing && `it is not on this site (when it was built, ${missing})`;
  }

  // One worker for the page; each question waits for its own answer.
  let engine;

  function python() {
    if (engine) return engine;
    const worker = new Worker(`${folder}worker.mjs?${[...archives].map((name) => `archive=${name}`).join("&")}`, {type: "module"});
    const waiting = new Map(), made = {loaded: 0, progress: () => {}};
    made.ready = new Promise((resolve, reject) => {
      made.fail = (error) => {
        engine = undefined;
        worker.terminate();
        reject(error);
        for (const one of waiting.values()) one.reject(error);
      };
      worker.onerror = () => made.fail(new Error("The worker could not be loaded."));
      worker.onmessage = ({data}) => {
        if (data.ready) return resolve();
        if ("loaded" in data) return made.progress(made.loaded = data.loaded);
        if (data.id === undefined || data.broken) return made.fail(new Error(data.failed));
        const {resolve: answer, reject: refuse} = waiting.get(data.id);
        waiting.delete(data.id);
        if ("failed" in data) refuse(new Error(data.failed));
        else answer(data.answer);
      };
    });
    made.ready.catch(() => {});
    let asked = 0;
    made.ask = (what, ...given) => new Promise((resolve, reject) => {
      waiting.set(++asked, {resolve, reject});
      worker.postMessage({id: asked, ask: what, given});
    });
    return engine = made;
  }

  // Start Python before anybody asks, and give it its first work.
  function ready(job) {
    const asked = python();
    asked.ready.then(() => job(asked.ask)).catch(() => {});
  }

  // What this browser keeps; some keep nothing.
  function kept(key, value) {
    try {
      if (value === undefined) return localStorage.getItem(key);
      if (value === null) localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch {}
    return null;
  }

  // A cell: its parts, which a page puts where it likes, and what can be done with it.
  //   name: what is in the field, for those who hear the page; action: the word on the button; words: what is said meanwhile
  //   work(ask): asks Python and shows the answer; what it returns is announced
  //   seconds: after how many it is stopped
  //   keep: under which name this browser keeps the text; start: the text before the reader has changed it; over: what
//   else to do where a reader starts over
  function make({name, action, words, work, seconds = 60, keep, start = "", over, rows = 16}) {
    const run = element("button", {type: "button"}, action);
    const stop = element("button", {type: "button", disabled: ""}, "stop");
    const again = element("button", {type: "button"}, "start over");
    const progress = element("progress", {hidden: "", "aria-label": "loading Python"});
    const status = element("span", {role: "status"});
    const bar = element("p", {class: "workbench-bar"}, run, stop, ...(keep ? [again] : []), progress, status);
    const numbers = element("div", {class: "cell-lines", "aria-hidden": "true"});
    const field = element("textarea", {rows, wrap: "off", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": name});
    const box = element("div", {class: "cell-text"}, numbers, field);
    const cell = {run, buttons: [run], bar, status, field, box, busy: false, changed() {}};
    let marked = new Set(), count = 0;

    function number() {
      const lines = field.value.split("\n").length;
      if (lines === count && !cell.stale) return;
      count = lines;
      cell.stale = false;
      const parts = [];
      for (let line = 1; line <= lines; line++) {
        if (!marked.has(line)) parts.push(`${line}\n`);
        else parts.push(element("b", {}, `\u25b8${line}`), "\n");
      }
      numbers.replaceChildren(...parts, "\n");
      box.style.setProperty("--digits", String(lines).length);
      numbers.scrollTop = field.scrollTop;
    }

    cell.mark = (lines) => {
      cell.stale = marked.size > 0 || lines.length > 0;
      marked = new Set(lines);
      number();
    };
    // Put the cursor on a line of the text.
    cell.show = (line) => {
      const lines = field.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1);
      field.focus();
      field.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
      field.scrollTop = (line - 4) * parseFloat(getComputedStyle(field).lineHeight);
      field.scrollLeft = 0;
    };
    cell.set = (text) => {
      field.value = text;
      edited();
    };

    function edited() {
      cell.mark([]);
      number();
      if (keep) kept(keep, field.value === start ? null : field.value);
      cell.changed();
    }

    // Do some work with Python, which is loaded first; one at a time.
    cell.ask = async (job, meanwhile = words) => {
      if (cell.busy) return;
      const rest = (resting) => {
        cell.busy = !resting;
        stop.disabled = resting;
        for (const button of cell.buttons) button.disabled = !resting;
      };
      rest(false);
      let timer;
      try {
        const asked = python();
        if (!asked.started) {
          status.textContent = `loading Python, SymPy and the package: ${megabytes(bytes())}, once`;
          progress.hidden = false;
          progress.max = bytes();
          asked.progress = (loaded) => { progress.value = loaded; };
          await asked.ready;
          asked.started = true;
        }
        progress.hidden = true;
        status.textContent = meanwhile;
        const from = performance.now();
        timer = setTimeout(() => asked.fail(new Error(`No answer in ${seconds} seconds: stopped.`)), 1000 * seconds);
        const said = await job(asked.ask);
        const time = `${((performance.now() - from) / 1000).toFixed(1)} s`;
        status.replaceChildren(...(said ? [element("span", {class: "cell-said"}, said), " "] : []), time);
      } catch (error) {
        status.textContent = error.message;
      }
      clearTimeout(timer);
      progress.hidden = true;
      rest(true);
    };
    cell.start = () => cell.ask(work);

    run.addEventListener("click", cell.start);
    stop.addEventListener("click", () => engine?.fail(new Error("Stopped.")));
    again.addEventListener("click", () => {
      cell.set(start);
      over?.();
      status.textContent = "as it was at first";
    });
    field.addEventListener("input", edited);
    field.addEventListener("scroll", () => { numbers.scrollTop = field.scrollTop; });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      cell.start();
    });
    status.textContent = `\u201c${action}\u201d loads Python, SymPy and the package: ${megabytes(bytes())}, once`;
    field.value = (keep && kept(keep)) ?? start;
    number();
    return cell;
  }

  return {archives, element, folder, kept, make, obstacle, ready};
})();
