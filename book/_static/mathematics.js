// Formulas on narrow screens: a display that is wider than its place is broken into lines, before a relation or a sign.
// What is still too wide scrolls, and book.css fades its end. Runs before MathJax, whose settings it completes.
(() => {
  if (!window.MathJax) return;

  const RELATIONS = new Set(["=", "<", ">", "\\le", "\\ge", "\\ne", "\\approx", "\\to"]);
  const SIGNS = new Set(["+", "-", "\\pm", "\\times", "\\cdot"]);
  const SPACES = new Set(["\\quad", "\\qquad", "\\,", "\\;", "\\:", "\\!"]);
  const FACTORS = new Set(["\\frac", "\\tfrac", "\\sum", "\\sqrt", "\\left", "("]);
  const TOKEN = new RegExp(
    [/\\\\(?:\[[^\]]*\])?/, /\\(?:left|right)\s*(?:\\[a-zA-Z]+|\\.|.)/, /\\(?:begin|end)\{\w+\}/, /\\text\{[^{}]*\}/]
      .concat([/\\[a-zA-Z]+/, /\\./, /\s+/, /./]).map((part) => part.source).join("|"), "gs");
  // How deep in brackets a line may end, and whether it may end between two factors.
  const LEVELS = [{}, {signs: 0}, {signs: 1}, {signs: 1, factors: 0}, {signs: 2, factors: 1}, {signs: 3, factors: 2}];

  const opens = (token) => /^(?:\{|\(|\[|\\\{|\\left|\\begin)/.test(token);
  const closes = (token) => /^(?:\}|\)|\]|\\\}|\\right|\\end)/.test(token);
  const soft = (token) => token === "(" || token === "[" || token.startsWith("\\left");

  // The rows of a display, each as its tokens, without the marks of alignment.
  function rowsOf(tex) {
    const body = tex.trim().match(/^\\begin\{(aligned|split)\}([\s\S]*)\\end\{\1\}$/);
    if (body) return rowsOf(body[2]);
    const rows = [[]];
    let depth = 0;
    for (const token of tex.match(TOKEN)) {
      depth += opens(token) - closes(token);
      if (depth === 0 && token.startsWith("\\\\")) rows.push([]);
      else if (depth > 0 || token !== "&") rows[rows.length - 1].push(token);
    }
    return rows.map((row) => row.join("").trim()).filter(Boolean);
  }

  // A row cut wherever the level allows it: [{text, indent, gap}], in em: how far a line is indented that begins with it, and
  // the space before it in a line that does not.
  function pieces(row, level) {
    const found = [{text: "", indent: 0}], stack = [];
    const last = () => found[found.length - 1];
    const begin = (indent) => last().text.trim() ? found.push({text: "", indent}) : (last().indent = indent);
    let before = "start";
    for (const token of row.match(TOKEN)) {
      if (closes(token)) stack.pop();
      const reachable = (deep) => deep !== undefined && stack.length <= deep && stack.every(soft);
      const binary = before === "term" || before === "factor";
      let written = token;
      if (stack.length === 0 && /^\\q?quad$/.test(token)) {
        begin(2);
        last().gap = 1;
        written = "";
      } else if (stack.length === 0 && RELATIONS.has(token)) begin(1);
      else if (SIGNS.has(token) && binary && reachable(level.signs)) begin(2 + stack.length);
      else if (FACTORS.has(token.match(/^(?:\\[a-zA-Z]+?(?=\W|$)|.)/s)?.[0]) && before === "factor"
               && reachable(level.factors)) begin(2 + stack.length);
      if (/^\\left/.test(token) && reachable((level.signs ?? 0) - 1)) written = token.replace("\\left", "\\Bigl");
      if (/^\\right/.test(token) && reachable((level.signs ?? 0) - 1)) written = token.replace("\\right", "\\Bigr");
      last().text += written;
      if (opens(token)) stack.push(token);
      if (/\S/.test(token) && !SPACES.has(token)) {
        const nothing = RELATIONS.has(token) || SIGNS.has(token) || opens(token) || /^[,^_&]|^\\[bB]ig/.test(token);
        const product = closes(token) && !/^\\end/.test(token) || /^[A-Za-z0-9]$/.test(token);
        before = nothing ? "operator" : product ? "factor" : "term";
      }
    }
    // {} before a sign gives it the space of one between two terms
    const filled = found.filter((piece) => piece.text.trim());
    return filled.map(({text, ...more}, place) => ({text: place ? `{}${text}` : text, ...more}));
  }

  // A reason in words, beside or below its line: cut between its words.
  function words(piece) {
    const inside = piece.text.trim().match(/^(?:\{\})?\{\\small\s*([\s\S]*)\}$/);
    if (!inside) return [piece];
    const parts = inside[1].match(TOKEN).flatMap((token) => {
      const text = token.match(/^\\text\{([^{}]*)\}$/);
      return text ? text[1].split(/(?<= )/).map((word) => `\\text{${word}}`) : [token];
    });
    const found = [""];
    let depth = 0;
    for (const part of parts) {
      if (depth === 0 && part.startsWith("\\text")) found.push("");
      found[found.length - 1] += part;
      depth += opens(part) - closes(part);
    }
    return found.filter((text) => text.trim()).map((text) => ({text: `{\\small ${text}}`, indent: 3}));
  }

  // The lines of a row within a width, in em: pieces side by side as long as they fit, and how much the longest exceeds.
  function lines(row, room, widths) {
    let best = null;
    for (const level of LEVELS) {
      const cut = pieces(row, level), whole = widths(cut.map((piece) => piece.text));
      const parts = cut.flatMap((piece, place) => whole[place] > room - 2 ? words(piece) : [piece]);
      const own = widths(parts.map((piece) => piece.text)), found = [];
      parts.forEach((piece, place) => {
        const line = found[found.length - 1];
        const gap = piece.gap ?? 0.1;
        if (line && line.width + gap + own[place] <= room) {
          line.text += piece.gap ? ` \\quad ${piece.text}` : ` ${piece.text}`;
          line.width += gap + own[place];
        } else {
          const indent = Math.max(0, Math.min(piece.indent, room - own[place]));
          found.push({text: `\\hspace{${indent.toFixed(2)}em} ${piece.text}`, width: indent + own[place]});
        }
      });
      const excess = Math.max(0, ...found.map((line) => line.width - room));
      if (!best || excess < best.excess) best = {found, excess};
      if (excess === 0) break;
    }
    return best.found.map((line) => line.text);
  }

  // A function that measures texts of LaTeX in em, within a formula's own place.
  function ruler(place) {
    const hidden = document.createElement("div"), known = new Map(), metrics = MathJax.getMetricsFor(place, true);
    hidden.style.cssText = "position: absolute; visibility: hidden; width: max-content";
    place.append(hidden);
    const widths = (texts) => {
      const fresh = texts.filter((tex) => !known.has(tex));
      const typeset = (tex) => MathJax.tex2chtml(`\\displaystyle ${tex}`, {...metrics, display: false});
      hidden.replaceChildren(...fresh.map(typeset));
      for (const [which, tex] of fresh.entries()) {
        const shown = hidden.children[which];
        const own = parseFloat(getComputedStyle(shown).fontSize);
        known.set(tex, shown.querySelector("mjx-math").getBoundingClientRect().width / own);
      }
      return texts.map((tex) => known.get(tex));
    };
    return {widths, remove: () => hidden.remove()};
  }

  const widthOf = (box) => box.querySelector("mjx-math")?.getBoundingClientRect().width ?? 0;
  const original = new WeakMap();

  function retypeset(math, doc, tex) {
    math.math = tex;
    math.rerender(doc, MathJax._.core.MathItem.STATE.COMPILED);
  }

  function fit(math, doc, most) {
    const box = math.typesetRoot, place = box.parentElement;
    const room = Math.min(box.clientWidth, most);
    if (!place?.matches("div.math") || widthOf(box) <= room + 0.5) return;
    const size = parseFloat(getComputedStyle(box).fontSize), {widths, remove} = ruler(place);
    const tex = original.get(math) ?? math.math;
    original.set(math, tex);
    const broken = rowsOf(tex).flatMap((row) => lines(row, room / size - 0.3, widths));
    remove();
    retypeset(math, doc, `\\begin{aligned}\n& ${broken.join(" \\\\[4pt]\n& ")}\n\\end{aligned}`);
  }

  // What scrolls is scrolled by keyboard, too, and nothing else stands in the order of the tab key.
  const reachable = (box, scrolls) => scrolls ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
  const column = () => document.querySelector("article") ?? document.documentElement;
  const done = new WeakMap();
  let framed;

  // All formulas that are typeset and not yet fitted at this width; those that were broken for another are whole again.
  // The page says for which width it is done.
  function fitAll(doc, most = Infinity) {
    const frame = Math.min(column().clientWidth, most);
    const waiting = [...doc.math].filter((math) => math.display && !math.lazyTypeset && math.typesetRoot?.isConnected
      && done.get(math) !== frame);
    for (const math of waiting) {
      done.set(math, frame);
      if (original.has(math)) retypeset(math, doc, original.get(math));
    }
    for (const math of waiting) fit(math, doc, most);
    for (const {typesetRoot: box} of waiting) reachable(box, box.scrollWidth > box.clientWidth + 1);
    const fresh = frame === framed ? ":not(.measured)" : "";
    framed = frame;
    const inline = [...document.querySelectorAll(`span.math${fresh} > mjx-container:not(:has(mjx-lazy))`)];
    const wide = inline.map((box) => widthOf(box) > box.parentElement.clientWidth + 0.5);
    inline.forEach(({parentElement: place}, which) => {
      place.classList.add("measured");
      place.classList.toggle("scrolls", wide[which]);
      reachable(place, wide[which]);
    });
    document.documentElement.dataset.fitted = frame;
  }

  // What is not in view is typeset while nothing else is to do: who listens or searches does not scroll first.
  function typesetAhead(doc) {
    const waiting = [...doc.math].filter((math) => math.lazyTypeset && math.lazyMarker);
    if (waiting.length === 0) return;
    if (!doc.lazyIdle) {
      for (const {lazyMarker} of waiting.slice(0, 8)) doc.lazySet.add(lazyMarker.dataset.mjxLazy);
      doc.lazyIdle = true;
      doc.lazyProcessSet();
    }
    setTimeout(typesetAhead, 100, doc);
  }

  // The style of every letter is there from the start: what is measured may have letters that no formula has had yet.
  MathJax.chtml = {adaptiveCSS: false};
  const begun = new Promise((resolve) => {
    MathJax.startup = {
      ready() {
        MathJax.startup.defaultReady();
        const action = {id: "fit", renderDoc: (doc) => fitAll(doc), renderMath: () => {}, convert: false};
        MathJax.startup.document.renderActions.add(action, MathJax._.core.MathItem.STATE.INSERTED + 10);
        MathJax.startup.promise.then(resolve).then(() => typesetAhead(MathJax.startup.document));
      },
    };
  });
  // For formulas that come later: a click may come before MathJax has begun, and before its script is there.
  window.normgradTypeset = (...nodes) => begun.then(() => MathJax.typesetPromise(nodes.filter((node) => node.isConnected)));

  // The window is not all that decides: where a sidebar comes or goes, the article has another width a moment later.
  let waiting, paper = Infinity;
  document.addEventListener("DOMContentLoaded", () => new ResizeObserver(() => {
    const refit = () => MathJax.startup?.document && column().clientWidth !== framed &&
      fitAll(MathJax.startup.document, paper);
    clearTimeout(waiting);
    waiting = setTimeout(refit, 200);
  }).observe(column()));
  // Paper is narrower than most windows: A4 or letter, between their margins.
  window.addEventListener("beforeprint", () => {
    const doc = MathJax.startup?.document;
    doc?.lazyTypesetAll?.();
    if (!doc || document.querySelector(".formula-sheet")) return;
    paper = 640;
    fitAll(doc, paper);
  });
  window.addEventListener("afterprint", () => {
    paper = Infinity;
    if (MathJax.startup?.document) fitAll(MathJax.startup.document);
  });
})();
