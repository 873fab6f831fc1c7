// The selection panel: sliders that stop at models, a comparison in words, a way to move on, and details in a fold.

function drawSliders() {
  const split = choosingSplit();
  const { view } = marked();
  if (view === null || !candidates(view, split).length) {
    rebuild("sliders", JSON.stringify(["none", payload.runs.map(({ name }) => name)]), () => [runPicker(), el("p", { class: "hint" }, "No model is left to choose from.")]);
    return;
  }
  const names = taskNames(split);
  const runs = payload.runs.map(({ name }) => name);
  rebuild("sliders", JSON.stringify([view.name, names, split, runs]), () => [
    runPicker(),
    view.tasks.length === 2 ? pairSlider(view) : taskSliders(names),
    el("div", { class: "steps" },
      el("button", { type: "button", id: "previous", onclick: () => step(-1) }, "← Previous"),
      el("button", { type: "button", id: "balanced", onclick: () => change({ pick: { how: "balanced" } }) }, "Balanced"),
      el("button", { type: "button", id: "next", onclick: () => step(1) }, "Next →")),
  ]);
  moveSliders(view, split);
}

// "Any run" leaves the choice of the run to the page.
function runPicker() {
  if (payload.runs.length < 2) return null;
  const options = [el("option", { value: "" }, "best on validation"), ...payload.runs.map(({ name }) => el("option", { value: name }, short(name)))];
  options[0].textContent = `best on ${splitName(choosingSplit())}`;
  const picked = (event) => change({ run: event.target.value || null, pick: choices.pick.how === "model" ? { how: "balanced" } : choices.pick });
  const made = el("select", { id: "run-picker", onchange: picked }, options);
  return el("label", { class: "field" }, "Run ", made);
}

function pairSlider(view) {
  return el("div", { class: "pair" },
    el("div", { class: "ends" }, el("span", {}, "better ", named(view.tasks[0], 22)), el("span", {}, "better ", named(view.tasks[1], 22))),
    slider("slider", "Trade-off", null), el("div", { class: "ticks", id: "ticks", "aria-hidden": "true" }));
}

// One slider per task, from its worst to its best model.
function taskSliders(names) {
  return el("fieldset", { class: "importances" }, el("legend", {}, "Each slider goes from the worst to the best model of its task"),
    names.map((name, t) => el("label", { class: "importance" }, el("span", { class: "what" }, named(payload.tasks[t], 26)), slider(`slider${t}`, labelOf(name), name), el("output", { id: `value${t}` }))));
}

function slider(id, label, name) {
  return el("input", {
    type: "range", id, min: 0, max: 1, step: 1, "aria-label": label,
    oninput: (event) => {
      const { view, r } = marked();
      pickModel(r, ordered(view, choosingSplit(), name)[Number(event.target.value)]);
    },
  });
}

function moveSliders(view, split) {
  const { i } = marked();
  const picker = byId("run-picker");
  if (picker) picker.value = choices.pick.how === "model" ? view.name : choices.run || "";
  const names = view.tasks.length === 2 ? [null] : taskNames(split);
  names.forEach((name, t) => {
    const order = ordered(view, split, name);
    const made = byId(name === null ? "slider" : `slider${t}`);
    made.max = Math.max(1, order.length - 1);
    made.disabled = order.length < 2;
    made.value = Math.max(0, order.indexOf(i));
    made.setAttribute("aria-valuetext", `${modelWords(view, i)}${name ? `, ${valueText(name, valueAt(view, split, name, i))}` : ""}`);
    if (name !== null) fill(`value${t}`, valueText(name, valueAt(view, split, name, i), 3));
  });
  if (view.tasks.length === 2) drawTicks(ordered(view, split), i);
}

function drawTicks(order, i) {
  fill("ticks", order.map((j, at) => {
    const tick = el("span", { class: j === i ? "tick on" : "tick" });
    tick.style.left = `${order.length > 1 ? (100 * at) / (order.length - 1) : 0}%`;
    return tick;
  }));
}

function step(by) {
  const { view, r, i } = marked();
  if (view === null) return;
  const order = ordered(view, choosingSplit());
  const at = order.indexOf(i);
  const next = at < 0 ? order[0] : order[Math.min(order.length - 1, Math.max(0, at + by))];
  if (next !== undefined) pickModel(r, next);
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
  if (i === null) {
    fill("chosen");
    fill("details");
    return;
  }
  fill("chosen",
    el("h3", { id: "chosen-name" }, capital(modelWords(view, i)), el("span", { class: "of" }, " of ", named(view.name, 40), favouring(view, i))),
    numbersOf(view, i),
    el("ul", { class: "words", id: "words" }, sentences(view, split, i)),
    split === "test" ? el("p", { class: "hint" }, "Only test values are available: a choice by them is made on the test set.")
      : choices.split === "test" ? el("p", { class: "hint", id: "not-by-test" }, `Charts show test. Models are chosen on ${splitName(split)}, never on test.`) : null);
  drawDetails(view, split, i);
}

function favouring(view, i) {
  const words = favourWords(view, i);
  return words === "–" ? null : [", ", el("span", { class: "tipped", title: preferenceWords(view, i), tabindex: "0" }, `favours: ${words}`)];
}

// Losses and metrics of the marked model on the split to choose by, and on test.
function numbersOf(view, i) {
  const splits = tableSplits().filter((split) => view.values[split]);
  const names = [...new Set(splits.flatMap((split) => Object.keys(view.values[split])))];
  const sorted = [...names.filter((name) => !isLoss(name)), ...names.filter(isLoss)];
  const cell = (split, name) => el("td", { class: "number" }, valueText(name, valueAt(view, split, name, i)));
  return el("table", { class: "numbers", id: "numbers" },
    el("thead", {}, el("tr", {}, el("td", {}), splits.map((split) => el("th", { scope: "col", class: "number" }, splitName(split))))),
    el("tbody", {}, sorted.map((name) => el("tr", {}, el("th", { scope: "row" }, named(labelOf(name), 40)), splits.map((split) => cell(split, name))))));
}

function sentences(view, split, i) {
  const items = [];
  const compare = (what, j) => {
    const pieces = comparison(view, split, i, j);
    if (pieces.length) items.push(el("li", {}, what, ": ", joined(pieces), "."));
  };
  const near = neighbours(view, split, i);
  for (const j of near) compare(`Against its neighbour ${briefly(view, j)}`, j);
  if (!near.length) items.push(el("li", {}, limitList(choices.limits).length ? "It is the only model of this run within your limits." : "It is the only model of this run to choose from."));
  return items;
}

// Improve this, keep that: a move from the marked model.
function drawMove() {
  const { view, i } = marked();
  const split = choosingSplit();
  const names = readerNames(split);
  byId("move").hidden = i === null || view.subproblems.length < 2;
  if (i === null) return;
  rebuild("move", JSON.stringify([names, split]), () => [el("details", { id: "mover" },
    el("summary", {}, "Move on from this model"),
    el("div", { class: "wishes" }, names.map((name) => el("label", { class: "wish" }, el("span", { class: "what" }, named(labelOf(name), 30)),
      el("select", { "data-wish": name, "aria-label": `What should happen to ${labelOf(name)}`, onchange: () => fill("moved") },
        [["free", "may get worse"], ["keep", "keep"], ["improve", "improve"]].map(([value, words]) => el("option", { value }, words)))))),
    el("button", { type: "button", id: "go", onclick: move }, "Find a model"),
    el("p", { class: "hint", id: "moved", role: "status" }))]);
}

function move() {
  const { view, r, i } = marked();
  const split = choosingSplit();
  const wishes = Object.fromEntries([...byId("move").querySelectorAll("[data-wish]")].map((made) => [made.dataset.wish, made.value]));
  if (!Object.values(wishes).includes("improve")) {
    fill("moved", "Say first what should improve.");
    return;
  }
  const { j, kept } = moveFrom(view, split, i, wishes);
  if (kept) {
    fill("moved", `From ${modelWords(view, i)} to ${modelWords(view, j)}: `, joined(comparison(view, split, j, i)), ".");
    pickModel(r, j);
  } else if (j === null) {
    fill("moved", "No model", ofRun(view), " improves all of these.");
  } else {
    fill("moved", `No model improves this and keeps that. ${capital(modelWords(view, j))} comes nearest: `, joined(comparison(view, split, j, i)), ". ",
      el("button", { type: "button", class: "relax", onclick: () => pickModel(r, j) }, `Take ${modelWords(view, j)}`));
  }
}

// Regions are constraints of training.
function isOnTarget(view, i) {
  if (view.in_region) return view.in_region[i];
  return { feasible: true, infeasible: false }[view.status[i]] ?? null;
}

function targetWords(view, i) {
  const on = isOnTarget(view, i);
  return on === null ? "–" : on ? "on target" : "off target";
}

function angleAt(view, i) {
  return view.angles ? view.angles[i] : null;
}

function drawDetails(view, split, i) {
  const facts = [
    view.reading === "none" ? null : [`Trained for the ${view.reading}`, row(view.preferences[i])],
    isOnTarget(view, i) === null ? null : ["On target", `${targetWords(view, i)}${isNumber(angleAt(view, i)) ? `, ${shown(angleAt(view, i), 2)}° from its direction, on training` : ""}`],
    ["Status at the end of training", view.status[i]],
    view.kept ? ["Weights of epoch", String(view.kept[i])] : null,
    isFinitePoint(lossesAt(view, split, i)) && !candidates(view, split, {}).includes(i) ? ["Dominated", `another model of this run is better in every task on ${splitName(split)}`] : null,
  ].filter((fact) => fact);
  const open = byId("fold") ? byId("fold").open : false;
  fill("details", el("details", { id: "fold", open }, el("summary", {}, "Details of this model"),
    el("dl", {}, facts.map(([term, words]) => [el("dt", {}, term), el("dd", {}, words)]).flat())));
}
