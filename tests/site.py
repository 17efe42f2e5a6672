# SPDX-License-Identifier: Apache-2.0
"""Load built pages in headless Chromium, as a phone's narrow window shows them.

``python -m tests.site docs/_build/html`` prints what is wrong with each page: links
that lead nowhere in the site, errors on the console, a body wider than 400 pixels, text
that is cut off there, images that are not there. With a folder as a second argument it
takes pictures: wide, narrow and dark.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"),
    *(
        "--allow-file-access-from-files",
        "--hide-scrollbars",
        "--remote-allow-origins=*",
    ),
)
NARROW = 400
PICTURES = {
    "wide": (1280, 900, "light"),
    "narrow": (NARROW, 800, "light"),
    "dark": (1280, 900, "dark"),
}
_LOOK = """({
  width: document.documentElement.scrollWidth,
  cut: [...document.querySelectorAll(
    "p, li, dt, dd, h1, h2, h3, h4, img, svg, code, figcaption, table, pre"
  )].filter(it => {
    const box = it.getBoundingClientRect();
    if (!box.width || box.right <= document.documentElement.clientWidth + 1)
      return false;
    for (let at = it; at !== document.body; at = at.parentElement) {
      const {overflowX, position, visibility} = getComputedStyle(at);
      if (["auto", "scroll"].includes(overflowX)) return false;
      if (position === "fixed" || visibility === "hidden") return false;
    }
    return true;
  }).map(it => `${it.localName} "${it.textContent.trim().slice(0, 40)}"`),
  images: [...document.images].filter(
    image => image.complete && !image.naturalWidth).map(image => image.src),
})"""


class _Page(HTMLParser):
    """What can be linked to in a page, and where its links lead."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str | None] = set()
        self.links: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def dead_links(pages: Sequence[Path]) -> dict[Path, list[str]]:
    """Return the links of each page to files or anchors that are not there."""
    read = {page: _Page(page) for page in pages}

    def is_dead(page: Path, link: str) -> bool:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return False
        path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not path.exists():
            return True
        found = read.get(path)
        return bool(parts.fragment and found) and (
            unquote(parts.fragment) not in read[path].anchors
        )

    return {
        page: [link for link in sorted(found.links) if is_dead(page, link)]
        for page, found in read.items()
    }


def find_chromium() -> str | None:
    """Return the browser, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser, spoken to by the DevTools protocol."""

    def __init__(self, address: str) -> None:
        import websocket

        make: Any = websocket.create_connection
        self._socket: Any = make(address, timeout=30)
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return what a method of the protocol gives."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message))
        while True:
            got = json.loads(self._socket.recv())
            if got.get("id") == number:
                return got.get("result", {})
            self._events.append(got)

    def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Show pages in a window of this size and scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width <= NARROW,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    def open(self, page: Path) -> None:
        """Load a page, and wait until it is there."""
        self._events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self._events):
            self._events.append(json.loads(self._socket.recv()))

    def faults(self, page: Path) -> list[str]:
        """Return what is wrong with a page; it loads without any network."""
        self.open(page)
        found = self.ask("Runtime.evaluate", expression=_LOOK, returnByValue=True)
        seen: dict[str, Any] = found["result"]["value"]
        said = [f"no image {name}" for name in seen["images"]]
        said += [f"cut off at the right: {what}" for what in seen["cut"]]
        if seen["width"] > NARROW:
            said.append(f"{seen['width']} pixels wide, expected at most {NARROW}")
        return said + [text for e in self._events if (text := _complaint(e))]

    def picture(self, path: Path) -> None:
        """Write what the window shows."""
        found = self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))


def _complaint(event: dict[str, Any]) -> str | None:
    given = event.get("params", {})
    if event.get("method") == "Runtime.exceptionThrown":
        return f"exception: {given['exceptionDetails'].get('text', '')}"
    if event.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
        return f"error: {given['entry']['text']} {given['entry'].get('url', '')}"
    if event.get("method") == "Runtime.consoleAPICalled" and given["type"] == "error":
        return f"console.error: {given['args']}"
    return None


@contextlib.contextmanager
def browser(program: str) -> Generator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = (*OPTIONS, f"--user-data-dir={profile}", "about:blank")
        process = subprocess.Popen(
            [program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            with contextlib.closing(Browser(_page_address(Path(profile)))) as page:
                yield page
        finally:
            process.terminate()
            process.wait(20)


def _page_address(profile: Path) -> str:
    """Return where the first page listens; the browser writes its port to a file."""
    from urllib.request import urlopen

    told = profile / "DevToolsActivePort"
    for _ in range(300):
        if told.exists() and (lines := told.read_text().splitlines()):
            with urlopen(f"http://127.0.0.1:{lines[0]}/json", timeout=30) as answer:
                listed: list[dict[str, Any]] = json.load(answer)
            pages = [found for found in listed if found["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.1)
    raise RuntimeError("the browser did not start within 30 seconds")


def _is_ours(page: Path, site: Path) -> bool:
    """Tell whether a page is of the site: asv's load scripts from the network."""
    return page.relative_to(site).parts[0] not in ("_static", "asv")


def main(site: Path, pictures: Path | None = None) -> int:
    """Look at every page; tell whether any is at fault."""
    pages = sorted(page for page in site.rglob("*.html") if _is_ours(page, site))
    faults = [
        (page, f"the link {link} leads nowhere")
        for page, links in dead_links(pages).items()
        for link in links
    ]
    program = find_chromium()
    if program:
        faults += _seen(program, site, pages, pictures)
    else:
        print("not looked at: no Chromium; apt-get install chromium")  # noqa: T201
    for page, fault in faults:
        print(f"{page.relative_to(site)}: {fault}")  # noqa: T201
    print(f"{len(pages)} pages, {len(faults)} faults")  # noqa: T201
    return min(len(faults), 1)


def _seen(
    program: str, site: Path, pages: Sequence[Path], pictures: Path | None
) -> list[tuple[Path, str]]:
    """Return what a browser finds wrong, and take pictures where they are wanted."""
    with browser(program) as window:
        window.resize(NARROW, 800)
        faults = [(page, fault) for page in pages for fault in window.faults(page)]
        for name, size in PICTURES.items() if pictures else ():
            window.resize(*size)
            for page in pages:
                window.open(page)
                stem = "-".join(page.relative_to(site).with_suffix("").parts)
                window.picture(Path(pictures or "") / f"{stem}-{name}.png")
    return faults


if __name__ == "__main__":
    sys.exit(main(*(Path(name).absolute() for name in sys.argv[1:])))
