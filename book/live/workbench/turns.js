// The cells of a page that a reader writes in. What stands before them on the page is known to Python; hints come one
// after another. The page as it was built stays below, for paper, and where Python cannot run.
(() => {
  "use strict";
  const {archives, element, folder, make, obstacle, ready} = window.normgradCell;
  const PAGE = location.pathname.split("/").pop().replace(/\.html$/, "");
  const HINTS = ["", "", "where?", "which mistake?", "by how much?", "an answer"];
  // Those who pay for what they load, or read on a phone, press a button first.
  const SPARING = navigator.connection?.saveData || matchMedia("(pointer: coarse), (max-width: 600px)").matches;

  // Markdown of one paragraph: bold letters, and formulas between dollars.
  function paragraph(kind, text) {
    const made = element("p", {class: `turn-${kind}`});
    text.split(/(\*\*|\$[^$]*\$)/).forEach((part) => {
      if (part === "**") return;
      if (part.startsWith("$")) made.append(element("span", {class: "math"}, `\\(${part.slice(1, -1)}\\)`));
      else made.append(part);
    });
    return made;
  }

  function show(found, {kind, latex, words}) {
    const lines = words.map((text) => (text.includes("\n") || kind === "error" ? element("pre", {tabindex: 0}, text) : paragraph(kind, text)));
    const formula = latex ? [element("div", {class: "math"}, `\\[\\begin{gathered}${latex}\\end{gathered}\\]`)] : [];
    found.replaceChildren(...formula, ...lines);
    found.className = `turn-found turn-${kind}`;
    window.normgradTypeset?.(found);
    const spoken = words.join(" ").replace(/\$([^$]*)\$/g, (_, text) => (text.includes("\\") ? "a formula" : text));
    return spoken.replace(/\*\*/g, "");
  }

  // What `normgrad.verify` says of a function.
  function verdict({error, line, verdict: said}) {
    if (error) return {kind: "error", latex: "", words: [(line ? `line ${line}: ` : "") + error]};
    const kind = said.kind.startsWith("proved") ? "proved" : said.kind === "not read" ? "shown" : "refuted";
    const words = [`**${said.kind}**${said.claim ? `: ${said.claim}` : ""}`];
    if (said.why) words.push((said.line ? `line ${said.line}: ` : "") + said.why);
    if (said.counterexample) words.push(said.counterexample);
    if (said.latex) words.push(`the program minus the definition: $${said.latex}$`);
    return {kind, latex: "", words};
  }

  function begin(container, {place, text, read, turn}, prepare) {
    const input = container.querySelector(".cell_input");
    let after = container.nextElementSibling;
    while (after?.matches("p")) after = after.nextElementSibling;
    const answer = turn && after?.matches("details") ? after : null;
    const found = element("div", {class: "turn-found"});
    const hint = element("button", {type: "button", disabled: ""}, "hint");
    const outputs = [...container.querySelectorAll(":scope > .cell_output")];
    let level = 0;

    const cell = make({
      name: turn ? "your turn, in Python" : "a claim, in Python", action: turn ? "check" : "run", words: "checking",
      keep: `normgrad ${PAGE} ${place}`, start: text, seconds: 120, rows: text.split("\n").length,
      over() {
        found.replaceChildren();
        for (const output of outputs) output.hidden = false;
      },
      work: async (ask) => {
        hint.disabled = true;
        await prepare(ask);
        for (const output of outputs) output.hidden = true;
        const said = JSON.parse(read
          ? await ask("turns.read", cell.field.value, JSON.stringify(read))
          : await ask("turns.check", place, cell.field.value, level));
        const shown = read ? verdict(said) : said;
        hint.disabled = !shown.more;
        if (shown.more) hint.textContent = `hint: ${HINTS[Math.max(level, 2) + 1]}`;
        if (level > 4 && answer) answer.open = true;
        return show(found, shown);
      },
    });
    cell.changed = () => {
      level = 0;
      hint.disabled = true;
    };
    hint.addEventListener("click", () => {
      level = Math.max(level, 2) + 1;
      cell.start();
    });
    if (turn && !read) cell.run.after(hint);
    const box = element("div", {class: "turn-box live"}, cell.box, cell.bar);
    if (read) box.append(element("p", {class: "live-words"}, "Here the function is read, and proved or refuted; to run it, download the notebook."));
    box.append(found);
    input.classList.add("turn-given");
    input.after(box);
  }

  async function start() {
    if (obstacle()) return;
    const page = await (await fetch(`${folder}pages/${PAGE}.json`)).json();
    if (page.verify) archives.add("verify.zip");
    let begun;
    const places = JSON.stringify(page.cells.filter(({read}) => !read).map(({place}) => place));
    const prepare = (ask) => {
      if (begun?.ask !== ask) begun = {ask, done: ask("turns.begin", JSON.stringify(page.before), places)};
      return begun.done;
    };
    const containers = [...document.querySelectorAll(".live-cell")];
    page.cells.forEach((cell, number) => begin(containers[number], cell, prepare));
    if (!SPARING) ready(prepare);
  }

  start();
})();
