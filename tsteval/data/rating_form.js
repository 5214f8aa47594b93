"use strict";
// One item at a time. Each rating is kept in the browser under a name of its own, so that a second window loses none;
// and in the history of the window, so that a reload loses none where the browser keeps nothing else, or has not yet.
{
  const part = (id) => document.getElementById(id);
  const { digest, rater, items, criteria, low, high } = JSON.parse(part("sheet").textContent);
  const groups = [...document.querySelectorAll("fieldset")], heading = part("place");
  const ratings = items.map(() => criteria.map(() => null));
  const place = (item, question) => `tsteval ${digest} ${items[item].code} ${criteria[question]}`, where = `tsteval ${digest} at`;
  let storage = null, at = 0, question = 0, unsaved = false;

  const valid = (text) => /^\d$/.test(text ?? "") && text >= low && text <= high ? Number(text) : null;
  const complete = (item) => ratings[item].every((rating) => rating !== null);
  const missing = () => ratings.flat().filter((rating) => rating === null).length;
  const tell = (text) => { part("told").textContent = text; };

  const keeping = (works) => {
    if (!works) storage = null;
    part("keeping").textContent = works ? "Your ratings are kept in this browser as you go. Save them to a file at the end."
      : "This browser does not keep ratings for this page. Save to a file before you close it; you can go on from that file.";
    part("keeping").className = works ? "quiet" : "alert";
  };
  const keep = (name, value) => {
    try { history.replaceState({ digest, ratings, at }, ""); } catch { /* some browsers limit how often */ }
    if (!storage) return;
    try { storage.setItem(name, String(value)); }
    catch { keeping(false); }
  };

  const mark = () => groups.forEach((group, number) => number === question ? group.setAttribute("aria-current", "true") : group.removeAttribute("aria-current"));
  const draw = () => {
    const item = items[at], done = items.filter((_, number) => complete(number)).length;
    heading.textContent = `Item ${at + 1} of ${items.length}`;
    for (const name of ["source", "output", "wanted"]) part(name).textContent = item[name];
    groups.forEach((group, number) => {
      for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.value) === ratings[at][number]));
    });
    part("bar").value = done;
    part("done").textContent = `${done} of ${items.length} rated`;
    part("before").disabled = at === 0;
    part("after").disabled = at === items.length - 1;
    part("open-item").disabled = done === items.length;
    mark();
  };
  const open = (item, told = "") => {
    at = item; question = 0;
    part("help").open = false;
    keep(where, at);
    draw();
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "nearest" });
    tell(told);
  };
  const ask = (number) => { question = number; mark(); groups[question].focus(); };
  const rate = (number, value) => {
    ratings[at][number] = value;
    unsaved = true;
    keep(place(at, number), value);
    draw();
  };
  const goOn = () => {
    if (question < groups.length - 1) { ask(question + 1); return; }
    const said = `Item ${at + 1}: ${criteria.map((name, number) => `${name} ${ratings[at][number] ?? "not rated"}`).join(", ")}.`;
    if (missing() === 0) { ask(question); tell(`${said} All ${items.length} items are rated. Save them to a file.`); }
    else if (at < items.length - 1) open(at + 1, said);
    else { ask(question); tell(`${said} This is the last item; ${missing()} ratings are missing.`); }
  };

  groups.forEach((group, number) => {
    group.addEventListener("focusin", () => { question = number; mark(); });
    for (const button of group.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        const value = Number(button.value), taken = ratings[at][number] === value;
        question = number;
        rate(number, taken ? null : value);
        tell(taken ? `${criteria[number]}: taken back.` : `${criteria[number]} ${value}.`);
      });
    }
  });
  part("before").addEventListener("click", () => open(at - 1));
  part("after").addEventListener("click", () => open(at + 1));
  part("open-item").addEventListener("click", () => {
    const order = items.map((_, step) => (at + 1 + step) % items.length);
    open(order.find((item) => !complete(item)));
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || part("form").hidden || event.target.id === "load") return;
    const inside = valid(event.key) !== null;
    if (inside) { rate(question, Number(event.key)); goOn(); }
    else if (/^\d$/.test(event.key)) tell(`${event.key} is not on the scale, which goes from ${low} to ${high}.`);
    else if (event.key === "ArrowRight" && at < items.length - 1) open(at + 1);
    else if (event.key === "ArrowLeft" && at > 0) open(at - 1);
    else if (event.key === "ArrowDown") ask(Math.min(question + 1, groups.length - 1));
    else if (event.key === "ArrowUp") ask(Math.max(question - 1, 0));
    else if (event.key === "Delete" || event.key === "Backspace") { rate(question, null); tell(`${criteria[question]}: taken back.`); }
    else return;
    event.preventDefault();
  });

  // The file holds codes and numbers only: no text in it could be read as a formula.
  const written = () => [["sheet", "code", ...criteria].map((name) => `"${name.replaceAll('"', '""')}"`).join(","),
    ...items.map((item, number) => [digest, item.code, ...ratings[number].map((rating) => rating ?? "")].join(","))].join("\r\n") + "\r\n";
  part("save").addEventListener("click", () => {
    const link = document.createElement("a"), address = URL.createObjectURL(new Blob([written()], { type: "text/csv" }));
    link.href = address;
    link.download = `${rater}.csv`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    unsaved = false;
    tell(`${rater}.csv was handed to the browser as a download. ${missing() ? `${missing()} ratings are missing.` : "It is complete: send it back."}`);
  });
  part("load").addEventListener("change", async () => {
    const file = part("load").files[0];
    if (!file) return;
    const bare = (line) => line.replaceAll('"', "").trim(), [head, ...rows] = (await file.text()).split(/\r?\n/).filter(Boolean);
    const saved = bare(head ?? "") === bare(written().split("\r\n")[0]), lines = rows.map((line) => line.split(",").map((cell) => cell.trim()));
    const places = new Map(items.map((item, number) => [item.code, number])), own = lines.filter((cells) => saved && cells[0] === digest && places.has(cells[1]));
    let found = 0;
    for (const [, code, ...cells] of own) {
      at = places.get(code);
      criteria.forEach((_, number) => { const value = valid(cells[number]); if (value !== null) { rate(number, value); found += 1; } });
    }
    part("load").value = "";
    const unrated = items.findIndex((_, number) => !complete(number));
    open(Math.max(unrated, 0), own.length ? `${found} ratings were read from ${file.name}.` : `${file.name} holds no rating of this sheet. Choose a file that was saved here; a table that was filled in goes back as it is.`);
  });

  const earlier = history.state?.digest === digest ? history.state : null;
  const stored = (name) => storage ? storage.getItem(name) : null;
  const read = (before) => items.forEach((_, item) => criteria.forEach((_, number) => {
    const text = stored(place(item, number));
    ratings[item][number] = text === null && before ? before.ratings[item][number] : valid(text);
  }));
  try { storage = window.localStorage; storage.setItem(where, storage.getItem(where) ?? "0"); } catch { storage = null; }
  read(earlier);
  at = Math.min(Math.max(earlier?.at ?? (parseInt(stored(where), 10) || 0), 0), items.length - 1);
  keeping(storage !== null);
  addEventListener("storage", (event) => { if (storage && event.key !== where) { read({ ratings: ratings.map((row) => [...row]) }); draw(); } });
  addEventListener("beforeunload", (event) => { if (!storage && unsaved) event.preventDefault(); });
  part("form").hidden = false;
  draw();
}
