// The scatter plot of three losses: a 3D view that can be turned, and its three projections.

let webgl = null;

// Checked once: a browser allows few WebGL contexts.
function hasWebGL() {
  if (webgl !== null) return webgl;
  try {
    const canvas = document.createElement("canvas");
    webgl = Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
  } catch {
    webgl = false;
  }
  return webgl;
}

// Solutions beyond the reference point would squeeze all others; if there are no others, they are shown.
function showsBeyond(split) {
  const inside = ({ view }) => view.subproblems.some((_, i) => isFinitePoint(lossesAt(view, split, i)) && !isBeyond(view, split, i));
  return choices.beyond || !visibleRuns().some(inside);
}

function spacePoints(view, split) {
  const all = showsBeyond(split);
  return view.subproblems.map((_, i) => i).filter((i) => isFinitePoint(lossesAt(view, split, i)) && (all || !isBeyond(view, split, i)));
}

function spaceTraces({ view, r }, split) {
  const rows = spacePoints(view, split);
  const shape = SPACE_SHAPES[shapeOf(r)] || shapeOf(r);
  const trace = (some, hollow, opacity) => ({
    type: "scatter3d", mode: "markers", hoverinfo: "text", opacity,
    ...Object.fromEntries(["x", "y", "z"].map((side, t) => [side, some.map((i) => lossesAt(view, split, i)[t])])),
    customdata: some.map((i) => [r, i]),
    text: some.map((i) => hoverText(view, split, i)),
    marker: { color: colourOf(r), size: rows.length > 60 ? 3.5 : 5, symbol: shape + hollow },
  });
  const kept = rows.filter((i) => isKept(view, split, i));
  const hollow = ["circle", "square", "diamond"].includes(shape) ? "-open" : ""; // plotly has no other hollow symbols in 3D
  return [
    trace(kept.filter((i) => !view.nondominated[split][i]), hollow, 0.5),
    trace(kept.filter((i) => view.nondominated[split][i]), "", 1),
    trace(rows.filter((i) => !kept.includes(i)), "", 0.12),
  ];
}

// Rays reach as far as the farthest solution.
function spaceRays(view, split) {
  const far = Math.max(0, ...spacePoints(view, split).map((i) => length(lossesAt(view, split, i))));
  const origin = originOf(view);
  const places = { x: [], y: [], z: [] };
  view.preferences.forEach((direction, i) => {
    const seen = unit(direction.map((part, t) => (view.scale ? part / view.scale[i][t] : part)));
    ["x", "y", "z"].forEach((side, t) => places[side].push(origin[t], origin[t] + far * seen[t], null));
  });
  return { type: "scatter3d", mode: "lines", hoverinfo: "skip", ...places, line: { color: ink("ray"), width: 1.5 } };
}

function chartSpace() {
  byId("space-section").hidden = payload.tasks.length !== 3;
  if (payload.tasks.length !== 3) return;
  const names = payload.tasks.map((task) => `loss:${task}`);
  [[0, 1], [0, 2], [1, 2]].forEach(([a, b], at) => chart(`pair${at}`, () => drawPlane(`pair${at}`, names[a], names[b], true)));
  chart("space", () => drawSpace(names));
}

function drawSpace(names) {
  const { split } = choices;
  const { view, i } = marked();
  if (!hasWebGL()) {
    fill("space", el("p", { class: "notice" }, "This browser cannot draw in 3D (WebGL is off); the three projections show the same solutions."));
    return;
  }
  const traces = visibleRuns().flatMap((run) => spaceTraces(run, split));
  if (view !== null && choices.rays && view.reading === "direction") traces.push(spaceRays(view, split));
  if (i !== null && spacePoints(view, split).includes(i) && !choices.hidden.has(view.name)) {
    const at = lossesAt(view, split, i);
    traces.push({
      type: "scatter3d", mode: "markers+text", hoverinfo: "skip", x: [at[0]], y: [at[1]], z: [at[2]],
      text: [`<b>${view.names ? painted(view.names[i], 20) : view.subproblems[i]}</b>`], textfont: { color: ink("ink"), size: 14 },
      marker: { symbol: "circle-open", size: 12, color: ink("ink"), line: { width: 3 } },
    });
  }
  const side = (t) => ({ ...axisStyle(`${painted(labelOf(names[t]), 24)}, ${split}`), backgroundcolor: "rgba(0,0,0,0)", showspikes: false, nticks: 5, color: ink("muted") });
  const far = byId("space").clientWidth < 420 ? 1.3 : 1; // axis titles are just as wide on a narrow screen
  const place = draw("space", traces, layoutOf({
    margin: { l: 0, r: 0, t: 0, b: 0 },
    uirevision: "space",
    scene: { xaxis: side(0), yaxis: side(1), zaxis: side(2), uirevision: "space", camera: { eye: { x: 1.65 * far, y: 1.15 * far, z: 0.7 * far }, center: { x: 0, y: 0, z: -0.15 } }, dragmode: "orbit" },
  }), { ...CONFIG, modeBarButtons: [["resetCameraDefault3d", "toImage"]] });
  listen(place, pickSolution);
}

function wireSpace() {
  byId("space").addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] }[event.key];
    const place = byId("space");
    if (!turn || !place._fullLayout || !place._fullLayout.scene) return;
    event.preventDefault();
    const { eye } = place._fullLayout.scene.camera;
    const [cos, sin] = [Math.cos(turn[0]), Math.sin(turn[0])];
    const next = { x: eye.x * cos - eye.y * sin, y: eye.x * sin + eye.y * cos, z: Math.max(-3, Math.min(3, eye.z + turn[1])) };
    Plotly.relayout(place, { "scene.camera.eye": next });
  });
}
