// On paper every page is black on white, whichever theme it is read in.
(() => {
  const page = document.documentElement;
  let theme;
  window.addEventListener("beforeprint", () => {
    theme = page.dataset.theme;
    page.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    page.dataset.theme = theme;
  });
})();
