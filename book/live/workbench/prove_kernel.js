// The box of the page "Prove a kernel": a text, what of it is checked and against what, and the verdict. The text goes to
// a worker of this page and nowhere else, and is only read there.
(() => {
  "use strict";
  const {archives, element, kept, make, obstacle} = window.normgradCell;
  archives.add("verify.zip");
  const KEEP = "normgrad-prove-kernel", CHOICES = `${KEEP}-choices`;
  const FLAGS = {weight: "weight", bias: "bias", offset: "1 + weight"};
  // {kind: [class, sign, title, what it says]}
  const KINDS = {
    "proved for every M and N": ["proved", "\u2713", "Proved for every M and N",
      "M rows and N columns are symbols here: it holds for all of them, in exact numbers, as the line above says and under what it rests on."],
    "proved if masked lanes hold 0": ["if", "\u2713", "Proved if masked lanes hold 0",
      "A masked load without other= counts as 0 in the proof. Triton leaves open what it gives; with other=0.0 nothing is open."],
    "not read": ["unread", "?", "Not read",
      "Something in the text is not followed, or the question is not decided. This says nothing about the program."],
    "wrong in itself": ["wrong", "\u2717", "Wrong in itself", "It is wrong whatever it is meant to compute."],
    "refuted": ["refuted", "\u2717", "Refuted", "It computes something else than the chosen definition."],
  };

  // A text in the address, packed where the browser can: after # nothing is sent to a server.
  const MOST = 1e6;
  async function through(bytes, stream) {
    let count = 0;
    const limit = new TransformStream({transform(part, next) {
      if ((count += part.byteLength) > MOST) throw new Error("too long");
      next.enqueue(part);
    }});
    return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream).pipeThrough(limit)).arrayBuffer());
  }
  async function packed(state) {
    const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
    const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  }
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  }

  function begin(box) {
    box.classList.add("live");
    const {examples, definitions} = window.normgradKernels;
    const why = obstacle();
    if (why) {
      const words = `Python cannot run here: ${why}. Where the package is installed, normgrad-verify gives the same verdicts.`;
      box.append(element("p", {class: "live-words"}, words));
      return;
    }
    const option = (value, text) => element("option", {value}, text);
    const which = element("select", {id: "prove-which"});
    const against = element("select", {id: "prove-against"}, ...definitions.map(({name, title}) => option(name, title)));
    const flags = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, element("input", {type: "checkbox"})]));
    const ticks = element("span", {class: "prove-flags"},
      ...Object.entries(flags).map(([name, tick]) => element("label", {}, tick, ` ${FLAGS[name]}`)));
    const whichLine = element("span", {hidden: ""}, element("label", {for: "prove-which"}, "check"), " ", which);
    const choices = element("p", {class: "workbench-bar"},
      whichLine, element("label", {for: "prove-against"}, "against"), against, ticks);
    const reference = element("textarea", {rows: 8, wrap: "off", spellcheck: "false", "aria-label": "your function"});
    const second = element("div", {hidden: ""},
      element("p", {}, "The function that defines it, in NumPy or torch: the text is to compute the same, or its gradients."), reference);
    const form = element("div", {class: "prove-form"});
    const found = element("div", {class: "prove-found"});
    const before = element("div", {hidden: ""});
    let fields = {}, about = "", confirmed = false;

    const cell = make({
      name: "the text of a kernel or a function", action: "Check", words: "reading", work: check, keep: KEEP,
      start: examples[0].text, over: () => { choose(examples[0]); show(); }, rows: 22,
    });
    const link = element("button", {type: "button"}, "link");
    cell.run.classList.add("prove-check");
    cell.bar.insertBefore(link, cell.bar.querySelector("progress"));

    // What is chosen beside the text.
    function choose({name = "", definition = "rms", flags: ticked, reference: text = "", fields: filled}) {
      about = String(name);
      which.replaceChildren(...(about ? [option(about, about)] : []));
      whichLine.hidden = true;
      if (definitions.some((one) => one.name === definition)) against.value = definition;
      defined(Array.isArray(ticked) ? ticked : undefined);
      reference.value = String(text);
      fields = Object.fromEntries(Object.entries(filled ?? {}).map(([argument, words]) => [argument, String(words)]));
      confirmed = false;
      form.replaceChildren();
    }
    function chosen() {
      const ticked = Object.keys(flags).filter((name) => flags[name].checked);
      return {name: which.value, definition: against.value, flags: ticked, reference: reference.value, fields};
    }
    function defined(ticked) {
      const usual = definitions.find((one) => one.name === against.value);
      for (const [name, tick] of Object.entries(flags)) tick.checked = ticked ? ticked.includes(name) : Boolean(usual[name]);
      ticks.hidden = usual.weight === undefined;
      second.hidden = against.value !== "reference";
    }
    const keepChoices = () => kept(CHOICES, JSON.stringify(chosen()));

    async function check(ask) {
      const {flags: _, ...question} = chosen();
      const norm = {weight: flags.weight.checked, bias: flags.bias.checked, weight_offset: Number(flags.offset.checked)};
      const asked = {...question, text: cell.field.value, flags: norm, confirmed};
      const answer = JSON.parse(await ask("prove_kernel.answer", JSON.stringify(asked)));
      return show(answer);
    }

    // One line of the text, and the way to it.
    function line(number) {
      const go = element("button", {type: "button", class: "prove-line"}, `line ${number}`);
      go.addEventListener("click", () => cell.show(number));
      const code = cell.field.value.split("\n")[number - 1] ?? "";
      return element("li", {}, go, " ", element("code", {}, code.trim()));
    }

    function details(verdict) {
      const made = [];
      if (verdict.why) made.push(element("p", {class: "prove-why"}, (verdict.line ? `Line ${verdict.line}: ` : "") + verdict.why));
      if (verdict.latex || verdict.difference.length) {
        made.push(element("p", {}, "What it computes minus what is defined:"));
        if (verdict.latex) made.push(element("div", {class: "math notranslate nohighlight"}, `\\[${verdict.latex}\\]`));
        else made.push(element("p", {}, element("code", {}, verdict.difference.join(" + "))));
      }
      if (verdict.table.length) {
        const rows = verdict.table.map(([name, value]) => element("tr", {}, element("th", {scope: "row"}, name), element("td", {}, value)));
        made.push(element("table", {class: "prove-table"}, element("caption", {}, "Numbers for which the two differ"), element("tbody", {}, ...rows)));
      } else if (verdict.counterexample) made.push(element("p", {}, `Where the two differ: ${verdict.counterexample}`));
      return made;
    }

    function told(verdict) {
      const [name, sign, title, meaning] = KINDS[verdict.kind];
      const made = element("section", {class: `prove-verdict prove-${name}`, "aria-label": "verdict"},
        element("p", {class: "prove-kind"}, element("span", {"aria-hidden": "true"}, sign), ` ${title}`));
      if (verdict.claim) made.append(element("p", {class: "prove-claim"}, verdict.claim));
      made.append(element("p", {class: "prove-meaning"}, meaning), ...details(verdict));
      if (verdict.lines.length) {
        made.append(element("ul", {class: "prove-lines", "aria-label": "lines that the verdict names"}, ...verdict.lines.map(line)));
      }
      const outputs = Object.entries(verdict.outputs);
      if (outputs.length > 1) {
        made.append(element("ul", {class: "prove-outputs", "aria-label": "each result"}, ...outputs.map(([output, own]) => {
          const repeated = own.latex === verdict.latex && own.why === verdict.why;
          return element("li", {}, element("strong", {}, `${output}: ${own.kind}`), ...(repeated ? [] : details(own)));
        })));
      }
      const rests = verdict.assumptions.map((words) => element("li", {}, words));
      if (rests.length) made.append(element("details", {}, element("summary", {}, "What this rests on"), element("ul", {}, ...rests)));
      return made;
    }

    // The lines that say what arguments are; of a kernel without a launcher nothing is checked before they are confirmed.
    function ask(lines, needed, kernel) {
      const inputs = lines.map(([name, value], place) => {
        const input = element("input", {type: "text", id: `prove-field-${place}`, value, spellcheck: "false", autocapitalize: "off"});
        input.addEventListener("input", () => { fields[name] = input.value; });
        if (kernel) fields[name] ??= value;
        return element("div", {}, element("label", {for: input.id}, name), input);
      });
      if (!kernel) {
        const hint = "Leave empty what its name says. An argument is a tensor of the field, as x, dy, rstd or rstd[:, None], a size, as N, or a number; returns lists the results, as dx, dw.";
        return element("details", {...(needed && {open: ""})},
          element("summary", {}, "What the arguments are"), element("p", {}, hint), element("div", {class: "prove-fields"}, ...inputs));
      }
      const confirm = element("button", {type: "button"}, "confirm and check");
      confirm.addEventListener("click", () => {
        confirmed = true;
        cell.start();
      });
      const hint = 'T("x") is a tensor that is read, Out("y") one that is stored, each with its stride=; M, N, eps or a number; WHOLE is a block of at least N columns, COLUMNS a block of a loop over columns, ROWS one of rows. An empty line is any whole number from 1 on.';
      return element("fieldset", {tabindex: -1}, element("legend", {}, `What the launcher hands to ${which.value}`),
        element("p", {}, "This kernel has no launcher here. These lines are guessed from the names: correct what is not so."),
        element("div", {class: "prove-fields"}, ...inputs), element("p", {}, hint), confirm);
    }

    // The answer on the page; its first line is returned, to be announced.
    function show(answer) {
      before.append(...found.children);
      form.replaceChildren();
      cell.mark([]);
      if (!answer) return "";
      const {entries = [], name, verdict, error, line: at, form: lines = []} = answer;
      which.replaceChildren(...entries.map((entry) => option(entry.name, `${entry.name} (${entry.kind}, line ${entry.line})`)));
      if (name) which.value = name;
      if (name !== about) fields = {};
      about = name;
      whichLine.hidden = entries.length < 2;
      const kernel = entries.find((entry) => entry.name === name)?.kind === "Triton kernel";
      if (lines.length) form.append(ask(lines, Boolean(error), kernel));
      if (kernel || error) found.before(form);
      else found.after(form);
      keepChoices();
      if (error) {
        found.append(element("p", {class: "prove-verdict prove-unread"}, error));
        if (at) cell.mark([at]);
        return error;
      }
      if (!verdict) form.firstElementChild?.focus();
      if (!verdict) return `${name} has no launcher in this text: say below what it is given.`;
      found.append(told(verdict));
      cell.mark(verdict.lines);
      window.normgradTypeset?.(found);
      const title = KINDS[verdict.kind][2];
      return verdict.claim ? `${title}: ${verdict.claim}` : `${title}: ${verdict.why}`;
    }

    const buttons = examples.map((example) => {
      const button = element("button", {type: "button"}, example.title);
      button.addEventListener("click", () => {
        cell.set(example.text);
        choose(example);
        show();
        cell.start();
      });
      return button;
    });
    cell.buttons.push(...buttons);
    cell.changed = () => {
      confirmed = false;
      if (!found.firstElementChild || found.querySelector(".prove-old")) return;
      found.prepend(element("p", {class: "prove-old"}, "The text has changed since this verdict."));
    };
    against.addEventListener("change", () => { defined(); keepChoices(); });
    which.addEventListener("change", () => {
      fields = {};
      about = which.value;
      confirmed = false;
      form.replaceChildren();
      keepChoices();
    });
    for (const tick of Object.values(flags)) tick.addEventListener("change", keepChoices);
    reference.addEventListener("input", keepChoices);
    link.addEventListener("click", async () => {
      history.replaceState(null, "", `#text-${await packed({...chosen(), text: cell.field.value})}`);
      let words = "The address of this page now holds the text.";
      try {
        await navigator.clipboard.writeText(location.href);
        words = "The address of this page now holds the text, and is copied.";
      } catch {}
      cell.status.textContent = words;
    });

    const shared = /^#text-([\w-]+)$/.exec(location.hash);
    let last = null;
    try {
      last = JSON.parse(kept(CHOICES));
    } catch {}
    choose(last ?? examples[0]);
    if (shared) {
      unpacked(shared[1]).then(({text, ...others}) => {
        cell.set(String(text));
        choose(others);
      }, () => { cell.status.textContent = "The address holds no text that can be read."; });
    }
    const offered = element("div", {class: "prove-examples", role: "group", "aria-label": "examples"}, element("span", {}, "examples"), ...buttons);
    box.replaceChildren(offered, cell.box, choices, second, cell.bar, form, found, before);
  }

  document.querySelectorAll(".prove-kernel").forEach(begin);
})();
