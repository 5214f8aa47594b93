
"use strict";
// Headings of sortable tables become buttons: ascending, descending, and back to the order of the page.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows], status = table.parentElement.nextElementSibling;
  if (rows.length < 2) continue;
  const headers = [...table.tHead.rows[0].cells];
  const value = (row, place) => {
    const cell = row.cells[place], number = cell.dataset.value;
    return number === undefined ? cell.textContent.trim() : number === "" ? null : Number(number);
  };
  const before = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b);
  headers.forEach((header, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[header.getAttribute("aria-sort")];
      for (const other of headers) other.setAttribute("aria-sort", "none");
      header.setAttribute("aria-sort", next);
      const known = rows.filter((row) => value(row, place) !== null), unknown = rows.filter((row) => value(row, place) === null);
      const sign = next === "descending" ? -1 : 1;
      const sorted = next === "none" ? rows : [...known.sort((a, b) => sign * before(value(a, place), value(b, place))), ...unknown];
      body.append(...sorted);
      status.textContent = next === "none" ? "In the order of the file." : `Sorted by ${button.textContent.trim()}, ${next}.`;
    });
  });
}
// A phone begins with less; what is folded prints open.
for (const part of document.querySelectorAll(".wide-open")) part.open = innerWidth > 700;
const folded = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("main details:not([open])")) { part.open = true; folded.push(part); }
});
addEventListener("afterprint", () => { for (const part of folded.splice(0)) part.open = false; });
