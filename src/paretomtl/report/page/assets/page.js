// The page as a whole: what the user chose, and render(payload), which may be called again and keeps those choices.

const SPLITS = ["val", "train", "test"]; // the first one available ranks; test never does
const choices = {
  split: null, x: null, y: null, run: null, pick: { how: "balanced" }, rays: true, log: null, beyond: false, theme: null,
  hidden: new Set(), brushes: {}, parallel: "losses", sort: {},
};
let payload = null;
let mark = { view: null, r: null, i: null };
let queued = null;

function visibleRuns() {
  return payload.runs.map((view, r) => ({ view, r })).filter(({ view }) => !choices.hidden.has(view.name) && view.values[choices.split]);
}

// The split to choose by: the one that is shown, but never test. The rule is that of Front.ranking_split.
function choosingSplit() {
  return choices.split === "test" ? availableSplits()[0] : choices.split;
}

// The splits in tables: the one to choose by, and test next to it.
function tableSplits() {
  return availableSplits().filter((split) => split === choosingSplit() || split === "test");
}

// The run to choose from, and the place in it of the marked solution.
function marked() {
  return mark;
}

function findMark() {
  const split = choosingSplit();
  const able = payload.runs.filter((view) => candidates(view, split).length);
  const usual = able.find(({ reading }) => reading === "direction") || able[0] || payload.runs[0] || null;
  const view = payload.runs.find(({ name }) => name === choices.run) || usual;
  if (view === null) return { view, r: null, i: null };
  const { how, direction, k } = choices.pick;
  let i = null;
  if (how === "solution") i = view.subproblems.indexOf(k);
  if (how === "direction") i = nearest(view, split, direction);
  if (i === null || i < 0 || !view.values[split]) i = balanced(view, split);
  return { view, r: payload.runs.indexOf(view), i };
}

// The requested direction of scaled losses, or else that of the marked solution.
function currentDirection() {
  if (choices.pick.how === "direction") return choices.pick.direction;
  if (mark.i === null) return null;
  const scaled = scaledAt(mark.view, choosingSplit(), mark.i);
  return isFinitePoint(scaled) && length(scaled) > 0 ? unit(scaled) : null;
}

function pickSolution(r, i) {
  const view = payload.runs[r];
  change({ run: view.name, pick: { how: "solution", k: view.subproblems[i] } });
}

function pickDirection(direction) {
  change({ pick: { how: "direction", direction } });
}

function change(some) {
  Object.assign(choices, some);
  const all = Object.keys(some).some((name) => name !== "pick") || !("pick" in some);
  if (queued) {
    queued.all = queued.all || all;
    return;
  }
  queued = { all };
  requestAnimationFrame(() => {
    const wanted = queued;
    queued = null;
    refresh(wanted.all);
  });
}

function render(next) {
  payload = { ...next, tasks: next.runs.length ? next.runs[0].tasks : [] };
  refresh();
}

// If the ray moves without reaching another solution, only the ray is redrawn.
function refresh(all = true) {
  settle();
  const before = mark;
  mark = findMark();
  const some = payload.runs.some((view) => Object.keys(view.values).length);
  byId("main").hidden = !some;
  drawHeader();
  if (!some) {
    waiting.clear();
    return;
  }
  if (!all && before.view === mark.view && before.i === mark.i) {
    drawSliders();
    chartPlane();
    drawVisible();
    return;
  }
  waiting.clear();
  keepFocus(() => {
    drawControls();
    drawLegend();
    drawSliders();
    drawChosen();
    drawParallel();
    chartSpace();
    chartPlane();
    chartCurves();
    drawSolutions();
    drawRuns();
  });
  drawVisible();
}

function chartPlane() {
  chart("plane", () => drawPlane("plane", choices.x, choices.y));
}

// Replace choices that the payload does not offer by the first one that it does.
function settle() {
  document.documentElement.dataset.theme = theme();
  const splits = availableSplits();
  if (!splits.includes(choices.split)) choices.split = splits[0] || null;
  const names = availableNames();
  if (!names.includes(choices.x)) choices.x = names[0];
  if (!names.includes(choices.y)) choices.y = names[1] || names[0];
}

function availableSplits() {
  return SPLITS.filter((split) => payload.runs.some((view) => view.values[split]));
}

function availableNames() {
  return [...new Set(payload.runs.flatMap((view) => Object.keys(view.values[choices.split] || {})))];
}

function rebuild(id, key, make) {
  const place = byId(id);
  if (place.dataset.made === key) return;
  place.dataset.made = key;
  fill(id, make());
}

// Keep the keyboard focus across a redraw.
function keepFocus(make) {
  const { key } = document.activeElement ? document.activeElement.dataset : {};
  make();
  if (!key) return;
  const again = [...document.querySelectorAll("[data-key]")].find((place) => place.dataset.key === key);
  if (again && again !== document.activeElement) again.focus({ preventScroll: true });
}

function keepScroll(selector, make) {
  const before = document.querySelector(selector);
  const left = before ? before.scrollLeft : 0;
  make();
  const after = document.querySelector(selector);
  if (after) after.scrollLeft = left;
}

function segmented(id, label, options, value, picked) {
  const inputs = options.map(([key, words]) => el("label", {},
    el("input", { type: "radio", name: id, value: key, checked: key === value, "data-key": `${id}-${key}`, onchange: () => picked(key) }), el("span", {}, words)));
  return el("fieldset", { class: "segmented", id }, el("legend", {}, label), inputs);
}

function box(id, label, value, changed) {
  return el("label", { class: "check" }, el("input", { type: "checkbox", id, "data-key": id, checked: value, onchange: (event) => changed(event.target.checked) }), label);
}

function drawControls() {
  const splits = availableSplits();
  const pairs = payload.tasks.length === 2 || payload.tasks.length === 3;
  const rays = pairs && payload.runs.some((view) => view.reading === "direction");
  const reference = commonReference();
  const far = Boolean(reference) && visibleRuns().some(({ view }) => view.subproblems.some((_, i) => isBeyond(view, choices.split, i)));
  const curves = payload.runs.some((view) => view.history.epochs.length);
  rebuild("controls", JSON.stringify([splits, choices.split, rays, choices.rays, far, choices.beyond, curves, isLogarithmic()]), () => [
    segmented("splits", "Values on", splits.map((split) => [split, splitName(split)]), choices.split, (split) => change({ split, brushes: {} })),
    rays ? box("rays", "Preferences and regions", choices.rays, (value) => change({ rays: value })) : null,
    far ? box("beyond", `Losses beyond ${row(reference, 2)}`, choices.beyond, (value) => change({ beyond: value })) : null,
    !curves ? null : box("log", "Logarithmic training losses", isLogarithmic(), (value) => change({ log: value })),
  ]);
  const names = availableNames();
  rebuild("axes", JSON.stringify([names, choices.x, choices.y]), () => ["y", "x"].map((side) => el("label", { class: "field" }, side === "x" ? "Across " : "Up ",
    el("select", { id: `axis-${side}`, "data-key": `axis-${side}`, onchange: (event) => change({ [side]: event.target.value }) },
      names.map((name) => el("option", { value: name, selected: name === choices[side] }, short(labelOf(name))))))));
  fill("plane-title", payload.tasks.length === 2 ? "The front" : "Any two");
  const { view } = mark;
  const drawn = view !== null && choices.rays && hasRays(view, choices.x, choices.y);
  const grey = drawn && view.reading === "direction" && view.preferences.length <= CROWD ? "Dashed rays are preferences, every other region is grey. " : "";
  const left = far && !showsBeyond(choices.split);
  fill("space-hint", `${left ? `Solutions beyond the reference point ${row(reference, 2)} are left out of the 3D view. ` : ""}Drag to turn, or use the arrow keys. Click a solution to mark it.`);
  const out = far && !choices.beyond && isLossPlane({ tasks: payload.tasks }, choices.x, choices.y);
  fill("plane-hint", `${out ? `Solutions beyond the reference point ${row(reference, 2)} lie outside this view. ` : ""}${grey}${drawn ? "Drag the round end of the ray, or click a solution." : "Click a solution to mark it."} Hollow ones are dominated on ${splitName(choices.split)}.`);
}

function drawLegend() {
  const key = JSON.stringify([payload.runs.map((view) => [view.name, view.state, view.epoch]), [...choices.hidden], theme()]);
  rebuild("legend", key, () => payload.runs.map((view, r) => {
    const toggle = (event) => {
      const hidden = new Set(choices.hidden);
      if (event.target.checked) hidden.delete(view.name);
      else hidden.add(view.name);
      change({ hidden });
    };
    const state = view.state === "finished" ? "" : `, ${view.state}${isNumber(view.epoch) ? `, epoch ${view.epoch}` : ""}${isNumber(view.epochs) ? ` of ${view.epochs}` : ""}`;
    return el("label", { class: "entry" },
      el("input", { type: "checkbox", checked: !choices.hidden.has(view.name), "data-key": `run-${view.name}`, onchange: toggle }),
      swatch(r), el("span", {}, named(view.name, 40), el("span", { class: "hint" }, state)));
  }));
}

function drawHeader() {
  fill("title", named(payload.title, 90));
  document.title = payload.title;
  fill("theme", theme() === "dark" ? "Light" : "Dark");
  byId("theme").setAttribute("aria-label", theme() === "dark" ? "Use light colours" : "Use dark colours");
  fill("lede", ledeOf());
  fill("notices", noticesOf().map((notice) => el("p", { class: "notice" }, notice)));
  fill("footer",
    el("details", {}, el("summary", {}, "How to read this page"), [eachSolution(), ...READING].map((text) => el("p", {}, text))),
    el("p", {}, `Made ${payload.made} by paretomtl ${payload.version}.`));
}

function eachSolution() {
  const wished = payload.runs.some((view) => view.reading !== "none");
  return `Each solution is a trained model${wished ? ", one for each preference" : ""}. No solution is better than another in every task, except where one is called dominated.`;
}

const READING = [
  "A direction is where the vector of losses should point: a large part allows a large loss, so (0, 1) favours the first task. An importance is the opposite: a large part asks for a small loss. The region of a preference holds the loss vectors that are nearer to it than to any other preference.",
  "Solutions are chosen on validation, or on training if there is no such split, and never on test: a solution that was chosen on test would look better there than it is. Test is shown next to it.",
  "The balanced solution is the one whose largest regret is smallest. The regret in a task is how far a loss lies between the best and the worst of the front, from 0 to 1. Solutions with a loss above the run's reference point, such as diverged ones, do not count.",
  "Accuracies and other shares are compared in percentage points, everything else in its own unit and in per cent of the other solution.",
];

function ledeOf() {
  if (!payload.runs.length) return ["There is nothing to show yet."];
  const total = payload.runs.reduce((sum, view) => sum + view.subproblems.length, 0);
  const problems = [...new Set(payload.runs.map((view) => view.problem))];
  const tasks = payload.tasks.map((task, t) => [t === 0 ? "" : t === payload.tasks.length - 1 ? " and " : ", ", named(task, 30)]).flat();
  const [first, ...others] = payload.runs;
  const runs = others.length ? [" of ", counted(payload.runs.length, "run")] : first.seed === null ? [" (", named(payload.styles[0].label), ")"] : [" of one run of ", named(payload.styles[0].label)];
  const start = [counted(total, "solution"), ...runs, " on ", named(problems.join(", "), 60), total === 1 ? ", a trade-off between " : ", each a different trade-off between ", ...tasks];
  if (mark.i === null) return [...start, "; none is marked yet."];
  const { how, direction } = choices.pick;
  let why = "the balanced one";
  if (how === "direction") why = `nearest to the direction ${row(unit(direction), 2)} of the losses`;
  if (how === "solution" && mark.view.subproblems[mark.i] === choices.pick.k) why = "which you picked";
  return [...start, "; marked is ", el("strong", {}, solutionWords(mark.view, mark.i)), " of ", named(mark.view.name), `, ${why} on ${splitName(choosingSplit())}.`];
}

function noticesOf() {
  return payload.runs.flatMap((view) => [...stateNotices(view), ...frontNotices(view)]);
}

function stateNotices(view) {
  const name = () => named(view.name);
  const notes = view.note ? [[name(), `: ${view.note}`]] : [];
  if (!Object.keys(view.values).length) notes.push(["There is nothing to show yet of ", name(), ": its first epoch is not done."]);
  if (payload.live !== null) return notes; // the news of a live page say more
  if (view.state === "stopped") notes.push([name(), ` was stopped early, after ${counted(view.epoch, "epoch")}.`]);
  if (view.state === "broken") notes.push([name(), " broke off; what it had stored is shown."]);
  return notes;
}

function frontNotices(view) {
  const split = choosingSplit();
  if (!Object.keys(view.values).length) return [];
  if (!view.values[split]) return [[named(view.name), ` has no values on ${splitName(split)}.`]];
  const count = view.subproblems.length;
  const lost = view.subproblems.filter((_, i) => !isFinitePoint(lossesAt(view, split, i))).length;
  if (lost === count) return [["No solution of ", named(view.name), ` has finite losses on ${splitName(split)}: there is nothing to draw or to choose.`]];
  const notes = lost ? [[`${counted(lost, "solution")} of `, named(view.name), ` ${lost === 1 ? "has" : "have"} losses on ${splitName(split)} that are not finite, and ${lost === 1 ? "is" : "are"} left out.`]] : [];
  const best = candidates(view, split);
  if (best.length === 1 && count - lost > 1) notes.push([`${capital(solutionWords(view, best[0]))} dominates all other solutions of `, named(view.name), ` on ${splitName(split)}: there is no trade-off to choose.`]);
  const better = payload.runs.find((other) => other !== view && other.values[split] && isBeaten(view, other, split));
  if (better) notes.push(["Every solution of ", named(view.name), " is dominated by one of ", named(better.name), ` on ${splitName(split)}.`]);
  return notes;
}

function wire() {
  byId("theme").addEventListener("click", () => change({ theme: theme() === "dark" ? "light" : "dark" }));
  byId("plane").addEventListener("keydown", stepByKey);
  wireHandle();
  wireSpace();
  wireLazyCharts();
  wireCopy();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({}));
  window.matchMedia("print").addEventListener("change", fitPaper);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) change({});
    width = window.innerWidth;
  });
}

// Charts are drawn for the width of the screen; paper has another width.
function fitPaper() {
  refresh();
  for (const place of document.querySelectorAll(".js-plotly-plot")) if (place.offsetParent) Plotly.Plots.resize(place);
}

wire();
render(JSON.parse(byId("payload").textContent));
