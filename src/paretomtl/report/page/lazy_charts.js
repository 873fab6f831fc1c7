// Lazy charts: drawn at once where they are visible, soon after where they are near, and else when the user scrolls near
// them, or prints.

const waiting = new Map(); // for the id of a place, what draws its chart as it should be now
let turn = false;

function chart(id, make) {
  waiting.set(id, make);
}

// How many pixels a place is out of sight; paper shows everything, and what is hidden is nowhere.
function distance(id) {
  const box = byId(id).getBoundingClientRect();
  if (!box.width) return Infinity;
  return window.matchMedia("print").matches ? 0 : Math.max(0, box.top - window.innerHeight, -box.bottom);
}

// Space is, the first time: without a GPU it takes longer than all other charts.
function isSlow(id) {
  return id === "space" && !byId(id)._fullLayout && !window.matchMedia("print").matches;
}

// Words and tables come before plotly, which takes longer to load than all else.
function canDraw() {
  return typeof Plotly !== "undefined" || document.readyState !== "loading";
}

function drawChart(id) {
  const make = waiting.get(id);
  waiting.delete(id);
  make();
}

function drawVisible() {
  if (!canDraw()) return;
  [...waiting.keys()].filter((id) => distance(id) === 0 && !isSlow(id)).forEach(drawChart);
  drawNear();
}

// The next chart to draw: of those not farther away than the height of the window the nearest, what is slow at last.
function nextChart() {
  const near = [...waiting.keys()].map((id) => ({ id, far: distance(id), slow: Number(isSlow(id)) })).filter(({ far }) => far <= window.innerHeight);
  near.sort((one, other) => one.slow - other.slow || one.far - other.far);
  return near.length ? near[0].id : null;
}

// One after the other, so that the browser shows each, and answers, before it begins the next.
function drawNear() {
  if (turn || !canDraw() || nextChart() === null) return;
  turn = true;
  requestAnimationFrame(() => setTimeout(() => {
    turn = false;
    const id = nextChart();
    if (id !== null) drawChart(id);
    drawNear();
  }));
}

function drawWaiting() {
  if (canDraw()) [...waiting.keys()].filter((id) => distance(id) < Infinity).forEach(drawChart);
}

function wireLazyCharts() {
  const watcher = new IntersectionObserver(drawNear, { rootMargin: "100%" });
  for (const place of document.querySelectorAll(".plot")) watcher.observe(place);
  window.addEventListener("beforeprint", drawWaiting);
}
