// The boxes and cells of a page in which Python answers: their scripts and styles come before one is in view.
(() => {
  "use strict";
  const folder = new URL(".", document.currentScript.src).href;
  const SCRIPTS = {
    workbench: ["here.js", "cell.js", "workbench.js"],
    "prove-kernel": ["here.js", "cell.js", "kernels.js", "prove_kernel.js"],
    "live-cell": ["here.js", "cell.js", "turns.js"],
  };
  // ahead of the reader: a box that is made in view would move the text, and a phone shows few lines at a time;
  // Python waits for a tap there, and elsewhere until a cell is within one screen
  const AHEAD = matchMedia("(max-width: 600px)").matches ? "400% 0px" : "100% 0px";
  const asked = new Set();

  function styled(name) {
    if (asked.has(name)) return;
    asked.add(name);
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = folder + name;
    document.head.append(sheet);
  }

  function load(name) {
    if (asked.has(name)) return;
    asked.add(name);
    const script = document.createElement("script");
    script.async = false;
    script.src = folder + name;
    document.head.append(script);
  }

  for (const [kind, scripts] of Object.entries(SCRIPTS)) {
    for (const box of document.querySelectorAll(`.${kind}`)) {
      new IntersectionObserver((seen, observer) => {
        if (!seen.some((one) => one.isIntersecting)) return;
        observer.disconnect();
        ["../live/live.css", "workbench.css"].forEach(styled);
        scripts.forEach(load);
      }, {rootMargin: AHEAD}).observe(box);
    }
  }
})();
