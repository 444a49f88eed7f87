"""What every page must be, at every size and in every theme."""

import os

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

# The picture that fits the width, of each chart.
DRAWN = "[data-chart] svg:visible"

# Width in pixels and theme. They do not depend on each other: each is seen of every second page,
# and script/test --all sees all of them of each page.
LOOKS = ((1280, "light"), (360, "dark"))
ALL_LOOKS = (*LOOKS, (1280, "dark"), (360, "light"))


# The contrast of text takes axe two thirds of its time, and pages have thousands of texts that look
# alike. What has passed is not computed again for a text whose elements, up to the page, all have
# the same look: neither on its page nor on those that come after it.
ONCE_A_LOOK = """() => {
    let looks, passed;
    const attributes = ["class", "style", "type"];
    const styles = ["color", "backgroundColor", "backgroundImage", "opacity", "fontSize",
        "fontWeight", "position"];
    const number = text => {
        let high = 0xdeadbeef, low = 0x41c6ce57;
        for (let place = 0; place < text.length; place++) {
            high = Math.imul(high ^ text.charCodeAt(place), 2654435761);
            low = Math.imul(low ^ text.charCodeAt(place), 1597334677);
        }
        return (high >>> 0) * 2097152 + (low >>> 11);
    };
    const look = element => {
        if (element && !looks.has(element)) {
            const style = getComputedStyle(element);
            const own = attributes.map(name => element.getAttribute(name));
            looks.set(element, number([look(element.parentElement), element.tagName, ...own,
                ...styles.map(name => style[name])].join("|")));
        }
        return looks.get(element);
    };
    const seen = element => {
        const isShown = element.checkVisibility({visibilityProperty: true});
        // Of a single letter axe says nothing for certain.
        return number([look(element), isShown, element.textContent.trim().length > 1].join());
    };
    const rule = axe._audit.rules.find(each => each.id === "color-contrast");
    const matches = rule.matches;
    rule.matches = function (element, ...rest) {
        return !passed.has(seen(element)) && matches.call(this, element, ...rest);
    };
    const check = axe._audit.checks["color-contrast"], computed = check.evaluate;
    check.evaluate = function (element, ...rest) {
        const result = passed.has(seen(element)) || computed.call(this, element, ...rest);
        if (result === true) passed.add(seen(element));
        return result;
    };
    axe.lookFor = async ({known, ...options}) => {
        looks = new WeakMap();
        passed = new Set(known);
        const found = await axe.run({resultTypes: ["violations"], ...options});
        // The first element that breaks each rule. The full answer names every element of the page,
        // which takes as long to send as to find.
        const broken = found.violations.map(
            rule => `${rule.id} ${rule.nodes[0].html.slice(0, 160)}`);
        return [broken, [...passed].slice(known.length)];
    };
}"""

# The looks of text whose contrast has passed, on any page.
passed: list[int] = []


def broken_rules(page, **options):
    """The findings of axe: the rules that are broken, each with the first element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(ONCE_A_LOOK)
    broken, more = page.evaluate(
        "options => axe.lookFor(options)", {"known": passed, **options}
    )
    passed.extend(more)
    return broken


def assert_accessible(page, **options):
    """No finding of axe."""
    assert broken_rules(page, **options) == [], page.url


def assert_faultless_in_every_look(page, address, number):
    """Open a page in one look, which takes turns by its `number`, and change it to the others."""
    is_all = "BENCHLAB_TEST_ALL" in os.environ
    every = ALL_LOOKS if is_all else LOOKS[number % len(LOOKS) :][:1]
    first = number % len(every)
    for width, theme in every[first:] + every[:first]:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme)
        if (width, theme) == every[first]:
            page.goto(address)
        assert_faultless(page)


def assert_faultless(page):
    """Each chart is seen once; no finding of axe, no complaint of the browser, nothing too wide."""
    charts = page.locator("[data-chart]:not(details:not([open]) *)").count()
    expect(page.locator(DRAWN)).to_have_count(charts)
    assert_accessible(page)
    assert not page.complaints, page.complaints
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"], page.url


def assert_nothing_is_beside_a_phone(page, address, tables):
    """On a phone the tables that the selector names are as wide as their place, not wider."""
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(address)
    expect(page.locator(tables).first).to_be_attached()
    wide = page.evaluate(
        """tables => [...document.querySelectorAll(tables)]
            .map(table => table.closest(".table-scroll"))
            .filter(place => place.scrollWidth > place.clientWidth)
            .map(place => `${place.ariaLabel}: ${place.scrollWidth}`)""",
        tables,
    )
    assert wide == [], address
