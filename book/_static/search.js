// Above the pages that hold the words of a search: the equations, sections and pages that are about them, best first.
(() => {
  const FILLERS = new Set(("a an and are can do does for formula how i in is my of on the to use using what "
    + "when where why with wrt").split(" "));
  const SAME = {sqrt: "root", grad: "gradient", bf16: "bfloat16", fp16: "float16", fp32: "float32", epsilon: "eps",
    hf: "huggingface", normalization: "norm", normalisation: "norm"};
  const MOST = 8;

  const stem = (word) => {
    const same = SAME[word] ?? word;
    return same.length > 5 ? same.replace(/(ing|ed|s)$/, "") : same.replace(/(?<=[a-z]{3})s$/, "");
  };
  // "the dx of layer norm" and "LayerNorm dx" are the same words.
  const wordsOf = (text) => {
    const plain = text.toLowerCase().replace(/[\\{}$()?,:;"“”`]/g, " ").replace(/_(?=\w\b)/g, "");
    const joined = plain.replace(/\b(layer|rms|batch|group|l2)[ _-]*norm(ali[sz]ation)?\b/g, "$1norm");
    const all = joined.split(/[\s/·]+/).filter(Boolean);
    const saying = all.filter((word) => !FILLERS.has(word));
    return (saying.length ? saying : all).map(stem);
  };

  const query = new URLSearchParams(location.search).get("q") ?? "";
  const words = [...new Set(wordsOf(query))];
  if (words.length === 0) return;

  const {places, names} = window.normgradObjects;
  const items = places.map((place) => ({
    ...place,
    title: place.title ?? `(${place.number}) ${place.label}`,
    fields: [
      [place.page || place.label ? 4 : 5, wordsOf(`${place.title ?? ""} ${(place.label ?? "").replace(/-/g, " ")}`)],
      [2, wordsOf(place.says ?? "")],
      [1, wordsOf(place.page ?? "")],
    ],
    aliases: [],
  }));
  const byKey = new Map(items.map((item) => [item.label ?? item.address, item]));
  for (const [name, key] of Object.entries(names)) byKey.get(key).aliases.push(wordsOf(name));

  const holds = (fieldWords, word) => fieldWords.some((other) => other === word)
    ? 1 : fieldWords.some((other) => word.length > 3 && other.startsWith(word)) ? 0.7 : 0;
  const frequency = (word) => items.filter((item) => item.fields.some(([, list]) => holds(list, word))).length;
  const rarity = new Map(words.map((word) => [word, Math.log(1 + items.length / (1 + frequency(word)))]));
  const total = words.reduce((sum, word) => sum + rarity.get(word), 0);

  const number = query.toLowerCase().replace(/^\s*(eq|equation)?\s*\(?|\)?\s*$/g, "");
  const score = (item) => {
    if (item.label === query.trim() || item.number?.toLowerCase() === number) return 1000;
    let best = 0, covered = 0;
    for (const word of words) {
      const weight = Math.max(...item.fields.map(([gain, list]) => gain * holds(list, word)));
      best += weight * rarity.get(word);
      covered += weight ? rarity.get(word) : 0;
    }
    for (const alias of item.aliases) {
      if (!alias.every((word) => words.includes(word))) continue;
      const weight = alias.reduce((sum, word) => sum + rarity.get(word), 0);
      best = Math.max(best, 5 * weight + best / 2) + (alias.length === words.length ? 100 : 0);
      covered = Math.max(covered, weight, total / 2);
    }
    return covered >= total / 2 ? best : 0;
  };
  // The places come in the order of reading, and a sort keeps it among equals.
  const ranked = items.map((item) => [score(item), item]).filter(([points]) => points > 0);
  const matches = ranked.sort(([a], [b]) => b - a).slice(0, MOST).map(([, item]) => item);
  if (matches.length === 0) return;

  const list = document.createElement("ol");
  list.className = "search-objects";
  for (const match of matches) {
    const item = document.createElement("li"), link = document.createElement("a"), about = document.createElement("span");
    link.href = match.address;
    link.textContent = match.title;
    about.textContent = [match.says, match.page].filter(Boolean).join(" · ");
    item.append(link, " ", about);
    list.append(item);
  }
  const results = document.getElementById("search-results");
  results.before(list);
  // Sphinx searches for all the words at once; where a page has only some of them its message would contradict the list.
  const quiet = () => {
    for (const line of results.querySelectorAll("p"))
      if (/did not match/.test(line.textContent)) line.style.display = "none";
  };
  new MutationObserver(quiet).observe(results, {childList: true, subtree: true, characterData: true});
})();
