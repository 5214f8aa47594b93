// What is wide can be scrolled with the keyboard, formulas too; a scrolled place is a stop of the Tab key and has a name.
(() => {
  "use strict";
  const scrolls = element => element.scrollWidth > element.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(element).overflowX)
    || element.scrollHeight > element.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(element).overflowY);
  // A picture is shown whole. Where that makes its letters small, a tap, or the button below it, turns it to its own size, which scrolls.
  function enlarge(picture) {
    const button = document.createElement("button");
    const say = () => { button.textContent = picture.classList.contains("large") ? "Show the whole picture" : "Enlarge the picture"; };
    const turn = () => { picture.classList.toggle("large"); say(); look(); };
    say();
    button.className = "enlarge";
    picture.classList.add("enlarges");
    for (const one of [picture, button]) one.addEventListener("click", turn);
    picture.after(button);
  }
  function look() {
    for (const picture of document.querySelectorAll("article .cell_output img")) {
      const small = picture.naturalWidth > 1.2 * picture.closest(".cell_output").clientWidth;
      if (picture.classList.contains("enlarges")) picture.nextElementSibling.hidden = !small;
      else if (small) enlarge(picture);
    }
    for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
      const room = formula.parentElement.closest("p, li, td, th, dd, h1, h2, h3, h4, blockquote, div");
      formula.classList.toggle("wide", room !== null && formula.firstElementChild.getBoundingClientRect().width > room.clientWidth);
    }
    for (const place of document.querySelectorAll("[data-stop]")) if (!scrolls(place)) ["tabindex", "role", "aria-label", "data-stop"].forEach(name => place.removeAttribute(name));
    for (const place of document.querySelectorAll("article *")) {
      if (place.tabIndex === 0 || !scrolls(place)) continue;
      place.tabIndex = 0;
      place.dataset.stop = "";
      if (place.matches("div")) { place.setAttribute("role", "group"); place.setAttribute("aria-label", "scrolls"); }  // other elements say what they are
    }
    document.documentElement.dataset.lookedAt = innerWidth;  // for who waits until the page has been fitted to its window
  }
  addEventListener("load", () => {
    const ready = window.MathJax && window.MathJax.startup ? window.MathJax.startup.promise : Promise.resolve();
    ready.then(look, look);
  });
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(look, 150); });
  addEventListener("toggle", look, true);
})();
