// The scatter plot of two losses or metrics: rays, regions, the solutions of each run, the marked one, and a ray to drag.

const CROWD = 40; // more regions than this are a blur

function originOf(view) {
  return view.ideal || view.tasks.map(() => 0);
}

function taskOf(view, name) {
  return name.startsWith("loss:") ? view.tasks.indexOf(name.slice(5)) : -1;
}

function isLossPlane(view, x, y) {
  return taskOf(view, x) >= 0 && taskOf(view, y) >= 0 && x !== y;
}

// Rays and regions exist for two tasks only: a plane of two out of more tasks is a projection.
function hasRays(view, x, y) {
  return view.tasks.length === 2 && isLossPlane(view, x, y);
}

function hoverText(view, split, i) {
  const lines = [`<b>${plain(view.name)}, ${view.names ? plain(view.names[i]) : view.subproblems[i]}</b>`];
  if (view.reading !== "none") lines.push(preferenceWords(view, i));
  for (const [name, values] of Object.entries(view.values[split])) lines.push(`${plain(labelOf(name), 32)} on ${splitName(split)}: ${shown(values[i])}`);
  lines.push(standing(view, split, i));
  return lines.join("<br>");
}

// Regions are constraints of training.
function regionAt(view, i) {
  return view.in_region && view.in_region.train ? view.in_region.train[i] : null;
}

function angleAt(view, i) {
  return view.angles && view.angles.train ? view.angles.train[i] : null;
}

// Feasibility in words.
function standing(view, split, i) {
  const words = [view.status[i]];
  const inside = regionAt(view, i);
  if (inside !== null) words.push(`${inside ? "in" : "outside"} its region on training`);
  if (isNumber(angleAt(view, i))) words.push(`${shown(angleAt(view, i), 2)}° from its preference on training`);
  if (!isFinitePoint(lossesAt(view, split, i))) words.push(`not finite on ${splitName(split)}`);
  else if (!view.nondominated[split][i]) words.push(`dominated on ${splitName(split)}`);
  return words.join(", ");
}

function axisTitle(name, split, room, small) {
  return small ? `${plain(labelOf(name), room)}, ${split}` : `${plain(labelOf(name), room)} on ${splitName(split)}`;
}

function rangeOf(values, least) {
  const all = least === null ? values : [...values, least];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const span = high - low || Math.abs(high) || 1;
  return [least === null || low < least ? low - 0.07 * span : low, high + 0.08 * span];
}

// The reference point of all runs, which every solution should beat.
function commonReference() {
  const references = payload.runs.map((view) => view.reference).filter((point) => point && isFinitePoint(point));
  return references.length ? payload.tasks.map((_, t) => Math.max(...references.map((point) => point[t]))) : null;
}

// A model that was not trained on a task has a useless loss there, and would squeeze all others.
function isBeyond(view, split, i) {
  const [reference, losses] = [commonReference(), lossesAt(view, split, i)];
  return reference !== null && isFinitePoint(losses) && losses.some((loss, t) => loss > reference[t]);
}

function rangesOf(runs, split, x, y, origin) {
  const all = runs.flatMap(({ view }) => view.subproblems.map((_, i) => ({ beyond: isBeyond(view, split, i), point: pointAt(view, split, i, x, y) })));
  const finite = all.filter(({ point }) => isFinitePoint(point));
  const near = finite.filter(({ beyond }) => !beyond);
  const points = (choices.beyond || !near.length ? finite : near).map(({ point }) => point);
  if (!points.length) return [[0, 1], [0, 1]];
  return [0, 1].map((side) => rangeOf(points.map((point) => point[side]), origin ? origin[side] : null));
}

function pointAt(view, split, i, x, y) {
  const values = view.values[split] || {};
  return [x, y].map((name) => (values[name] ? values[name][i] : null));
}

// The end of a ray in the plane, beyond its edge, for a direction of scaled losses.
function rayEnd(view, i, direction, x, y, ranges) {
  const factor = view.scale ? view.scale[i] : [1, 1];
  const seen = [x, y].map((name) => direction[taskOf(view, name)] / factor[taskOf(view, name)]);
  const origin = [x, y].map((name) => originOf(view)[taskOf(view, name)]);
  const far = Math.max(ranges[0][1] - origin[0], ranges[1][1] - origin[1]);
  const size = length(seen) || 1;
  return seen.map((part, side) => origin[side] + (3 * far * part) / size);
}

// Every other region is grey. If units differ between solutions, there are no common borders.
function regionTraces(view, x, y, ranges) {
  const origin = [x, y].map((name) => originOf(view)[taskOf(view, name)]);
  const line = (end) => ({ x: [origin[0], end[0]], y: [origin[1], end[1]] });
  const own = view.preferences.map((direction, i) => rayEnd(view, i, direction, x, y, ranges));
  const common = !view.scale || view.scale.every((factor) => factor.every((value, t) => Math.abs(value / view.scale[0][t] - 1) < 1e-5));
  const rest = common ? view.others.map((direction) => rayEnd(view, 0, direction, x, y, ranges)) : [];
  const many = own.length + rest.length > CROWD;
  const rays = [...own, ...rest].map((end) => ({
    ...line(end), mode: "lines", hoverinfo: "skip", line: { color: ink("ray"), width: many ? 0.4 : 1, dash: many ? "solid" : "dash" },
  }));
  const all = [...view.preferences, ...view.others];
  if (!common || many || all.length < 2) return rays;
  const angles = [...new Set(all.map((direction) => Math.atan2(direction[1], direction[0])))].sort((a, b) => a - b);
  const borders = [0, ...angles.slice(1).map((angle, at) => (angle + angles[at]) / 2), Math.PI / 2];
  const ends = borders.map((angle) => rayEnd(view, 0, [Math.cos(angle), Math.sin(angle)], x, y, ranges));
  const wedges = ends.slice(1).map((end, at) => ({
    x: [origin[0], ends[at][0], end[0]], y: [origin[1], ends[at][1], end[1]],
    mode: "lines", fill: "toself", fillcolor: ink("wedge"), line: { width: 0 }, hoverinfo: "skip",
  }));
  return [...wedges.filter((_, at) => at % 2), ...rays];
}

function pointTraces({ view, r }, split, x, y, small) {
  const rows = view.subproblems.map((_, i) => i).filter((i) => isFinitePoint(pointAt(view, split, i, x, y)));
  const best = rows.filter((i) => view.nondominated[split][i]);
  const size = (small ? 6 : 9) * (rows.length > 60 ? 0.75 : 1);
  const trace = (some, marker) => ({
    x: some.map((i) => pointAt(view, split, i, x, y)[0]),
    y: some.map((i) => pointAt(view, split, i, x, y)[1]),
    customdata: some.map((i) => [r, i]),
    text: some.map((i) => hoverText(view, split, i)),
    hoverinfo: "text", mode: "markers", name: plain(view.name),
    marker: { color: colourOf(r), size, opacity: some.map((i) => (isKept(view, split, i) ? marker.opacity : 0.12)), symbol: shapeOf(r) + marker.hollow },
  });
  const traces = [trace(rows.filter((i) => !best.includes(i)), { opacity: 0.5, hollow: "-open" }), trace(best, { opacity: 1, hollow: "" })];
  if (hasRays(view, x, y)) {
    const path = best.map((i) => pointAt(view, split, i, x, y)).sort((a, b) => a[0] - b[0]);
    traces.unshift({ x: path.map((p) => p[0]), y: path.map((p) => p[1]), mode: "lines", hoverinfo: "skip", line: { color: colourOf(r), width: 1 }, opacity: 0.45 });
  }
  return traces;
}

function markTraces(split, x, y, small) {
  const { view, i } = marked();
  if (view === null || i === null || choices.hidden.has(view.name)) return [];
  const point = pointAt(view, split, i, x, y);
  if (!isFinitePoint(point)) return [];
  return [{
    x: [point[0]], y: [point[1]], mode: "markers+text", hoverinfo: "skip", cliponaxis: false,
    text: [small ? "" : `<b>${view.names ? plain(view.names[i], 20) : view.subproblems[i]}</b>`], textposition: "bottom left", textfont: { color: ink("ink"), size: 14 },
    marker: { symbol: "circle-open", size: small ? 14 : 20, color: ink("ink"), line: { width: 2 } },
  }];
}

function drawPlane(id, x, y, small = false) {
  const { split } = choices;
  const { view } = marked();
  const runs = visibleRuns();
  const rays = view !== null && choices.rays && hasRays(view, x, y);
  const origin = rays ? [x, y].map((name) => originOf(view)[taskOf(view, name)]) : null;
  const ranges = rangesOf(runs, split, x, y, origin);
  const traces = [];
  if (rays && view.reading === "direction") traces.push(...regionTraces(view, x, y, ranges));
  const direction = currentDirection();
  if (rays && direction && marked().i !== null) {
    const end = rayEnd(view, marked().i, direction, x, y, ranges);
    traces.push({ x: [origin[0], end[0]], y: [origin[1], end[1]], mode: "lines", hoverinfo: "skip", line: { color: ink("accent"), width: 1.6 } });
  }
  for (const run of runs) traces.push(...pointTraces(run, split, x, y, small));
  traces.push(...markTraces(split, x, y, small));
  const room = Math.max(12, Math.min(LONG, Math.floor(byId(id).clientWidth / 10)));
  const place = draw(id, traces, layoutOf({
    xaxis: { ...axisStyle(axisTitle(x, split, room, small)), range: ranges[0] },
    yaxis: { ...axisStyle(axisTitle(y, split, Math.min(room, 28), small)), range: ranges[1] },
    uirevision: [x, y, split, choices.rays, choices.beyond, payload.runs.length].join("|"),
    ...(small ? { margin: { l: 40, r: 8, t: 6, b: 40 } } : {}),
  }), small ? { ...CONFIG, displayModeBar: false } : CONFIG);
  listen(place, pickSolution);
  if (small) return;
  placeHandle(place);
  if (!place || place.dataset.followed) return;
  place.dataset.followed = "yes";
  place.on("plotly_afterplot", () => placeHandle(place)); // plotly also redraws by itself, on zoom and resize
}

// Place the draggable end of the ray where it leaves the panel.
function placeHandle(place) {
  const handle = byId("handle");
  const { view, i } = marked();
  const { x, y } = choices;
  const direction = i !== null && choices.rays && hasRays(view, x, y) ? currentDirection() : null;
  handle.hidden = !place || direction === null;
  if (handle.hidden) return;
  const { xaxis, yaxis } = place._fullLayout;
  const far = rayEnd(view, i, direction, x, y, [xaxis.range, yaxis.range]);
  const origin = [x, y].map((name) => originOf(view)[taskOf(view, name)]);
  const edge = [xaxis, yaxis].map((axis, side) => (far[side] > axis.range[1] ? (axis.range[1] - origin[side]) / (far[side] - origin[side]) : 1));
  const share = Math.max(0, Math.min(...edge)) * 0.97;
  handle.style.left = `${xaxis._offset + xaxis.l2p(origin[0] + share * (far[0] - origin[0]))}px`;
  handle.style.top = `${yaxis._offset + yaxis.l2p(origin[1] + share * (far[1] - origin[1]))}px`;
  const degrees = (180 / Math.PI) * Math.atan2(direction[1], direction[0]);
  handle.setAttribute("aria-valuenow", degrees.toFixed(1));
  handle.setAttribute("aria-valuetext", `direction ${row(unit(direction), 2)}`);
}

function unit(vector) {
  const size = length(vector) || 1;
  return vector.map((value) => value / size);
}

// The direction of scaled losses at a point on the screen.
function directionAt(clientX, clientY) {
  const place = byId("plane");
  const { view, i } = marked();
  const { xaxis, yaxis } = place._fullLayout;
  const box = place.getBoundingClientRect();
  const seen = [xaxis.p2l(clientX - box.left - xaxis._offset), yaxis.p2l(clientY - box.top - yaxis._offset)];
  const factor = view.scale ? view.scale[i] : [1, 1];
  const scaled = [0, 0];
  [choices.x, choices.y].forEach((name, side) => {
    const t = taskOf(view, name);
    scaled[t] = Math.max(0, seen[side] - originOf(view)[t]) * factor[t];
  });
  return length(scaled) > 0 ? unit(scaled) : null;
}

function wireHandle() {
  const handle = byId("handle");
  handle.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
  });
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const direction = directionAt(event.clientX, event.clientY);
    if (direction) pickDirection(direction);
  });
  handle.addEventListener("keydown", (event) => {
    const turns = { ArrowLeft: 2, ArrowUp: 2, ArrowRight: -2, ArrowDown: -2 };
    if (!(event.key in turns)) return;
    event.preventDefault();
    const now = currentDirection();
    const angle = Math.atan2(now[1], now[0]) + (turns[event.key] * Math.PI) / 180;
    const bounded = Math.min(Math.PI / 2, Math.max(0, angle));
    pickDirection([Math.cos(bounded), Math.sin(bounded)]);
  });
}
