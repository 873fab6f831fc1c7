// The selection panel: sliders that pick a trade-off, and sentences on the solution that they mark.

const STEPS = 1000;

function degreesAt(view, split, i) {
  const [first, second] = scaledAt(view, split, i);
  return (180 / Math.PI) * Math.atan2(second, first);
}

// The angles that candidates span: beyond them nothing changes, so the slider ends there.
function span(view, split) {
  const angles = candidates(view, split).map((i) => degreesAt(view, split, i));
  return [Math.min(...angles), Math.max(...angles)];
}

// Left is where the first task has the smaller loss.
function placeOfAngle(view, split, angle) {
  const [low, high] = span(view, split);
  return high > low ? (STEPS * (high - Math.min(high, Math.max(low, angle)))) / (high - low) : STEPS / 2;
}

function angleOfPlace(view, split, place) {
  const [low, high] = span(view, split);
  return high - (place / STEPS) * (high - low);
}

// More than two tasks: importances are powers of two relative to the direction of the balanced solution, so that the
// middle is the balanced one, and the units of losses do not matter.
function logs(view, split, i) {
  const scaled = scaledAt(view, split, i);
  const floor = 1e-6 * Math.max(...scaled, 1e-300);
  const exponents = scaled.map((value) => Math.log2(Math.max(value, floor)));
  const mean = exponents.reduce((sum, value) => sum + value, 0) / exponents.length;
  return exponents.map((value) => value - mean);
}

function reach(view, split) {
  const middle = logs(view, split, balanced(view, split));
  const all = candidates(view, split).flatMap((i) => logs(view, split, i).map((value, t) => Math.abs(value - middle[t])));
  return Math.max(1, ...all);
}

function importancesOf(view, split, direction) {
  const middle = logs(view, split, balanced(view, split));
  const floor = 1e-6 * Math.max(...direction);
  const exponents = direction.map((value) => Math.log2(Math.max(value, floor)));
  const mean = exponents.reduce((sum, value) => sum + value, 0) / exponents.length;
  return exponents.map((value, t) => middle[t] - (value - mean));
}

function directionOfImportances(view, split, importances) {
  const middle = logs(view, split, balanced(view, split));
  return unit(middle.map((value, t) => 2 ** (value - importances[t])));
}

function drawSliders() {
  const split = choosingSplit();
  const { view } = marked();
  if (view === null || !candidates(view, split).length) {
    rebuild("sliders", "none", () => [el("p", { class: "hint" }, "There is nothing to choose from yet.")]);
    return;
  }
  const runs = payload.runs.map(({ name }) => name);
  rebuild("sliders", JSON.stringify([view.name, view.tasks, split, runs]), () => [
    runPicker(view),
    view.tasks.length === 2 ? pairSlider(view) : importanceSliders(view),
    el("div", { class: "steps" },
      el("button", { type: "button", id: "previous", onclick: () => step(-1) }, "← Previous"),
      el("button", { type: "button", id: "balanced", onclick: () => change({ pick: { how: "balanced" } }) }, "Balanced"),
      el("button", { type: "button", id: "next", onclick: () => step(1) }, "Next →")),
  ]);
  const picker = byId("run-picker");
  if (picker) picker.value = view.name;
  moveSliders(view, split);
}

function runPicker(view) {
  if (payload.runs.length < 2) return null;
  const options = payload.runs.map(({ name }) => el("option", { value: name }, short(name)));
  const picked = (event) => change({ run: event.target.value, pick: choices.pick.how === "solution" ? { how: "balanced" } : choices.pick });
  return el("label", { class: "field" }, "Run ", el("select", { id: "run-picker", onchange: picked }, options));
}

function pairSlider(view) {
  const slider = el("input", {
    type: "range", id: "slider", min: 0, max: STEPS, step: 1, "aria-label": "Trade-off",
    oninput: (event) => {
      const angle = (Math.PI / 180) * angleOfPlace(marked().view, choosingSplit(), Number(event.target.value));
      pickDirection([Math.cos(angle), Math.sin(angle)]);
    },
    onkeydown: stepByKey,
  });
  return el("div", { class: "pair" },
    el("div", { class: "ends" }, el("span", {}, named(view.tasks[0], 22), " first"), el("span", {}, named(view.tasks[1], 22), " first")),
    slider, el("div", { class: "ticks", id: "ticks", "aria-hidden": "true" }));
}

function importanceSliders(view) {
  const sliders = view.tasks.map((task, t) => el("label", { class: "importance" }, el("span", { class: "what" }, named(task, 26)), el("input", {
    type: "range", id: `slider${t}`, min: -STEPS, max: STEPS, step: 1, "data-task": t, "aria-label": `Importance of ${task}`,
    oninput: (event) => {
      const [mark, split] = [marked(), choosingSplit()];
      const wished = importancesOf(mark.view, split, currentDirection());
      wished[t] = (Number(event.target.value) / STEPS) * reach(mark.view, split);
      pickDirection(directionOfImportances(mark.view, split, wished));
    },
  })));
  return el("fieldset", { class: "importances" }, el("legend", {}, "How much each task matters, from less to more"), sliders);
}

function moveSliders(view, split) {
  const direction = currentDirection();
  const { i } = marked();
  const alone = candidates(view, split).length < 2;
  if (view.tasks.length === 2) {
    const slider = byId("slider");
    slider.disabled = alone;
    if (direction && document.activeElement !== slider) slider.value = placeOfAngle(view, split, (180 / Math.PI) * Math.atan2(direction[1], direction[0]));
    else if (choices.pick.how !== "direction" && direction) slider.value = placeOfAngle(view, split, (180 / Math.PI) * Math.atan2(direction[1], direction[0]));
    if (direction) slider.setAttribute("aria-valuetext", `direction ${row(unit(direction), 2)}, ${solutionWords(view, i)}`);
    fill("ticks", candidates(view, split).map((j) => {
      const tick = el("span", { class: j === i ? "tick on" : "tick" });
      tick.style.left = `${(100 * placeOfAngle(view, split, degreesAt(view, split, j))) / STEPS}%`;
      return tick;
    }));
    return;
  }
  if (!direction) return;
  const [wished, far] = [importancesOf(view, split, direction), reach(view, split)];
  wished.forEach((value, t) => {
    const slider = byId(`slider${t}`);
    slider.disabled = alone;
    if (document.activeElement !== slider || choices.pick.how !== "direction") slider.value = Math.round((STEPS * value) / far);
  });
}

function step(by) {
  const { view, r, i } = marked();
  if (view === null) return;
  const order = ordered(view, choosingSplit());
  const at = order.indexOf(i);
  const next = at < 0 ? order[0] : order[Math.min(order.length - 1, Math.max(0, at + by))];
  if (next !== undefined) pickSolution(r, next);
}

function stepByKey(event) {
  const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  step(by);
}

function drawChosen() {
  const { view, i } = marked();
  const split = choosingSplit();
  byId("numbers").hidden = i === null;
  byId("export").hidden = i === null || !["finished", "stopped"].includes(view.state) || !view.exports; // without weights, there is nothing to export
  if (i === null) {
    fill("chosen", el("p", {}, "No solution is marked."));
    return;
  }
  fill("chosen",
    el("h3", { id: "chosen-name" }, capital(solutionWords(view, i)), el("span", { class: "of" }, " of ", named(view.name, 40))),
    el("p", { class: "hint" }, `${[preferenceWords(view, i), standing(view, split, i)].filter(Boolean).join("; ")}.`),
    el("p", { class: "hint" }, `Compared on ${splitName(split)}:`),
    el("ul", { class: "words", id: "words" }, sentences(view, split, i)),
    split === "test" ? el("p", { class: "hint" }, "Only test values are available: a choice by them is made on the test set.")
      : choices.split === "test" ? el("p", { class: "hint", id: "not-by-test" }, `Charts show test. Solutions are chosen on ${splitName(split)}, never on test.`) : null);
  const parts = commandFor(view, i).split(/ (?=--(?:k|export) )/);
  fill("command", parts.flatMap((part, at) => [at ? " " : "", el("span", { class: "part" }, part)]));
  fill("numbers", numbersOf(view, i));
}

// Losses and metrics of the marked solution on the split to choose by, and on test.
function numbersOf(view, i) {
  const splits = tableSplits().filter((split) => view.values[split]);
  const names = [...new Set(splits.flatMap((split) => Object.keys(view.values[split])))];
  const cell = (split, name) => el("td", { class: "number" }, shown((view.values[split][name] || [])[i] ?? null));
  return el("table", { class: "numbers" },
    el("thead", {}, el("tr", {}, el("th", {}), splits.map((split) => el("th", { scope: "col", class: "number" }, splitName(split))))),
    el("tbody", {}, names.map((name) => el("tr", {}, el("th", { scope: "row" }, named(labelOf(name), 40)), splits.map((split) => cell(split, name))))));
}

function sentences(view, split, i) {
  const items = [];
  const middle = balanced(view, split);
  const compare = (what, j) => {
    const pieces = comparison(view, split, i, j);
    if (pieces.length) items.push(el("li", {}, what, ": ", pieces.flatMap((piece, at) => (at ? [", ", ...piece] : piece)), "."));
  };
  if (i === middle) items.push(el("li", {}, "It is the balanced one: its largest regret is the smallest of this run."));
  else if (middle !== null) compare(`Against the balanced one, ${briefly(view, middle)}`, middle);
  for (const j of neighbours(view, split, i)) if (j !== middle || i === middle) compare(`Against its neighbour ${briefly(view, j)}`, j);
  const others = neighbours(view, split, i);
  if (!others.length) items.push(el("li", {}, "It is the only solution of this run to choose from."));
  else if (others.includes(middle) && i !== middle) items.push(el("li", { class: "hint" }, `The balanced one, ${briefly(view, middle)}, is its neighbour.`));
  return items;
}

function wireCopy() {
  byId("copy").addEventListener("click", async () => {
    const text = byId("command").textContent;
    let copied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      window.getSelection().selectAllChildren(byId("command"));
      copied = document.execCommand("copy");
    }
    byId("copy").textContent = copied ? "Copied" : "Press Ctrl+C";
    setTimeout(() => fill("copy", "Copy"), 1600);
  });
}
