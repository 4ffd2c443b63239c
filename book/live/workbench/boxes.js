// The boxes of a page in which Python answers: their scripts come when the reader comes near one.
(() => {
  "use strict";
  const folder = new URL(".", document.currentScript.src).href;
  const SCRIPTS = {
    workbench: ["here.js", "cell.js", "workbench.js"],
    "prove-kernel": ["here.js", "cell.js", "kernels.js", "prove_kernel.js"],
  };
  const asked = new Set();

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
        scripts.forEach(load);
      }, {rootMargin: "600px"}).observe(box);
    }
  }
})();
