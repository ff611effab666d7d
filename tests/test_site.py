"""The site of the manual: both builders take it without a warning; it fits on a phone, and works without internet.

`pip install -c constraints.txt -e '.[docs]'` brings the builders.
"""

import functools
import http.server
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import CHECKOUT
from tests.report_aids import CHROMIUM, Elements, open_address

pytestmark = pytest.mark.site
BUILDERS = ("mkdocs", "zensical")
in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

# Opens each page in a frame. Finds pages that are too wide, what sticks out of them, and what they fetch from other hosts.
MEASURE = """
const findings = [];
function measure(frame, name) {
  const inside = frame.contentDocument;
  const wide = inside.documentElement.scrollWidth - frame.clientWidth;
  const clipped = [];
  for (const element of inside.querySelectorAll(".md-content *")) {
    const box = element.getBoundingClientRect();
    if (!box.width || box.right <= frame.clientWidth + 1 || scrolls(element, inside)) continue;
    clipped.push(element.outerHTML.slice(0, 80));
  }
  const fetched = frame.contentWindow.performance.getEntriesByType("resource").map((entry) => entry.name);
  const outside = fetched.filter((address) => !address.startsWith(location.origin) && !address.startsWith("data:"));
  if (wide > 0 || clipped.length || outside.length) findings.push({ name, wide, clipped, outside });
}
function scrolls(element, inside) {
  for (let at = element; at && at !== inside.body; at = at.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(at).overflowX)) return true;
  }
  return false;
}
function open(names, width) {
  const name = names.shift();
  if (!name) { document.body.dataset.found = JSON.stringify(findings); return; }
  const frame = document.createElement("iframe");
  frame.width = width;
  frame.height = 800;
  frame.onload = () => setTimeout(() => { measure(frame, name); frame.remove(); open(names, width); }, 100);
  frame.src = name;
  document.body.append(frame);
}
"""

# Types a word into the search of a page, and says to which pages the results lead. Zensical keeps its search in a shadow root.
SEARCH = """
function all(root) {
  const elements = [...root.querySelectorAll("*")];
  return elements.concat(...elements.filter((element) => element.shadowRoot).map((element) => all(element.shadowRoot)));
}
function wait(seconds) { return new Promise((resolve) => setTimeout(resolve, 1000 * seconds)); }
async function search(word) {
  await wait(1);
  document.querySelector("button.md-search__button, label[for=__search]").click();
  await wait(1);
  const field = all(document).findLast((element) => element.tagName === "INPUT" && element.type === "text");
  field.focus();
  field.value = word;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent("keyup", { key: "e", bubbles: true }));
  await wait(3);
  const links = all(document).filter((element) => element.tagName === "A").map((element) => element.href);
  document.body.dataset.found = JSON.stringify(links.filter((link) => link.includes("?h=" + word)));
}
"""


class Site(NamedTuple):
    """A built site: its folder, and what the builder said."""

    folder: Path
    code: int
    output: str

    @property
    def pages(self) -> list[str]:
        pages = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.html")]
        return sorted(set(pages) - {"404.html"})


@pytest.fixture(scope="module", params=BUILDERS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Build the site as CONTRIBUTING.md says, in a folder of its own."""
    builder = request.param
    if importlib.util.find_spec(builder) is None:
        pytest.skip(f"{builder} is not installed")
    folder = tmp_path_factory.mktemp(builder)
    runpy.run_path(str(CHECKOUT / "docs" / "site.py"))["lay_out"](folder / ".pages")
    shutil.copy(CHECKOUT / "mkdocs.yml", folder)
    command = [str(Path(sys.executable).parent / builder), "build", "--strict"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    return Site(folder / "site", built.returncode, built.stdout + built.stderr)


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    """Serve the site, and return its address."""
    handler = functools.partial(QuietHandler, directory=str(site.folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        return None


def read_findings(address: str, profile: Path) -> Any:
    """Return what the script of a page found."""
    dom = open_address(
        address, profile, "--dump-dom", "--window-size=1400,900", "--virtual-time-budget=60000"
    )
    (body,) = Elements(dom).of("body")
    return json.loads(body["data-found"])


def test_builder_has_no_warning_and_writes_every_page(site: Site) -> None:
    assert site.code == 0, site.output
    laid_out = (site.folder.parent / ".pages").rglob("*.md")
    names = {path.relative_to(site.folder.parent / ".pages").as_posix() for path in laid_out}

    expected = {
        re.sub(r"(README|index)\.md$", "index.md", name).replace(".md", ".html") for name in names
    }
    assert expected == set(site.pages)
    assert len(expected) > 40


def test_pages_name_no_style_script_or_picture_of_another_host(site: Site) -> None:
    foreign = []
    for page in site.pages:
        text = (site.folder / page).read_text()
        for address in re.findall(
            r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?((?:https?:)?//[^"' >]+)""", text
        ):
            foreign.append((page, address))

    assert foreign == []


@in_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_into_the_window_and_fetch_nothing_from_other_hosts(
    site: Site, address: str, width: int, tmp_path: Path
) -> None:
    script = f"<script>{MEASURE} open({json.dumps(site.pages)}, {width})</script>"
    (site.folder / "frames.htm").write_text(
        f'<!doctype html><body style="margin:0">{script}</body>'
    )

    assert read_findings(f"{address}/frames.htm", tmp_path / "profile") == []


@in_chromium
def test_search_works_in_pages_that_are_opened_from_disk(site: Site, tmp_path: Path) -> None:
    page = (site.folder / "docs" / "index.html").read_text()
    copy = site.folder / "docs" / "searched.htm"
    copy.write_text(
        page.replace("</body>", f"<script>{SEARCH} search('calibrate')</script></body>")
    )

    links = read_findings(copy.as_uri(), tmp_path / "profile")

    assert "method.html" in {Path(link.partition("?")[0]).name for link in links}
