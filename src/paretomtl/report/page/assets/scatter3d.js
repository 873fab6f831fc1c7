// Three tasks: projections on every pair first, and a 3D view that can be turned behind a tab.

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

const TABS = [["pairs", "Pairs of tasks"], ["space", "3D"], ["plane", "Any two values"]];

function drawTabs() {
  const three = payload.tasks.length === 3;
  byId("tabs").hidden = !three;
  byId("pairs").hidden = !three || choices.tab !== "pairs";
  byId("space-tab").hidden = !three || choices.tab !== "space";
  byId("plane-tab").hidden = three && choices.tab !== "plane";
  if (!three) return;
  const places = { pairs: "pairs", space: "space-tab", plane: "plane-tab" };
  rebuild("tabs", choices.tab, () => TABS.map(([tab, words]) => el("button", {
    type: "button", role: "tab", id: `tab-${tab}`, "data-key": `tab-${tab}`, "aria-selected": String(choices.tab === tab), "aria-controls": places[tab], tabindex: choices.tab === tab ? "0" : "-1",
    onclick: () => change({ tab }),
    onkeydown: (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      const next = TABS[(TABS.findIndex(([name]) => name === tab) + by + TABS.length) % TABS.length][0];
      byId(`tab-${next}`).focus();
      change({ tab: next });
    },
  }, words)));
  for (const [tab, place] of Object.entries(places)) {
    byId(place).setAttribute("role", "tabpanel");
    byId(place).setAttribute("aria-labelledby", `tab-${tab}`);
  }
}

function chartSpace() {
  if (payload.tasks.length !== 3) return;
  const names = axisNames(choices.split);
  [[0, 1], [0, 2], [1, 2]].forEach(([a, b], at) => chart(`pair${at}`, () => drawPlane(`pair${at}`, names[a], names[b], true)));
  chart("space", () => drawSpace(names));
}

function spacePoints(view, split, names) {
  const all = showsOutliers(split);
  return view.subproblems.map((_, i) => i).filter((i) => names.every((name) => isNumber(valueAt(view, split, name, i))) && (all || !isOutlier(view, split, i)));
}

function spaceTraces({ view, r }, split, names) {
  const rows = spacePoints(view, split, names);
  const trace = (some, hollow, opacity) => ({
    type: "scatter3d", mode: "markers", hoverinfo: "none", opacity,
    ...Object.fromEntries(["x", "y", "z"].map((side, t) => [side, some.map((i) => valueAt(view, split, names[t], i))])),
    customdata: some.map((i) => [r, i]),
    marker: { color: colourOf(r), size: rows.length > 60 ? 3.5 : 5, symbol: shapeOf(r) + hollow },
  });
  const kept = rows.filter((i) => isWithin(view, choosingSplit(), i, choices.limits));
  const hollow = ["circle", "square", "diamond"].includes(shapeOf(r)) ? "-open" : ""; // plotly has no other hollow symbols in 3D
  return [
    trace(kept.filter((i) => !view.nondominated[split][i]), hollow, 0.5),
    trace(kept.filter((i) => view.nondominated[split][i]), "", 1),
    trace(rows.filter((i) => !kept.includes(i)), "", 0.12),
  ];
}

function spaceTargets(view, split, names) {
  const places = { x: [], y: [], z: [] };
  for (const i of spacePoints(view, split, names)) {
    const target = targetOf(view, split, i);
    if (target) ["x", "y", "z"].forEach((side, t) => places[side].push(valueAt(view, split, names[t], i), target[t], null));
  }
  return { type: "scatter3d", mode: "lines", hoverinfo: "skip", ...places, line: { color: ink("muted"), width: 2 } };
}

function drawSpace(names) {
  const { split } = choices;
  const { view, i } = marked();
  if (!hasWebGL()) {
    fill("space", el("p", { class: "notice" }, "This browser cannot draw in 3D (WebGL is off); the pairs of tasks show the same models."));
    return;
  }
  const traces = visibleRuns().flatMap((run) => spaceTraces(run, split, names));
  if (view !== null && choices.targets && view.values[split] && names.every(isLoss)) traces.push(spaceTargets(view, split, names));
  if (i !== null && view.values[split] && spacePoints(view, split, names).includes(i) && !choices.hidden.has(view.name)) {
    const at = names.map((name) => valueAt(view, split, name, i));
    traces.push({
      type: "scatter3d", mode: "markers+text", hoverinfo: "skip", x: [at[0]], y: [at[1]], z: [at[2]],
      text: [`<b>${view.names ? painted(view.names[i], 20) : view.subproblems[i]}</b>`], textfont: { color: ink("ink"), size: 14 },
      marker: { symbol: "circle-open", size: 12, color: ink("ink"), line: { width: 3 } },
    });
  }
  const side = (t) => ({
    ...axisStyle(`${painted(labelOf(names[t]), 24)}, ${split}`), ...(isShare(names[t]) ? { tickformat: "~%" } : {}),
    backgroundcolor: "rgba(0,0,0,0)", showspikes: false, nticks: 5, color: ink("muted"),
  });
  const far = byId("space").clientWidth < 420 ? 1.3 : 1; // axis titles are just as wide on a narrow screen
  const place = draw("space", traces, layoutOf({
    margin: { l: 0, r: 0, t: 0, b: 0 },
    uirevision: "space",
    scene: { xaxis: side(0), yaxis: side(1), zaxis: side(2), uirevision: "space", camera: { eye: { x: 1.65 * far, y: 1.15 * far, z: 0.7 * far }, center: { x: 0, y: 0, z: -0.15 } }, dragmode: "orbit" },
  }), { ...CONFIG, modeBarButtons: [["resetCameraDefault3d", "toImage"]] });
  listen(place, pickModel);
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
