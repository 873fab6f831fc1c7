// Parallel coordinates for four tasks and more: a vertical axis per loss or metric, best always up, a line per model.
// Not drawn by plotly, whose lines can be neither hovered over nor clicked.

const PARALLEL = { top: 26, line: 15, bottom: 34, height: 330, margin: 46, gap: 92, letters: 13, lines: 4 };
const RAMP = { light: [[185, 196, 207], [8, 58, 110]], dark: [[78, 88, 98], [160, 214, 255]] }; // from worst to best

function parallelNames(split) {
  const names = availableNames(split);
  const losses = names.filter(isLoss);
  const metrics = names.filter((name) => !isLoss(name));
  const wanted = choices.kind === "both" ? names : choices.kind === "losses" || !metrics.length ? losses : metrics;
  const rank = (name) => (choices.order.includes(name) ? choices.order.indexOf(name) : choices.order.length + wanted.indexOf(name));
  return [...wanted].sort((one, other) => rank(one) - rank(other));
}

function moveAxis(name, to) {
  const names = parallelNames(choices.split).filter((one) => one !== name);
  names.splice(Math.max(0, Math.min(names.length, to)), 0, name);
  change({ order: names });
}

function parallelScales(names, runs, split) {
  const [start, end, all] = [headRoom(names) + PARALLEL.height, headRoom(names), showsOutliers(split)];
  const rows = runs.flatMap(({ view }) => view.subproblems.map((_, i) => ({ view, i }))).filter(({ view, i }) => all || !isOutlier(view, split, i));
  return names.map((name) => {
    const values = rows.map(({ view, i }) => valueAt(view, split, name, i)).filter(isNumber);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const span = high - low || Math.abs(high) || 1;
    const [from, to] = high > low ? [low, high] : [low - span / 2, high + span / 2];
    const up = runs.length === 0 || isHigher(runs[0].view, name);
    const [worst, best] = up ? [from, to] : [to, from];
    return {
      name, low: from, high: to, worst, best,
      share: (value) => (value - worst) / (best - worst),
      place: (value) => start + ((value - worst) / (best - worst)) * (end - start),
      value: (place) => worst + ((place - start) / (end - start)) * (best - worst),
    };
  });
}

// A name on several lines, broken at spaces where possible.
function wrapped(text) {
  const lines = [""];
  for (const word of short(text, PARALLEL.letters * PARALLEL.lines).split(" ")) {
    for (const part of word.match(new RegExp(`.{1,${PARALLEL.letters}}`, "gu")) || []) {
      const last = lines[lines.length - 1];
      if (last && last.length + 1 + part.length > PARALLEL.letters) lines.push(part);
      else lines[lines.length - 1] = last ? `${last} ${part}` : part;
    }
  }
  return lines;
}

function axisLabel(name) {
  return choices.kind === "losses" && isLoss(name) ? name.slice(5) : labelOf(name);
}

function headRoom(names) {
  return PARALLEL.top + PARALLEL.line * Math.max(1, ...names.map((name) => wrapped(axisLabel(name)).length));
}

function lineOf(view, split, i, scales, at) {
  const points = scales.map((scale, a) => {
    const value = valueAt(view, split, scale.name, i);
    return isNumber(value) ? `${at(a).toFixed(1)},${scale.place(value).toFixed(1)}` : null;
  });
  return points.filter((point) => point).join(" ");
}

const lines = new Map(); // drawn lines by run and place, so that a mark moves without a redraw

function drawParallel() {
  const many = payload.tasks.length > 3;
  byId("parallel-section").hidden = !many;
  if (!many) return;
  const { split } = choices;
  const runs = visibleRuns();
  const names = parallelNames(split);
  const width = Math.max(byId("parallel").clientWidth, 2 * PARALLEL.margin + PARALLEL.gap * (names.length - 1));
  const at = (a) => PARALLEL.margin + (a * (width - 2 * PARALLEL.margin)) / Math.max(1, names.length - 1);
  const scales = parallelScales(names, runs, split);
  const height = headRoom(names) + PARALLEL.height + PARALLEL.bottom;
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "parallel", role: "group", "aria-label": "Parallel coordinates" });
  lines.clear();
  for (const run of runs) for (const i of run.view.subproblems.keys()) picture.append(...parallelLine({ ...run, i }, split, scales, at));
  const { view } = marked();
  if (view && choices.targets && names.every(isLoss)) picture.append(targetLine(split, scales, at));
  scales.forEach((scale, a) => picture.append(axisGroup(scale, at(a), (x) => Math.round(((x - PARALLEL.margin) / Math.max(1, width - 2 * PARALLEL.margin)) * (names.length - 1)))));
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parallel coordinates" }, picture);
  keepScroll("#parallel .scroll", () => fill("parallel", parallelControls(names), box));
  markLine();
}

function targetLine(split, scales, at) {
  const { view, i } = marked();
  const target = i === null ? null : targetOf(view, split, i);
  const points = target ? scales.map((scale, a) => `${at(a)},${scale.place(target[taskOf(view, scale.name)])}`).join(" ") : "";
  return svg("polyline", { points, fill: "none", stroke: ink("ink"), "stroke-width": 1.5, "stroke-dasharray": "2 5", class: "target" });
}

function isMarked({ view, i }) {
  const mark = marked();
  return mark.view === view && mark.i === i;
}

function lineColour(view, r, split, i, scales) {
  const scale = scales.find(({ name }) => name === choices.colour);
  if (!scale) return colourOf(r);
  const value = valueAt(view, split, scale.name, i);
  const share = isNumber(value) ? Math.min(1, Math.max(0, scale.share(value))) : 0;
  const [worst, best] = RAMP[theme()];
  return `rgb(${worst.map((part, c) => Math.round(part + share * (best[c] - part))).join(", ")})`;
}

function parallelLine(line, split, scales, at) {
  const { view, r, i } = line;
  const points = lineOf(view, split, i, scales, at);
  const within = isWithin(view, choosingSplit(), i, choices.limits);
  const best = view.nondominated[split][i];
  const colour = lineColour(view, r, split, i, scales);
  const drawn = svg("polyline", { points, fill: "none", "stroke-dasharray": best ? null : "4 3", class: "line", "data-line": `${r}-${i}` });
  const wide = svg("polyline", { points, fill: "none", stroke: "transparent", "stroke-width": 9, class: "wide", "data-model": `${r}-${i}` });
  const thin = Math.max(0.35, Math.min(1, Math.sqrt(30 / view.subproblems.length))); // many lines are a blot
  const draw = () => {
    const own = isMarked(line);
    const other = payload.runs.length > 1 && marked().view !== view;
    drawn.setAttribute("stroke", own ? ink("ink") : colour);
    drawn.setAttribute("stroke-width", own ? 2.8 : 1.3);
    drawn.setAttribute("stroke-opacity", own ? 1 : !within ? 0.07 : (best ? 0.9 : 0.45) * (other ? 0.28 : 1) * thin);
    if (own && drawn.parentNode) drawn.parentNode.insertBefore(drawn, drawn.parentNode.querySelector(".axis"));
  };
  draw();
  lines.set(`${r}-${i}`, draw);
  if (!within) return [drawn];
  wide.addEventListener("click", () => pickModel(r, i));
  wide.addEventListener("pointermove", (event) => {
    drawn.setAttribute("stroke-width", 3);
    showTip(r, i, event);
  });
  wide.addEventListener("pointerleave", () => {
    draw();
    hideTip();
  });
  return [drawn, wide];
}

let lastLine = null;

// Move the mark alone: two lines of many change.
function markLine() {
  const { r, i } = marked();
  const now = `${r}-${i}`;
  for (const key of [lastLine, now]) if (lines.has(key)) lines.get(key)();
  lastLine = now;
}

function parallelControls(names) {
  const colours = [["", "method"], ...names.map((name) => [name, labelOf(name)])];
  const chosen = names.includes(choices.colour) ? choices.colour : "";
  return el("div", { class: "controls" },
    el("label", { class: "field" }, "Colour by ", el("select", { id: "colour", "data-key": "colour", onchange: (event) => change({ colour: event.target.value }) },
      colours.map(([value, words]) => el("option", { value, selected: value === chosen }, short(words))))));
}

// A brush is a limit on each side where it does not reach the end of the axis.
function setBrush(scale, one, other) {
  const exact = (value) => +value.toPrecision(4);
  const [low, high] = [Math.min(one, other), Math.max(one, other)];
  const limits = { ...choices.limits };
  delete limits[scale.name];
  const [least, most] = [low > scale.low ? exact(low) : null, high < scale.high ? exact(high) : null];
  if (least !== null || most !== null) limits[scale.name] = { least, most };
  change({ limits, ...afterLimit() });
}

function axisGroup(scale, x, placeAt) {
  const { least, most } = choices.limits[scale.name] || {};
  const [low, high] = [isNumber(least) ? Math.max(least, scale.low) : scale.low, isNumber(most) ? Math.min(most, scale.high) : scale.high];
  const group = svg("g", { class: "axis" });
  const text = (y, words) => {
    const made = svg("text", { x, y, "text-anchor": "middle" });
    made.textContent = words;
    return made;
  };
  const [top, end] = [scale.place(scale.best), scale.place(scale.worst)];
  group.append(svg("line", { x1: x, x2: x, y1: top, y2: end, class: "stem" }), axisName(scale, x, placeAt), text(end + 18, valueText(scale.name, scale.worst, 3)), text(top - 9, valueText(scale.name, scale.best, 3)));
  if (scale.name in choices.limits) {
    const [from, to] = [scale.place(low), scale.place(high)].sort((a, b) => a - b);
    group.append(svg("rect", { x: x - 5, width: 10, y: from, height: Math.max(1, to - from), class: "brush" }));
  }
  const catcher = svg("rect", { x: x - 12, width: 24, y: top, height: end - top, class: "catch", "data-axis": scale.name });
  dragBrush(catcher, scale);
  group.append(catcher, brushHandle(scale, x, low, "least", (value) => setBrush(scale, Math.min(value, high), high)), brushHandle(scale, x, high, "most", (value) => setBrush(scale, low, Math.max(value, low))));
  return group;
}

// The name of an axis, which can be dragged, or moved by arrow keys, to another place.
function axisName(scale, x, placeAt) {
  const label = svg("text", { x, y: 14, "text-anchor": "middle", class: "name", tabindex: 0, role: "button", "data-key": `axis-${scale.name}`, "aria-label": `Axis ${labelOf(scale.name)}; arrow keys move it` });
  wrapped(axisLabel(scale.name)).forEach((line, at) => {
    const made = svg("tspan", { x, dy: at ? PARALLEL.line : 0 });
    made.textContent = line;
    label.append(made);
  });
  const title = svg("title");
  title.textContent = labelOf(scale.name);
  label.append(title);
  const at = () => parallelNames(choices.split).indexOf(scale.name);
  label.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    moveAxis(scale.name, at() + by);
  });
  label.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    label.focus({ preventScroll: true });
    const start = event.clientX;
    const shift = (moving) => label.setAttribute("transform", `translate(${moving.clientX - start}, 0)`);
    followPointer(shift, (ending) => {
      const to = placeAt(x + ending.clientX - start);
      if (to === at()) label.removeAttribute("transform");
      else moveAxis(scale.name, to);
    });
  });
  return label;
}

function brushHandle(scale, x, value, side, moved) {
  const y = scale.place(value);
  const handle = svg("rect", {
    x: x - 8, y: y - 3, width: 16, height: 6, rx: 3, class: "end", tabindex: 0, role: "slider", "data-key": `brush-${side}-${scale.name}`,
    "aria-label": `${labelOf(scale.name)} at ${side}`, "aria-orientation": "vertical",
    "aria-valuemin": scale.low, "aria-valuemax": scale.high, "aria-valuenow": value, "aria-valuetext": valueText(scale.name, value),
  });
  handle.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 0.02, ArrowRight: 0.02, ArrowDown: -0.02, ArrowLeft: -0.02 }[event.key];
    if (!step) return;
    event.preventDefault();
    moved(Math.min(scale.high, Math.max(scale.low, value + step * (scale.best - scale.worst))));
  });
  return handle;
}

// The picture may be redrawn during a drag, so the window tracks the pointer.
function followPointer(moved, ended) {
  const stop = (event) => {
    window.removeEventListener("pointermove", moved);
    for (const name of ["pointerup", "pointercancel"]) window.removeEventListener(name, stop);
    ended(event);
  };
  window.addEventListener("pointermove", moved);
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, stop);
}

function dragBrush(catcher, scale) {
  catcher.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const at = (moving) => scale.value(moving.clientY - document.querySelector("svg.parallel").getBoundingClientRect().top);
    const start = at(event);
    followPointer((moving) => setBrush(scale, start, at(moving)), () => {});
  });
  catcher.addEventListener("dblclick", () => setBrush(scale, scale.low, scale.high));
}
