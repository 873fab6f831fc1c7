// Lazy charts: drawn at once if they are visible, soon after if they are near, otherwise when the user scrolls near them
// or prints.

const waiting = new Map(); // by the id of a place: a function that draws the current chart
let turn = false;
let loaded = false; // plotly is here, or will not come

function chart(id, make) {
  waiting.set(id, make);
}

// The distance of a place from the viewport in pixels: 0 in print, infinite for hidden places.
function distance(id) {
  const box = byId(id).getBoundingClientRect();
  if (!box.width) return Infinity;
  return printing || window.matchMedia("print").matches ? 0 : Math.max(0, box.top - window.innerHeight, -box.bottom);
}

// Only the first drawing of the 3D view: without a GPU it takes longer than all other charts.
function isSlow(id) {
  return id === "space" && !byId(id)._fullLayout && !printing;
}

function drawChart(id) {
  const make = waiting.get(id);
  waiting.delete(id);
  make();
}

function drawVisible() {
  if (!loaded) return;
  [...waiting.keys()].filter((id) => distance(id) === 0 && !isSlow(id)).forEach(drawChart);
  drawNear();
}

// The next chart to draw: the nearest one within the height of the window, slow ones last.
function nextChart() {
  const near = [...waiting.keys()].map((id) => ({ id, far: distance(id), slow: Number(isSlow(id)) })).filter(({ far }) => far <= window.innerHeight);
  near.sort((one, other) => one.slow - other.slow || one.far - other.far);
  return near.length ? near[0].id : null;
}

// One at a time, so that the browser can paint and respond between two charts.
function drawNear() {
  if (turn || !loaded || nextChart() === null) return;
  turn = true;
  requestAnimationFrame(() => setTimeout(() => {
    turn = false;
    const id = nextChart();
    if (id !== null) drawChart(id);
    drawNear();
  }));
}

function drawWaiting() {
  if (loaded) [...waiting.keys()].filter((id) => distance(id) < Infinity).forEach(drawChart);
}

function wireLazyCharts() {
  const watcher = new IntersectionObserver(drawNear, { rootMargin: "100%" });
  for (const place of document.querySelectorAll(".plot")) watcher.observe(place);
}
