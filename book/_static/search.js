// Above the pages that hold the words of a search: the equations and places that have them for a name.
(() => {
  const plain = (text) => text.toLowerCase().replace(/[\\{}$()\s]/g, " ").replace(/_(?=\w\b)/g, "").trim().replace(/ +/g, " ");
  const query = plain(new URLSearchParams(location.search).get("q") ?? "");
  if (!query) return;
  const {equations, names} = window.normgradObjects;
  const byLabel = new Map(equations.map((one) => [one.label, one]));
  const place = (one) => one.label ? byLabel.get(one.label) : one;
  // What readers write in more than one way, and what says nothing: "the dx of layer norm" is "layernorm dx".
  const FILLERS = new Set(["a", "and", "for", "in", "of", "the", "to", "with", "wrt"]);
  const wordsOf = (text) => {
    const all = plain(text).replace(/(layer|rms|batch|group|l2)[ _-]norm(alization)?/g, "$1norm").split(" ");
    const saying = all.filter((word) => !FILLERS.has(word));
    return saying.length ? saying : all;
  };
  const words = wordsOf(query), key = [...words].sort().join(" ");
  const holds = (one) => words.every((word) => wordsOf(`${one.label} ${one.says} ${one.page}`).join(" ").includes(word));

  const named = Object.entries(names).filter(([name]) => wordsOf(name).sort().join(" ") === key).map(([, one]) => place(one));
  const exact = equations.filter((one) => one.label === query || one.number === query.replace(/^(?:eq|equation) /, ""));
  const begins = equations.filter((one) => one.label.split("-").includes(query));
  const found = [...new Set([...exact, ...named, ...begins, ...equations.filter(holds)])].slice(0, 8);
  if (found.length === 0) return;

  const list = document.createElement("ol");
  list.className = "search-objects";
  for (const one of found) {
    const item = document.createElement("li"), link = document.createElement("a"), page = document.createElement("span");
    link.href = one.address;
    link.textContent = one.title ?? `(${one.number}) ${one.label}`;
    page.textContent = [one.says, one.page].filter(Boolean).join(" · ");
    item.append(link, " ", page);
    list.append(item);
  }
  document.getElementById("search-results").before(list);
})();
