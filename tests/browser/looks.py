"""axe-core over many pages of one design: a text that looks like one whose contrast is known is not measured again.

Four fifths of axe-core's time go into contrast, which it works out anew for each of thousands of words of code. It
depends on what is painted behind a text and on what the text looks like itself, so texts with equal styles (their own,
and those of all that lies around them) share one result, on a page and from page to page. Only a result counts: where
axe-core cannot tell, because a text is covered or too short, all others of that look are measured too.
"""

from .axe import RULES, found_by, inject

CONTRAST = {"runOnly": ["color-contrast"]}
# `mark` leaves out each text whose look is known or, with the same words, was measured in vain, and for a new look all
# but three; it tells whether any is left. `others` goes on to the rest of the looks of which the three told nothing.
SCRIPT = """(() => {
    const BEHIND = {"background-color": "rgba(0, 0, 0, 0)", "background-image": "none", "opacity": "1",
                    "filter": "none", "mix-blend-mode": "normal", "position": "static", "clip-path": "none"};
    const OWN = ["color", "-webkit-text-fill-color", "-webkit-text-stroke", "text-shadow", "font-size", "font-weight"];
    let looks, measured, passed, failed;
    const painted = style => Object.keys(BEHIND).map(name => [name, style.getPropertyValue(name)])
        .filter(([name, value]) => value !== BEHIND[name]).map(part => part.join(":")).join(";");
    const words = element => [...element.childNodes].filter(node => node.nodeType === 3)
        .map(node => node.data.trim()).join(" ").trim();
    // nor what is folded away, nor the formulas that are written for screen readers alone
    const isSeen = element => (words(element) || element.matches("input, select, textarea")) &&
        element.checkVisibility({visibilityProperty: true}) && !element.closest("mjx-assistive-mml");
    const named = (look, element) => `${look} ${words(element)}`;
    const measure = elements => {
        for (const element of elements) { element.removeAttribute("data-alike"); measured.add(element); }
        return elements.length > 0;
    };
    axe.configure({rules: [{id: "color-contrast", selector: "*:not([data-alike])"}]});
    axe.addReporter("learning", (results, options, done) => {
        for (const {passes, violations} of results.filter(rule => rule.id === "color-contrast")) {
            for (const {node} of passes) passed.add(node.element);
            for (const {node} of violations) failed.add(node.element);
        }
        axe.getReporter("v1")(results, options, done);
    });
    window.contrast = {
        mark(known, vain) {
            [known, vain] = [new Set(known), new Set(vain)];
            [looks, measured, passed, failed] = [new Map(), new Set(), new Set(), new Set()];
            const layers = new Map([[null, ""]]);
            const around = element => {
                if (!layers.has(element)) {
                    const own = painted(getComputedStyle(element));
                    layers.set(element, around(element.parentElement) + (own && `{${own}}`));
                }
                return layers.get(element);
            };
            for (const element of [...document.querySelectorAll("body *")].filter(isSeen)) {
                const style = getComputedStyle(element);
                const look = around(element) + OWN.map(name => style.getPropertyValue(name)).join("|");
                element.setAttribute("data-alike", "");
                if (known.has(look) || vain.has(named(look, element))) continue;
                if (!looks.has(look)) looks.set(look, []);
                looks.get(look).push(element);
            }
            for (const alike of looks.values()) alike.sort((a, b) => words(b).length - words(a).length);
            return measure([...looks.values()].flatMap(alike => alike.slice(0, 3)));
        },
        others: () => measure([...looks.values()].filter(alike => !alike.some(one => passed.has(one)))
            .flat().filter(one => !measured.has(one))),
        learnt() {
            const all = [...looks], inVain = one => measured.has(one) && !passed.has(one) && !failed.has(one);
            return [all.filter(([look, alike]) => alike.some(one => passed.has(one))).map(([look]) => look),
                    all.flatMap(([look, alike]) => alike.filter(inVain).map(one => named(look, one)))];
        },
    };
})()"""


class Looks:
    """The looks whose contrast was found sufficient so far, and the texts for which axe-core could not tell."""

    def __init__(self):
        self.known = set()
        self.vain = set()

    def violations(self, page):
        """What axe-core finds on this page, all its rules asked."""
        return self._ask(page, {"runOnly": RULES}, always=True)

    def contrast(self, page):
        """What axe-core finds of contrast alone, for a page in other colours than those in which all was asked."""
        return self._ask(page, CONTRAST, always=False)

    def _ask(self, page, options, always):
        inject(page)
        page.evaluate(f"() => {{ if (!window.contrast) {SCRIPT} }}")
        found = []
        learning = {"reporter": "learning"}
        new = page.evaluate(
            "([known, vain]) => contrast.mark(known, vain)", [list(self.known), list(self.vain)]
        )
        if new or always:
            found += found_by(page, options | learning)
        if page.evaluate("contrast.others()"):
            found += found_by(page, CONTRAST | learning)
        known, vain = page.evaluate("contrast.learnt()")
        self.known.update(known)
        self.vain.update(vain)
        return found
