// The workbench: a cell of claims, which a worker with Python proves; it starts with the first click.
(() => {
  "use strict";
  const {element, folder, make, obstacle} = window.normgradCell;

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
    const found = element("div", {class: "workbench-found", "aria-live": "polite"});
    // MathJax sets a formula when it comes into view, and until then must not lose it: what was found stays, unseen.
    const before = element("div", {hidden: ""});

    const cell = make({name: "claims, in Python", action: "prove", words: "proving", seconds: 300, work: async (ask) => {
      if (!cell.field.value.trim()) cell.set(await ask("workbench.statement", label.value.trim()));
      const answer = JSON.parse(await ask("workbench.judge", cell.field.value));
      before.append(...found.children);
      found.append(...answer.map(shown));
      cell.mark(answer.map(({kind, text}) => kind === "error" && Number(/^line (\d+)/.exec(text)?.[1])).filter(Boolean));
      window.normgradTypeset?.(found);
    }});
    cell.buttons.unshift(load);

    function open(text) {
      cell.set(text);
      cell.field.rows = Math.min(30, Math.max(8, text.split("\n").length));
      before.append(...found.children);
    }

    // The cell of an equation was written when the site was built; a label that none has is refused by Python.
    const written = (name) => window.normgradWorkbench.labels.includes(name)
      ? fetch(`${folder}cells/${name}.py`).then((response) => response.text()) : Promise.resolve("");
    const fetchText = async () => {
      const text = await written(label.value.trim());
      if (text) return open(text);
      return cell.ask(async (ask) => open(await ask("workbench.statement", label.value.trim())), "writing the equation as a cell");
    };

    load.addEventListener("click", fetchText);
    label.addEventListener("keydown", (event) => event.key === "Enter" && fetchText());
    cell.bar.prepend(element("label", {for: "workbench-label"}, "equation"), label, load);
    box.replaceChildren(cell.bar, cell.box, found, before);
    written(wanted).then((text) => cell.field.value || open(text));
  }

  document.querySelectorAll(".workbench").forEach(begin);
})();
