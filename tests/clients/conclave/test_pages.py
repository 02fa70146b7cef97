"""The pages of topics in a real browser: style, keyboard, suggestions, preview, editing, and no foreign scripts."""

import json
import subprocess

import pytest
import requests
from chromium import PATIENCE_S, Page, program
from running import PINAKES, printed_url

pytestmark = pytest.mark.skipif(program() is None, reason="Chromium is not installed")

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"
TOPICS = [
    {
        "id": "Top/Arts",
        "metadata": [{"name": "label", "value": "Arts"}, {"name": "description", "value": "All the arts"}],
        "associations": [
            {"type": "category", "role": "narrow", "reference": f"Top/Arts/{name}", "label": name}
            for name in ("Dance", "Film", "Literature", "Music", "Theatre")
        ],
        "occurrences": [
            {"role": "wiki", "behaviour": "markdown", "string-data": "See [music](#Top/Arts/Music)."},
            {"role": "link", "behaviour": "url", "reference": "https://example.org/a-very-long-address/" + "x" * 90},
        ],
    },
    {"id": "Top/Arts/Music", "metadata": [{"name": "label", "value": "Music"}]},
    {"id": "Top/Arts/Museums", "metadata": [{"name": "label", "value": "Museums"}]},
    {
        "id": "evil",
        "metadata": [{"name": "label", "value": EVIL}],
        "associations": [{"type": EVIL, "role": EVIL, "reference": EVIL, "label": EVIL}],
        "occurrences": [
            {"role": "wiki", "behaviour": behaviour, "string-data": EVIL + " [x](javascript:alert(1))"}
            for behaviour in ("markdown", "wiki", "html", "text")
        ],
    },
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("topics")
    (folder / "topics.ndjson").write_text("".join(json.dumps(it) + "\n" for it in TOPICS))
    data = ["--data", str(folder / "data")]
    common = {"check": True, "text": True, "capture_output": True, "timeout": PATIENCE_S}
    subprocess.run([PINAKES, "import", "topics", *data, str(folder / "topics.ndjson")], **common)
    subprocess.run([PINAKES, "user", "add", "ada", "--group", "admin", *data], input="warm-spheres-26\n", **common)
    process = subprocess.Popen(
        [PINAKES, "serve", *data, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield printed_url(process)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


@pytest.fixture
def page():
    page = Page()
    yield page
    page.close()


def background(page) -> str:
    return page.script("getComputedStyle(document.body).backgroundColor")


def test_a_page_is_styled_again_and_again(site, page):
    for _ in range(3):
        page.open(f"{site}/t/default/Top/Arts")
        assert background(page) not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
    assert page.script("document.querySelector('h1').firstChild.textContent.trim()") == "Arts"
    assert page.script("document.querySelectorAll('.relations li a').length") == 5
    assert page.script("document.querySelectorAll('svg.neighbours a').length") == 5
    assert page.problems == []


def test_light_and_dark_differ_and_are_legible(site, page):
    seen = set()
    for scheme in ("light", "dark"):
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.open(f"{site}/t/default/Top/Arts")
        ratio = page.script(
            """(() => {
              const light = (text) => {
                const [r, g, b] = text.match(/[\\d.]+/g).map((it) => it / 255)
                  .map((it) => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const paper = light(getComputedStyle(document.body).backgroundColor);
              const inks = [...document.querySelectorAll("h1, h1 small, h3, h4, a, dt, .formats")]
                .map((it) => light(getComputedStyle(it).color));
              return Math.min(...inks.map((ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)));
            })()"""
        )
        assert ratio >= 4.5, f"WCAG 2.2 asks for 4.5, {scheme} has {ratio}"
        seen.add(background(page))
    assert len(seen) == 2


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(site, page, width):
    page.size(width, 800)
    for address in ("/t/default/Top/Arts", "/t/default/evil", "/conclave/default", "/conclave/sign-in"):
        page.open(site + address)
        wide = page.script("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{address} is {wide} pixels too wide at {width}"


def test_the_keyboard_finds_a_topic(site, page):
    page.open(f"{site}/t/default/Top/Arts")
    page.press("/", 191)
    assert page.script("document.activeElement.name") == "q"
    page.type("mus")
    page.wait_for("document.querySelectorAll('#suggestions li').length === 2")
    assert page.script("document.querySelector('.search input').getAttribute('aria-expanded')") == "true"
    labels = page.script("[...document.querySelectorAll('#suggestions li a')].map((it) => it.firstChild.textContent)")
    assert labels == ["Museums", "Music"]
    page.press("ArrowDown", 40)
    page.press("ArrowDown", 40)
    page.press("Enter", 13)
    page.wait_for("location.pathname === '/t/default/Top/Arts/Music' && document.readyState === 'complete'")
    assert page.script("document.querySelector('h1').textContent.trim()") == "Music"


def test_the_first_tab_stop_skips_to_the_content(site, page):
    page.open(f"{site}/t/default/Top/Arts")
    page.press("Tab", 9)
    assert page.script("document.activeElement.getAttribute('href')") == "#content"


def test_editing_with_a_preview(site, page):
    page.open(f"{site}/conclave/sign-in?next=/conclave/default/edit?id=Top/Arts/Music")
    page.script("document.querySelector('[name=username]').value = 'ada'")
    page.script("document.querySelector('[name=password]').value = 'warm-spheres-26'")
    page.script("document.querySelector('main form').submit()")
    page.wait_for("document.querySelector('textarea[name=text]') && document.readyState === 'complete'")
    assert page.script("document.cookie") == "", "scripts do not see the cookie"
    page.script("document.querySelector('textarea[name=text]').focus()")
    page.type("Sound, *ordered*. <script>alert(1)</script>")
    preview = page.wait_for("!document.getElementById('preview').hidden && document.getElementById('preview').innerHTML")
    assert "<em>ordered</em>" in preview and "<script" not in preview
    page.script("document.querySelector('button[value=save]').click()")
    page.wait_for("location.pathname === '/t/default/Top/Arts/Music' && document.readyState === 'complete'")
    assert page.script("document.querySelector('article em').textContent") == "ordered"
    assert page.dialogs == [] and page.problems == []
    cookies = page.ask("Network.getCookies", urls=[site])["cookies"]
    assert [(it["name"], it["httpOnly"], it["sameSite"]) for it in cookies] == [("ConclaveCookie", True, "Lax")]


def test_no_script_of_others_runs(site, page):
    for address in ("/t/default/evil", "/conclave/default/search?q=alert", "/conclave/default/pointing?id=evil"):
        page.open(site + address)
        assert page.script("document.querySelectorAll('main script, main [onerror], main [onclick]').length") == 0
    assert page.dialogs == []


def test_a_reader_gets_no_cookie(site):
    answer = requests.get(f"{site}/t/default/Top/Arts", timeout=PATIENCE_S)
    assert answer.status_code == 200 and not answer.cookies
