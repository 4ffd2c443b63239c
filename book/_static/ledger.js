// The rows of the ledger by their kind, chapter and words; without scripts all of them stand there.
(() => {
  const form = document.querySelector("form.ledger-filter");
  if (!form) return;
  const {kind, chapter, words, shown} = form.elements;
  const names = [...chapter.options].slice(1).map((one) => one.value);

  // A row without an anchor is one more entry of the equation above it.
  const equations = (table) => [...table.querySelectorAll("tbody tr")].reduce((found, row) => {
    if (row.id) found.push({rows: [], kinds: "", text: ""});
    const one = found[found.length - 1];
    one.rows.push(row);
    one.kinds += ` ${row.querySelector("[class^=ledger-]").className} `;
    one.text += row.textContent.toLowerCase();
    return found;
  }, []);
  const chapters = [...document.querySelectorAll("article p.rubric")].map((rubric, place) => (
    {name: names[place], parts: [rubric, rubric.nextElementSibling], found: equations(rubric.nextElementSibling)}));
  const all = chapters.flatMap(({found}) => found).length;

  function show() {
    const parts = words.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const {name, parts: boxes, found} of chapters) {
      const here = chapter.value && chapter.value !== name ? [] : found.filter((one) =>
        (!kind.value || one.kinds.includes(` ledger-${kind.value} `)) && parts.every((word) => one.text.includes(word)));
      for (const one of found) for (const row of one.rows) row.hidden = !here.includes(one);
      for (const box of boxes) box.hidden = here.length === 0;
      count += here.length;
    }
    shown.value = `${count} of ${all} equations`;
  }

  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
