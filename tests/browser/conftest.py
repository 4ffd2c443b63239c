"""The built site, served and read in Chromium; every request that would leave the site fails and is recorded."""

import functools
import os
import shutil
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
from built_site import SITE, pages

CHROMIUM = (
    os.environ.get("CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
)
# No sandbox: containers have none. The rest keeps Chromium itself from talking to anyone.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
]
FLAGS += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
# No name is found: what does not come from the site's own address does not come.
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
# The theme's first visit, before a reader has chosen light or dark; and Sphinx's search, which takes the dots of an
# anchor such as module-normgrad.nn for classes.
KNOWN_MESSAGES = ("Got invalid theme mode", "Anchored content block not found")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.site)
            if not pages():
                item.add_marker(
                    pytest.mark.skip(
                        reason="no site in _build/html: run `make book` first"
                    )
                )
            elif not CHROMIUM:
                item.add_marker(
                    pytest.mark.skip(
                        reason="no chromium: install it or set CHROMIUM to its path"
                    )
                )


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    """Says nothing of a page that is closed before all of it has come."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@pytest.fixture(scope="session")
def address():
    """The address at which the site is served."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Reader:
    """A browser's page, and what went wrong while it was read."""

    page: object
    address: str
    outside: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def open(self, path):
        response = self.page.goto(f"{self.address}/{path}", wait_until="load")
        assert response.ok, f"{path}: status {response.status}"
        # formulas are typeset as they come into view; a reader has seen all of them
        self.page.evaluate(
            "window.MathJax?.startup.promise.then(() => MathJax.startup.document.lazyTypesetAll())"
        )
        return self.page

    def note(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.outside.append(request.url)

    def hear(self, message):
        # where a page names no icon, as the one that leads to the front page, Chromium looks for this one by itself
        expected = (
            message.text.startswith(KNOWN_MESSAGES)
            or message.location["url"] == f"{self.address}/favicon.ico"
        )
        if message.type in ("error", "warning") and not expected:
            self.messages.append(
                f"{message.type}: {message.text} {message.location['url']}"
            )

    def nothing_wrong(self):
        """What was noted so far is nothing, and is forgotten."""
        outside, messages = list(self.outside), list(self.messages)
        self.outside.clear()
        self.messages.clear()
        assert outside == [], "requests left the site"
        assert messages == [], "the browser's console has messages"


@contextmanager
def readers(chromium, address):
    """A function that gives a new reader, on a desktop or a phone, in light or in dark; all must end without error."""
    opened = []

    def make(width=1280, height=900, scheme="light", touch=False):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            has_touch=touch,
            is_mobile=touch,
        )
        reader = Reader(context.new_page(), address)
        context.on("request", reader.note)
        reader.page.on("console", reader.hear)
        reader.page.on("pageerror", lambda error: reader.messages.append(str(error)))
        opened.append((context, reader))
        return reader

    yield make
    for context, reader in opened:
        context.close()
        reader.nothing_wrong()


@pytest.fixture
def read(chromium, address):
    """A function that gives a new reader, who has seen nothing yet."""
    with readers(chromium, address) as make:
        yield make


@pytest.fixture(scope="module")
def visitor(chromium, address):
    """One reader for all tests of a file, who keeps what pages have in common."""
    with readers(chromium, address) as make:
        yield make()


@pytest.fixture(scope="session")
def axe():
    """axe-core, as the package on PyPI brings it."""
    return (
        Path(find_spec("axe_playwright_python").origin).parent / "axe.min.js"
    ).read_text(encoding="utf8")
