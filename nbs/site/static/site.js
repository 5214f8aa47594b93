// What is wide can be scrolled with the keyboard, formulas too; a scrolled place is a stop of the Tab key and has a name.
(() => {
  "use strict";
  const PLACES = "div.cell_output, div.cell_output .output, .highlight pre, div.math, .table-wrapper, .pst-scrollable-table-container, dt.sig, mjx-container.wide";
  function look() {
    for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
      const room = formula.parentElement.closest("p, li, td, th, dd, h1, h2, h3, h4, blockquote, div");
      formula.classList.toggle("wide", room !== null && formula.firstElementChild.getBoundingClientRect().width > room.clientWidth);
    }
    for (const place of document.querySelectorAll(PLACES)) {
      if (place.scrollWidth > place.clientWidth + 1) {
        place.tabIndex = 0;
        if (!place.matches("pre, mjx-container, dt")) { place.setAttribute("role", "group"); place.setAttribute("aria-label", "scrolls sideways"); }
      } else if (!place.matches("pre")) place.removeAttribute("tabindex");
    }
  }
  addEventListener("load", () => {
    const ready = window.MathJax && window.MathJax.startup ? window.MathJax.startup.promise : Promise.resolve();
    ready.then(look, look);
  });
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(look, 150); });
  addEventListener("toggle", look, true);
})();
