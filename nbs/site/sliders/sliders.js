// Shows the state that the sliders choose. All numbers come from the package, in the page's data; nothing is computed here but places on the screen.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("states").textContent);
  const find = name => document.getElementById(name);
  const three = value => value.toFixed(3);
  const signed = value => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);

  function make(name, attributes = {}, text = "") {
    const svg = ["svg", "path", "line", "circle", "rect", "text", "g"].includes(name);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== "") element.textContent = text;
    return element;
  }
  function offer(select, names) { for (const [value, name] of names) select.append(make("option", { value }, name)); }
  function fill(table, rows) {
    table.tBodies[0].replaceChildren(...rows.map(([name, value, note = ""]) => {
      const row = make("tr");
      row.append(make("th", { scope: "row" }, name), make("td", {}, value));
      if (rows.some(cells => cells.length > 2)) row.append(make("td", {}, note));
      return row;
    }));
  }
  function say(slider, text) {
    slider.setAttribute("aria-valuetext", text);
    let shown = slider.nextElementSibling;
    if (!shown || shown.tagName !== "OUTPUT") slider.after(shown = make("output", { for: slider.id }));
    shown.textContent = text;
  }
  function drawing(width, height, words, parts) {
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
    svg.append(...parts);
    return svg;
  }
  // A curve with axes and a marked point. xs, ys: the states; at: the place of the chosen one.
  function curve(xs, ys, at, names, highest, words) {
    const left = 44, top = 34, width = 320, height = 222, low = Math.min(0, ...ys);
    const x = value => left + (value - xs[0]) / (xs.at(-1) - xs[0]) * (width - left - 16);
    const y = value => top + (highest - value) / (highest - low) * (height - top - 42);
    const parts = [];
    for (const tick of [0, 0.25, 0.5, 0.75, 1].map(part => part * highest))
      parts.push(make("line", { x1: left, x2: width - 16, y1: y(tick), y2: y(tick), class: "grid" }),
        make("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, tick.toFixed(2)));
    for (const tick of xs.filter((_, place) => place % (xs.length > 20 ? 10 : 1) === 0))
      parts.push(make("text", { x: x(tick), y: height - 24, "text-anchor": "middle" }, String(tick)));
    parts.push(make("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, names[0]));
    parts.push(make("text", { x: 4, y: 14 }, names[1]));
    parts.push(make("path", { class: "curve", d: ys.map((value, place) => `${place ? "L" : "M"}${x(xs[place]).toFixed(1)} ${y(value).toFixed(1)}`).join("") }));
    parts.push(make("line", { class: "chosen", x1: x(xs[at]), x2: x(xs[at]), y1: y(low), y2: y(ys[at]) }), make("circle", { class: "chosen", cx: x(xs[at]), cy: y(ys[at]), r: 6 }));
    return drawing(width, height, words, parts);
  }
  function watch(names, draw) { for (const name of names) find(name).addEventListener("input", draw); draw(); }

  const pages = {
    clipping() {
      offer(find("output"), data.outputs.map((output, place) => [place, output.words.join(" ")]));
      watch(["output", "kept"], () => {
        const output = data.outputs[find("output").value], slider = find("kept");
        slider.max = output.words.length;
        const length = Number(slider.value), state = output.states[length - 1];
        say(slider, `${length} of ${output.words.length}`);
        find("chips").replaceChildren(...state.marks.flatMap((mark, place) => [make("span", { class: `chip ${mark}`, title: mark }, output.words[place]), " "]));
        fill(find("clipped-numbers"), [["plain share", three(state.plain), "words that stand in the reference"],
          ["clipped precision", three(state.precision), `${state.matched} of ${length}`], ["brevity penalty", three(state.penalty), `${length} words against ${data.reference.length}`],
          ["BLEU-1", three(state.bleu), "clipped precision × brevity penalty"]]);
        find("clipping-said").textContent = `Plain share ${three(state.plain)}, clipped ${three(state.precision)}, BLEU-1 ${three(state.bleu)}.`;
      });
    },
    brevity() {
      watch(["c", "r"], () => {
        const c = Number(find("c").value), r = Number(find("r").value), penalties = data.penalties[r], value = penalties[c - 1];
        say(find("c"), String(c));
        say(find("r"), String(r));
        const words = `An output of ${c} against a reference of ${r}: the brevity penalty is ${three(value)}.`;
        find("penalty-drawing").replaceChildren(curve(data.lengths, penalties, c - 1, ["words in the output", "brevity penalty"], 1, words));
        find("brevity-said").textContent = words;
      });
    },
    emd() {
      offer(find("source"), Object.entries(data.sources).map(([name, shares]) => [name, `${name}: ${shares.map(share => share.toFixed(1)).join(", ")}`]));
      offer(find("cost"), data.costs.map(name => [name, name]));
      offer(find("target"), data.classes.map((name, place) => [place, name]));
      find("target").value = 2;
      watch(["source", "q1", "q2", "cost", "target"], event => {
        const first = find("q1"), second = find("q2");
        if (Number(first.value) + Number(second.value) > 10) { // what one takes, the other gives
          const other = event && event.target === second ? first : second;
          other.value = 10 - Number(event && event.target === second ? second.value : first.value);
        }
        const tenths = [Number(first.value), Number(second.value)];
        tenths.push(10 - tenths[0] - tenths[1]);
        tenths.slice(0, 2).forEach((share, place) => say([first, second][place], (share / 10).toFixed(1)));
        const state = data.states[[find("source").value, find("cost").value, tenths[0], tenths[1]].join("|")], goal = Number(find("target").value);
        const moves = state.plan.flatMap((row, i) => row.map((mass, j) => [mass, i, j])).filter(([mass, i, j]) => mass > 1e-6 && i !== j)
          .map(([mass, i, j]) => `${mass.toFixed(2)} from ${data.classes[i]} to ${data.classes[j]}`);
        const words = moves.length ? `Carried: ${moves.join(", ")}.` : "Nothing has to be carried.";
        find("flow").replaceChildren(flow(data.sources[find("source").value], tenths.map(share => share / 10), state.plan, words));
        fill(find("emd-numbers"), [["Earth Mover's Distance", three(state.distance)], [`STI towards ${data.classes[goal]}`, signed(state.sti[goal])],
          [`normalised intensity towards ${data.classes[goal]}`, signed(state.normalized[goal])]]);
        find("emd-said").textContent = `${words} Distance ${three(state.distance)}, STI ${signed(state.sti[goal])}.`;
      });
    },
    mask() {
      const sides = Object.keys(data.pair), rows = Math.max(...sides.map(side => data.words[side].length));
      find("shares").tBodies[0].replaceChildren(...Array.from({ length: rows }, (_, place) => {
        const row = make("tr");
        for (const side of sides) {
          const [word, share] = data.words[side][place] || ["", null];
          row.append(make("td", {}, word), make("td", {}, share === null ? "" : three(share)));
        }
        return row;
      }));
      watch(["threshold", "strategy"], () => {
        const place = Number(find("threshold").value), threshold = data.thresholds[place], chosen = data.strategies[find("strategy").value];
        say(find("threshold"), threshold.toFixed(2));
        fill(find("masked"), sides.map(side => [side, chosen[side][place]]));
        const words = `At a threshold of ${threshold.toFixed(2)} the content preservation score is ${three(chosen.cps[place])}.`;
        find("mask-drawing").replaceChildren(curve(data.thresholds, chosen.cps, place, ["threshold", "content preservation score"], 1, words));
        find("mask-said").textContent = words;
      });
    },
  };

  // Heaps at the left, holes at the right, bands between them.
  function flow(from, to, plan, words) {
    const height = 150, gap = 12, left = 104, right = 204, parts = [];
    const tops = side => side.map((_, place) => 22 + place * gap + height * side.slice(0, place).reduce((sum, share) => sum + share, 0));
    const starts = tops(from), ends = tops(to);
    parts.push(make("text", { x: left + 8, y: 12, "text-anchor": "middle", class: "quiet" }, "source"), make("text", { x: right + 8, y: 12, "text-anchor": "middle", class: "quiet" }, "output"));
    [[from, starts, left, left - 6, "end"], [to, ends, right, right + 22, "start"]].forEach(([side, at, x, text, anchor]) => side.forEach((share, place) => {
      parts.push(make("rect", { x, y: at[place], width: 16, height: Math.max(height * share, 0.5), class: "heap" }),
        make("text", { x: text, y: at[place] + height * share / 2 + 4, "text-anchor": anchor }, `${data.classes[place]}: ${share.toFixed(2)}`));
    }));
    const leave = [...starts], arrive = [...ends];
    plan.forEach((row, i) => row.forEach((mass, j) => {
      if (mass < 1e-6) return;
      const thick = height * mass, a = leave[i], b = arrive[j], middle = (left + 16 + right) / 2;
      parts.push(make("path", { class: i === j ? "stays" : "moves", d: `M${left + 16} ${a}C${middle} ${a} ${middle} ${b} ${right} ${b}V${b + thick}C${middle} ${b + thick} ${middle} ${a + thick} ${left + 16} ${a + thick}Z` }));
      if (thick >= 12) parts.push(make("text", { x: left + 24, y: a + thick / 2 + 4, class: "mass" }, mass.toFixed(2)));
      leave[i] += thick;
      arrive[j] += thick;
    }));
    return drawing(324, 30 + height + gap * 3, words, parts);
  }
  for (const [name, start] of Object.entries(pages)) if (find(name)) start();
})();
