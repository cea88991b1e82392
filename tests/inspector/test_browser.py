"""The inspector in a real browser: clean at both widths, by keyboard, and nothing stored runs."""

from __future__ import annotations

import importlib.util
import os
import shutil
from urllib.parse import quote

import pytest
from inspector_door import SCRIPT

MISSING = [
    name
    for name, found in (
        ("chromium", shutil.which("chromium")),
        ("playwright", importlib.util.find_spec("playwright")),
    )
    if not found
]
if MISSING and os.environ.get("TEST_REQUIRE_CHROMIUM") != "1":
    reason = f"the inspector is not tried in a browser: {' and '.join(MISSING)} not installed"
    pytest.skip(reason, allow_module_level=True)

PAGES = {
    "start": "",
    "tenant": "tenant?tenant=alice",
    "thread": "thread?tenant=alice&thread=trip",
    "named by a script": f"thread?tenant=alice&thread={quote(SCRIPT)}",
    "entries": "entries?tenant=alice",
    "search": "search?tenant=alice&q=Tobias+memory+ribbon",
    "forget": "forget?tenant=alice&thread=trip",
}


@pytest.fixture
def opened(browser, address):
    """Open pages at a width and in a scheme; fail on what the console or the network says."""
    troubles, contexts = [], []

    def open_page(width=1440, scheme="light"):
        size = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda said: troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(address) else troubles.append(asked.url),
        )
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_every_page_is_whole_at_both_widths_and_runs_nothing_stored(opened, address, width, scheme):
    page = opened(width, scheme)
    for name, path in PAGES.items():
        page.goto(address + path)
        page.wait_for_load_state("networkidle")

        assert page.title() != "ran", name
        assert page.locator("main h1").is_visible(), name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.locator("main script, main iframe, main img").count() == 0, name
        unnamed = page.locator("input:not([type=hidden])").evaluate_all(
            "all => all.filter(one => !one.labels.length).length"
        )
        assert unnamed == 0, name
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert dark == (scheme == "dark")


def test_the_text_can_be_read_in_both_schemes(opened, address):
    for scheme in ("light", "dark"):
        page = opened(scheme=scheme)
        page.goto(address + PAGES["thread"])
        page.wait_for_selector("#context .hm-bar")

        ratios = page.evaluate(CONTRASTS)

        assert ratios
        assert min(ratios) >= 4.5, scheme


def test_a_conversation_is_found_read_and_forgotten_by_keyboard_alone(opened, address):
    page = opened()
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab_to(page, "trip")
    page.keyboard.press("Enter")
    page.wait_for_selector("#context .hm-bar")
    tab_to(page, "Forget this conversation")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=would be forgotten")
    tab_to(page, "Forget it for good")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=complete: nothing of it is left")
    tab_to(page, "Back")
    page.keyboard.press("Enter")

    page.wait_for_selector("text=What is kept of alice")
    assert page.get_by_text("trip", exact=True).count() == 0


def test_the_slider_fits_the_context_anew(opened, address):
    page = opened()
    page.goto(address + PAGES["thread"])
    page.wait_for_load_state("networkidle")
    assert page.get_by_text("of 4,000 tokens").is_visible()
    page.fill("#question", "What is Tobias allergic to?")
    page.focus("#budget")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")

    page.wait_for_selector("#context >> text=of 300 tokens")
    assert page.locator("output").text_content() == "300"
    page.click("text=every turn, and where it stands")
    page.wait_for_selector(".hm-timeline .hm-recalled")
    assert page.locator(".hm-timeline .hm-trimmed").count() > 10


def test_a_memory_is_forgotten_and_the_receipt_shown(opened, address):
    page = opened(390)
    page.goto(address + "entries?tenant=alice&namespace=profile")
    page.click("text=Forget this memory")
    assert page.get_by_text("Prefers meetings in the morning").is_visible()
    page.click("text=Forget it for good")

    page.wait_for_selector("text=complete: nothing of it is left")
    page.goto(address + "entries?tenant=alice&namespace=profile")
    assert page.get_by_text("Nothing is remembered here yet").is_visible()


def test_older_turns_are_put_below_the_newer_ones(opened, address):
    page = opened()
    page.goto(address + PAGES["thread"])
    page.wait_for_load_state("networkidle")
    before = page.locator(".hm-turns > li").count()
    page.click("text=Older turns")

    page.wait_for_function(f"document.querySelectorAll('.hm-turns > li').length > {before}")
    assert page.url.endswith("thread=trip")


def test_every_page_works_without_scripts(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGES["thread"])
    page.fill("#question", "What is Tobias allergic to?")
    page.click("text=Show")
    assert page.locator("#question").input_value() == "What is Tobias allergic to?"
    assert page.locator("#context .hm-bar").is_visible()

    page.click("text=Older turns")
    assert page.locator("h1").text_content() == "trip"
    assert page.get_by_text("Answer 20: it rains again.").last.is_visible()
    context.close()


def test_without_the_token_a_browser_is_told_so(browser, address):
    page = browser.new_page()
    start = address.rsplit("/", 2)[0]

    answer = page.goto(start + "/")

    assert answer.status == 403
    assert "token" in page.content()
    page.close()


def tab_to(page, text, most=80):
    """Press Tab until what has the focus bears a text."""
    for _ in range(most):
        page.keyboard.press("Tab")
        held = page.evaluate("document.activeElement.textContent") or ""
        if held.split("\n")[0].strip() == text or held.strip().startswith(text):
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"{text} cannot be reached by Tab")


CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const over = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const [colour, opacity] of colours) {
      canvas.globalAlpha = opacity; canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratios = [];
  const read = 'h1, h2, p, a, label, button, b, summary, .hm-chip, .hm-content, th, td';
  for (const one of document.querySelectorAll(read)) {
    if (!one.checkVisibility() || !one.textContent.trim() || one.matches('.skip, .brand')) continue;
    const chain = [];
    for (let at = one; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
    const grounds = chain.map(style => [style.backgroundColor, 1]);
    const opacity = chain.reduce((all, style) => all * style.opacity, 1);
    const behind = over(grounds);
    const front = over([...grounds, [getComputedStyle(one).color, opacity]]);
    const [high, low] = [light(front), light(behind)].sort((a, b) => b - a);
    ratios.push((high + 0.05) / (low + 0.05));
  }
  return ratios;
}"""
