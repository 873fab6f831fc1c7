// The page as a whole: what the reader chose, and render(payload), which may be called again and keeps those choices.

const SPLITS = ["val", "train", "test"]; // the first one available ranks; test never does
const choices = {
  split: null, kind: null, x: null, y: null, run: null, pick: { how: "balanced" }, limits: {}, targets: false, outliers: false, log: null, theme: null,
  hidden: new Set(), rows: false, order: [], colour: "", tab: "pairs", sort: {},
};
let payload = null;
let mark = { view: null, r: null, i: null };
let queued = null;
let printing = false;

function visibleRuns() {
  return payload.runs.map((view, r) => ({ view, r })).filter(({ view }) => !choices.hidden.has(view.name) && view.values[choices.split]);
}

// The runs to choose from: the one that was picked, or all that are shown. Separate networks are not a front.
function choosableRuns(split) {
  const able = payload.runs.filter((view) => view.values[split]);
  const picked = able.filter(({ name }) => name === choices.run);
  if (picked.length) return picked;
  const seen = able.filter(({ name, separate }) => !choices.hidden.has(name) && !separate);
  return seen.length ? seen : able;
}

// The split to choose by: the one that is shown, but never test. The rule is that of Front.ranking_split.
function choosingSplit() {
  return choices.split === "test" ? availableSplits()[0] : choices.split;
}

// The splits in tables: the one to choose by, and test next to it.
function tableSplits() {
  return availableSplits().filter((split) => split === choosingSplit() || split === "test");
}

// The run to choose from, and the place in it of the marked model; null if no model is left.
function marked() {
  return mark;
}

function findMark() {
  const split = choosingSplit();
  const at = (view, i) => ({ view, r: payload.runs.indexOf(view), i });
  const { how, name, run, k } = choices.pick;
  const own = how === "model" ? payload.runs.find((view) => view.name === run && view.values[split]) : null;
  if (own && own.subproblems.includes(k)) return at(own, own.subproblems.indexOf(k));
  const runs = choosableRuns(split);
  if (how === "best") {
    const found = runs.map((view) => at(view, bestBy(view, split, name))).filter(({ i }) => i !== null);
    if (found.length) return found.reduce((a, b) => (isBetter(name, valueAt(b.view, split, name, b.i), valueAt(a.view, split, name, a.i)) ? b : a));
    return { view: runs[0] || payload.runs[0] || null, r: null, i: null };
  }
  const able = runs.map((view) => at(view, balanced(view, split))).filter(({ i }) => i !== null);
  const unbeaten = able.filter(({ view }) => !isBeatenByAny(view, split));
  const found = unbeaten.length ? unbeaten : able;
  const volume = ({ view }) => (isNumber(view.hypervolume[split]) ? view.hypervolume[split] : -Infinity);
  if (found.length) return found.reduce((a, b) => (volume(b) > volume(a) ? b : a));
  return runs.length ? at(runs[0], null) : { view: payload.runs[0] || null, r: null, i: null };
}

function isBetter(name, one, other) {
  return payload.runs.some((view) => view.better[name] === "lower") ? one < other : one > other;
}

function pickModel(r, i) {
  const view = payload.runs[r];
  change({ pick: { how: "model", run: view.name, k: view.subproblems[i] } });
}

// Changes are drawn once per frame.
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
  payload.shares = sharesOf(payload.runs);
  payload.reference = commonReference(payload);
  refresh();
}

// The largest reference point that runs came with, which every model should beat. One that was only made to compare
// runs is just beyond the best models, and says nothing about outliers.
function commonReference({ runs, tasks }) {
  const references = runs.map((view) => view.own_reference).filter((point) => point && isFinitePoint(point));
  return references.length ? tasks.map((_, t) => Math.max(...references.map((point) => point[t]))) : null;
}

// Metrics where higher is better and all values lie between 0 and 1.
function sharesOf(runs) {
  const names = new Set(runs.flatMap((view) => Object.keys(view.better).filter((name) => view.better[name] === "higher")));
  return new Set([...names].filter((name) => {
    const values = runs.flatMap((view) => Object.values(view.values).flatMap((table) => table[name] || [])).filter(isNumber);
    return values.length > 0 && values.every((value) => value >= 0 && value <= 1);
  }));
}

// If only the mark moves within its run, text and mark come first, and charts after.
function refresh(all = true) {
  settle();
  const before = mark;
  mark = findMark();
  const some = payload.runs.some((view) => Object.keys(view.values).length);
  byId("main").hidden = !some;
  drawHeader();
  if (!some) {
    waiting.clear();
    byId("bar").hidden = true;
    return;
  }
  const moved = !all && before.view === mark.view && mark.i !== null && before.i !== null;
  if (moved && before.i === mark.i) {
    drawAnswer();
    drawLimits();
    return;
  }
  keepFocus(() => {
    drawAnswer();
    drawBar();
    drawSliders();
    drawLimits();
    drawMove();
    drawChosen();
    if (moved) {
      markLine();
      markRows();
    }
  });
  if (!moved) {
    waiting.clear();
    keepFocus(drawRest);
  }
  chartPlane();
  chartSpace();
  chartCurves();
  if (moved) drawNear();
  else drawVisible();
}

function drawRest() {
  drawControls();
  drawLegend();
  drawTabs();
  drawParallel();
  drawModels();
  drawRuns();
}

function chartPlane() {
  chart("plane", () => drawPlane("plane", choices.x, choices.y));
}

// Replace choices that the payload does not offer by the first one that it does.
function settle() {
  document.documentElement.dataset.theme = theme();
  const splits = availableSplits();
  if (!splits.includes(choices.split)) choices.split = splits[0] || null;
  const names = availableNames(choices.split);
  if (choices.kind === null || !names.some((name) => !isLoss(name))) choices.kind = names.some((name) => !isLoss(name)) ? "metrics" : "losses";
  const [x, y] = axisNames(choices.split);
  if (!names.includes(choices.x)) choices.x = x || names[0];
  if (!names.includes(choices.y)) choices.y = y || x || names[0];
}

function availableSplits() {
  return SPLITS.filter((split) => payload.runs.some((view) => view.values[split]));
}

function availableNames(split) {
  return [...new Set(payload.runs.flatMap((view) => Object.keys(view.values[split] || {})))];
}

// One name per task, as the reader measures it: its metric if there is one, else its loss. Metrics that are not named
// after tasks are taken in order if there are enough of them.
function taskNames(split) {
  const metrics = availableNames(split).filter((name) => !isLoss(name));
  const own = payload.tasks.map((task) => metrics.find((name) => name.startsWith(`${task} `)) || null);
  if (own.every((name) => name === null) && metrics.length >= payload.tasks.length) return metrics.slice(0, payload.tasks.length);
  return own.map((name, t) => name || `loss:${payload.tasks[t]}`);
}

function axisNames(split) {
  return choices.kind === "losses" ? payload.tasks.map((task) => `loss:${task}`) : taskNames(split);
}

// What models are compared by: all metrics, and the losses of tasks that have none.
function readerNames(split) {
  const metrics = availableNames(split).filter((name) => !isLoss(name));
  return [...new Set([...metrics, ...taskNames(split)])];
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

function wire() {
  byId("theme").addEventListener("click", () => change({ theme: theme() === "dark" ? "light" : "dark" }));
  byId("plane").addEventListener("keydown", stepByKey);
  wireSpace();
  wireLazyCharts();
  wireCopy();
  wireHold();
  byId("targets").addEventListener("toggle", () => drawTargets(modelRows()));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({}));
  window.matchMedia("print").addEventListener("change", () => refresh());
  window.addEventListener("beforeprint", () => toPaper(true));
  window.addEventListener("afterprint", () => toPaper(false));
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) change({});
    width = window.innerWidth;
  });
}

// The answer keeps its height while a pointer is down: what is dragged must not move away.
function wireHold() {
  const answer = byId("answer");
  const hold = (height, overflow) => Object.assign(answer.style, { height, overflow });
  document.addEventListener("pointerdown", () => hold(`${answer.offsetHeight}px`, "hidden"), true);
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => hold("", ""), true);
}

// Paper is light, and has every chart: also in a PDF that a program makes.
function toPaper(on) {
  printing = on;
  refresh();
  if (on) drawWaiting();
}

// Text and tables come first, then plotly, which takes longest to read.
async function start() {
  wire();
  let first = null;
  try {
    first = JSON.parse(await unpack("payload"));
  } catch (error) {
    fill("notices", el("p", { class: "notice" }, `This page could not be read (${error.message}). It needs a browser of 2023 or later.`));
    byId("main").before(byId("notices"));
    return;
  }
  render(first);
  if (typeof follow === "function") follow(first);
  requestAnimationFrame(() => setTimeout(loadPlotly));
}

async function loadPlotly() {
  try {
    const script = el("script");
    script.textContent = await unpack("plotly");
    document.head.append(script);
  } catch {
    // every chart says in its place that it could not be drawn
  }
  loaded = true;
  drawVisible();
}

start();
