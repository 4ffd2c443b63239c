"""The whole book on paper: all pages of the built site as one, printed by Chromium, with an outline of its headings.

`python tools/pdf.py _build/normgrad.pdf` writes it.
"""

import functools
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/browser"))

from built_site import SITE  # noqa: E402
from conftest import CHROMIUM, FLAGS, Quiet  # noqa: E402

# All pages of the sidebar, after the first: their articles, with ids of their own, and links that lead to them.
GATHER = """async () => {
  const own = (page, anchor) => anchor ? `${page}--${anchor}` : page;
  const links = [...document.querySelectorAll('nav.bd-links a')].map(link => link.getAttribute('href').split('#')[0]);
  const pages = ['intro.html', ...new Set(links.filter(link => /^\\w+\\.html$/.test(link) && link !== 'intro.html'))];
  const first = document.querySelector('article');
  const made = [];
  for (const page of pages) {
    const read = new DOMParser().parseFromString(await (await fetch(page)).text(), 'text/html');
    const article = read.querySelector('article');
    article.id = page;
    article.style.breakBefore = 'page';
    article.querySelectorAll('.formula-sheet').forEach(one => one.classList.remove('formula-sheet'));
    for (const one of article.querySelectorAll('[id]')) one.id = own(page, one.id);
    for (const link of article.querySelectorAll('a[href]')) {
      const [to, anchor] = link.getAttribute('href').split('#');
      if (!to || pages.includes(to)) link.setAttribute('href', `#${own(to || page, anchor)}`);
    }
    // which the theme prints above the page, together with its contents
    article.querySelector('h1').style.setProperty('display', 'block', 'important');
    made.push(article);
  }
  first.replaceWith(...made);
  document.querySelector('#jb-print-docs-body').remove();
  await MathJax.typesetPromise(made);
  MathJax.startup.document.lazyTypesetAll();
  return pages.length;
}"""


def main(target):
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with sync_playwright() as playwright:
            page = playwright.chromium.launch(
                executable_path=CHROMIUM, args=FLAGS
            ).new_page()
            page.set_default_timeout(0)
            page.goto(f"http://127.0.0.1:{server.server_port}/book/intro.html")
            page.evaluate("MathJax.startup.promise.then(() => true)")
            count = page.evaluate(GATHER)
            page.pdf(path=target, format="A4", outline=True, tagged=True)
        server.shutdown()
    print(f"{target}: {count} pages of the book")


if __name__ == "__main__":
    main(*sys.argv[1:])
