// The scatter plot of two losses or metrics: the models of each run, the marked one, and targets on request.

const CROWD = 40; // more regions than this are a blur
const NUMBERED = 12; // more numbers than this are a blur

function originOf(view) {
  return view.ideal || view.tasks.map(() => 0);
}

function taskOf(view, name) {
  return isLoss(name) ? view.tasks.indexOf(name.slice(5)) : -1;
}

function isLossPlane(view, x, y) {
  return taskOf(view, x) >= 0 && taskOf(view, y) >= 0 && x !== y;
}

// What a reader should know of a model before choosing it; empty for most.
function standing(view, split, i) {
  if (!isFinitePoint(lossesAt(view, split, i))) return `not finite on ${splitName(split)}`;
  if (!isWithin(view, choosingSplit(), i, choices.limits)) return "outside your limits";
  if (!view.nondominated[split][i]) return `dominated on ${splitName(split)}`;
  return rivalsOf(view, split)[i] ? `dominated by another run on ${splitName(split)}` : "";
}

function axisTitle(name, split, room, small) {
  return small ? plain(labelOf(name), room) : `${plain(labelOf(name), room)} on ${splitName(split)}`;
}

function rangeOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const span = high - low || Math.abs(high) || 1;
  return [low - 0.08 * span, high + 0.1 * span];
}

// A model that was not trained on a task has a useless loss there, and would squeeze all others.
function isOutlier(view, split, i) {
  const [{ reference }, losses] = [payload, lossesAt(view, split, i)];
  return reference !== null && isFinitePoint(losses) && losses.some((loss, t) => loss > reference[t]);
}

function hasOutliers(split) {
  return visibleRuns().some(({ view }) => view.subproblems.some((_, i) => isOutlier(view, split, i)));
}

// Outliers are shown on request, or if there is nothing else.
function showsOutliers(split) {
  const inside = ({ view }) => view.subproblems.some((_, i) => isFinitePoint(lossesAt(view, split, i)) && !isOutlier(view, split, i));
  return choices.outliers || !visibleRuns().some(inside);
}

function pointAt(view, split, i, x, y) {
  return [x, y].map((name) => valueAt(view, split, name, i));
}

function rangesOf(runs, split, x, y) {
  const all = showsOutliers(split);
  const rows = runs.flatMap(({ view }) => view.subproblems.map((_, i) => ({ view, i })));
  const points = rows.filter(({ view, i }) => all || !isOutlier(view, split, i)).map(({ view, i }) => pointAt(view, split, i, x, y)).filter(isFinitePoint);
  if (!points.length) return [[0, 1], [0, 1]];
  return [0, 1].map((side) => steady(`${[x, y][side]}|${split}|${all}`, rangeOf(points.map((point) => point[side]))));
}

// Axes of a page that follows a run stay until points leave them, or fill less than half of them.
const held = new Map();

function steady(key, range) {
  if (payload.live === null) return range;
  const old = held.get(key);
  const keeps = old && range[0] >= old[0] && range[1] <= old[1] && range[1] - range[0] >= 0.5 * (old[1] - old[0]);
  if (!keeps) held.set(key, range);
  return held.get(key);
}

// Targets, for any number of tasks: where the ray of a model's direction comes nearest to its losses.
function targetOf(view, split, i) {
  const losses = lossesAt(view, split, i);
  if (view.reading !== "direction" || !isFinitePoint(losses)) return null;
  const origin = originOf(view);
  const ray = view.preferences[i].map((part, t) => (view.scale ? part / view.scale[i][t] : part));
  const along = losses.reduce((sum, loss, t) => sum + (loss - origin[t]) * ray[t], 0) / (ray.reduce((sum, part) => sum + part * part, 0) || 1);
  return ray.map((part, t) => origin[t] + Math.max(0, along) * part);
}

function targetTraces(view, split, x, y) {
  const places = { x: [], y: [] };
  const ends = { x: [], y: [] };
  view.subproblems.forEach((_, i) => {
    const target = targetOf(view, split, i);
    if (target === null || (isOutlier(view, split, i) && !showsOutliers(split))) return;
    [x, y].forEach((name, side) => {
      const key = ["x", "y"][side];
      places[key].push(valueAt(view, split, name, i), target[taskOf(view, name)], null);
      ends[key].push(target[taskOf(view, name)]);
    });
  });
  return [
    { ...places, mode: "lines", hoverinfo: "skip", line: { color: ink("ray"), width: 1 } },
    { ...ends, mode: "markers", hoverinfo: "skip", marker: { symbol: "cross-thin-open", size: 9, color: ink("muted"), line: { width: 1.5 } } },
  ];
}

// Two tasks have regions, too: every other one is grey. If units differ between models, there are no common borders.
function regionTraces(view, x, y, ranges) {
  const origin = [x, y].map((name) => originOf(view)[taskOf(view, name)]);
  const far = Math.max(ranges[0][1] - origin[0], ranges[1][1] - origin[1]);
  const end = (i, direction) => {
    const seen = unit([x, y].map((name) => direction[taskOf(view, name)] / (view.scale ? view.scale[i][taskOf(view, name)] : 1)));
    return seen.map((part, side) => origin[side] + 3 * far * part);
  };
  const common = !view.scale || view.scale.every((factor) => factor.every((value, t) => Math.abs(value / view.scale[0][t] - 1) < 1e-5));
  const all = [...view.preferences, ...view.others];
  if (!common || all.length < 2 || all.length > CROWD) return [];
  const rays = all.map((direction) => end(0, direction)).map((far2) => ({
    x: [origin[0], far2[0]], y: [origin[1], far2[1]], mode: "lines", hoverinfo: "skip", line: { color: ink("ray"), width: 1, dash: "dash" },
  }));
  const angles = [...new Set(all.map((direction) => Math.atan2(direction[1], direction[0])))].sort((a, b) => a - b);
  const borders = [0, ...angles.slice(1).map((angle, at) => (angle + angles[at]) / 2), Math.PI / 2];
  const ends = borders.map((angle) => end(0, [Math.cos(angle), Math.sin(angle)]));
  const wedges = ends.slice(1).map((edge, at) => ({
    x: [origin[0], ends[at][0], edge[0]], y: [origin[1], ends[at][1], edge[1]],
    mode: "lines", fill: "toself", fillcolor: ink("wedge"), line: { width: 0 }, hoverinfo: "skip",
  }));
  return [...wedges.filter((_, at) => at % 2), ...rays];
}

function pointTraces({ view, r }, split, x, y, small) {
  const rows = view.subproblems.map((_, i) => i).filter((i) => isFinitePoint(pointAt(view, split, i, x, y)));
  const best = rows.filter((i) => view.nondominated[split][i]);
  const all = showsOutliers(split);
  const size = (small ? 6 : 9) * (rows.length > 60 ? 0.75 : 1);
  const numbered = !small && marked().view === view && rows.length <= NUMBERED;
  const trace = (some, hollow, opacity) => ({
    x: some.map((i) => pointAt(view, split, i, x, y)[0]),
    y: some.map((i) => pointAt(view, split, i, x, y)[1]),
    customdata: some.map((i) => [r, i]),
    hoverinfo: "none", mode: numbered ? "markers+text" : "markers", name: plain(view.name),
    ...(numbered ? { text: some.map((i) => (view.names ? plain(view.names[i], 16) : String(view.subproblems[i]))), textposition: "top right", textfont: { color: ink("ink"), size: 13 } } : {}),
    marker: { color: colourOf(r), size, opacity, symbol: shapeOf(r) + hollow },
  });
  const kept = rows.filter((i) => isWithin(view, choosingSplit(), i, choices.limits));
  const out = rows.filter((i) => !kept.includes(i));
  const traces = [trace(out, "", 0.15), trace(kept.filter((i) => !view.nondominated[split][i]), "-open", 0.55), trace(kept.filter((i) => view.nondominated[split][i]), "", 1)].filter(({ x: places }) => places.length);
  if (view.tasks.length === 2) {
    const path = best.filter((i) => all || !isOutlier(view, split, i)).sort((i, j) => lossesAt(view, split, i)[0] - lossesAt(view, split, j)[0]).map((i) => pointAt(view, split, i, x, y));
    traces.unshift({ x: path.map((p) => p[0]), y: path.map((p) => p[1]), mode: "lines", hoverinfo: "skip", line: { color: colourOf(r), width: 1 }, opacity: 0.45 });
  }
  return traces;
}

function markTraces(split, x, y, small) {
  const { view, i } = marked();
  if (view === null || i === null || choices.hidden.has(view.name)) return [];
  const point = pointAt(view, split, i, x, y);
  if (!isFinitePoint(point)) return [];
  const numbered = !small && view.subproblems.length <= NUMBERED;
  return [{
    x: [point[0]], y: [point[1]], mode: "markers+text", hoverinfo: "skip", cliponaxis: false,
    text: [small || numbered ? "" : `<b>${view.names ? plain(view.names[i], 20) : view.subproblems[i]}</b>`], textposition: "top right", textfont: { color: ink("ink"), size: 14 },
    marker: { symbol: "circle-open", size: small ? 14 : 20, color: ink("ink"), line: { width: 2.5 } },
  }];
}

// Limits as lines: what lies beyond them is out.
function limitShapes(x, y) {
  return limitList(choices.limits).flatMap(({ name, limit }) => [
    ...(name === x ? [{ type: "line", xref: "x", yref: "paper", x0: limit, x1: limit, y0: 0, y1: 1 }] : []),
    ...(name === y ? [{ type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: limit, y1: limit }] : []),
  ]).map((shape) => ({ ...shape, layer: "above", line: { color: ink("accent"), width: 2, dash: "dash" } }));
}

function drawPlane(id, x, y, small = false) {
  const { split } = choices;
  const { view } = marked();
  const runs = visibleRuns();
  const ranges = rangesOf(runs, split, x, y);
  const traces = [];
  if (view !== null && choices.targets && view.reading === "direction" && view.values[split] && isLossPlane(view, x, y)) {
    if (view.tasks.length === 2) traces.push(...regionTraces(view, x, y, ranges));
    traces.push(...targetTraces(view, split, x, y));
  }
  const onTop = [...runs].sort((one, other) => Number(one.view === view) - Number(other.view === view));
  for (const run of onTop) traces.push(...pointTraces(run, split, x, y, small));
  traces.push(...markTraces(split, x, y, small));
  const { width, height } = printing ? paperSize(byId(id)) : { width: byId(id).clientWidth, height: byId(id).clientHeight };
  const room = (pixels) => Math.max(10, Math.min(LONG, Math.floor((pixels - 60) / 7.5) - (small ? 0 : 14))); // letters, without "on validation"
  const axis = (name, pixels) => ({ ...axisStyle(axisTitle(name, split, room(pixels), small)), ...(isShare(name) ? { tickformat: "~%" } : {}) });
  const place = draw(id, traces, layoutOf({
    xaxis: { ...axis(x, width), range: ranges[0], ...(small ? { nticks: 4, tickangle: 0 } : {}) },
    yaxis: { ...axis(y, height), range: ranges[1] },
    shapes: limitShapes(x, y),
    uirevision: [x, y, split, choices.outliers, payload.runs.length].join("|"),
    ...(small ? { margin: { l: 40, r: 8, t: 6, b: 40 } } : {}),
  }), small ? { ...CONFIG, displayModeBar: false } : CONFIG);
  listen(place, pickModel);
}
