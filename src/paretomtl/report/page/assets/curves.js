// Curves by epoch: the hypervolume of each run, losses and weights of the marked model, thin lines for the others.

// Colours of tasks, from a palette that is safe for colour blindness; those of runs are in the payload.
const TASK_COLOURS = {
  light: ["#0072b2", "#d55e00", "#008a64", "#b8598c", "#b87a00", "#3d9bd1", "#882255", "#555555"],
  dark: ["#5fb0e6", "#f0803c", "#35c79d", "#e39cc5", "#f0b93a", "#a3d8f7", "#cf7ba6", "#c4c4c4"],
};
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const THIN = 60; // the most other models that are drawn; more would be a blot

function curve(history, name, i, t) {
  return (history[name] || []).map((rows) => rows[i][t]);
}

function othersTrace(view, name, i, t, colour) {
  const { history } = view;
  const places = { x: [], y: [] };
  const step = Math.ceil(view.subproblems.length / THIN);
  view.subproblems.forEach((_, j) => {
    if (j === i || j % step) return;
    places.x.push(...history.epochs, null);
    places.y.push(...curve(history, name, j, t), null);
  });
  return { ...places, mode: "lines", hoverinfo: "skip", line: { color: colour, width: 0.7 }, opacity: 0.3, showlegend: false };
}

function ownTrace(view, name, i, t, style, label) {
  const y = curve(view.history, name, i, t);
  return {
    x: view.history.epochs, y, mode: y.length > 1 ? "lines" : "markers", name: plain(label, 30),
    text: y.map((value, at) => `${plain(label)}, epoch ${view.history.epochs[at]}: ${shown(value)}`), hoverinfo: "text", ...style,
  };
}

// Losses in different units cannot share a linear axis: by default it is logarithmic if first losses differ tenfold.
function isLogarithmic() {
  if (choices.log !== null) return choices.log;
  return payload.runs.some(({ history }) => {
    const first = (history.losses || []).slice(0, 1).flat().filter((row) => row.every((value) => isNumber(value) && value > 0));
    return first.length > 0 && first.every((row) => Math.max(...row) > 10 * Math.min(...row));
  });
}

function curveLayout(title, log) {
  const epochs = payload.runs.flatMap(({ history }) => history.epochs);
  return layoutOf({
    xaxis: { ...axisStyle("epoch"), ...(epochs.length > 1 ? { range: [Math.min(...epochs), Math.max(...epochs)] } : {}) },
    yaxis: { ...axisStyle(title), type: log ? "log" : "linear", exponentformat: "power", ...(log ? { dtick: undefined, nticks: 5 } : {}) },
    showlegend: true,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
    margin: { l: 52, r: 12, t: 30, b: 44 },
    uirevision: `${title}${log}`,
  });
}

function chartCurves() {
  const { view, i } = marked();
  const own = view !== null && i !== null && view.history.epochs.length > 0;
  const volumes = payload.runs.some(({ history }) => (history.hypervolume || []).filter(isNumber).length > 1);
  byId("curves-section").hidden = !own && !volumes;
  byId("hypervolumes").hidden = !volumes;
  byId("losses").hidden = !own;
  byId("weights").hidden = !own;
  rebuild("curve-controls", JSON.stringify([own, isLogarithmic()]), () => [own ? box("log", "Logarithmic losses", isLogarithmic(), (value) => change({ log: value })) : null]);
  if (volumes) chart("hypervolumes", drawHypervolumes);
  if (!own) return;
  const onVal = view.history.val ? "; lines with dots are on validation" : "";
  fill("curves-hint", capital(modelWords(view, i)), " of ", named(view.name), `, means over the training batches of each epoch${onVal}; thin lines are the other models of the run${keptWords(view, i)}.`);
  chart("losses", () => drawCurves("losses", "loss", isLogarithmic()));
  chart("weights", () => drawCurves("weights", "weight", false));
}

function drawHypervolumes() {
  const runs = visibleRuns().filter(({ view }) => (view.history.hypervolume || []).length > 1);
  const traces = runs.map(({ view, r }) => ({
    x: view.history.epochs, y: view.history.hypervolume, mode: "lines", name: plain(view.name, 30), line: { color: colourOf(r), width: marked().view === view ? 2.4 : 1.2 },
    hovertext: view.history.epochs.map((epoch, at) => `${plain(view.name)}, epoch ${epoch}: ${shown(view.history.hypervolume[at])}`), hoverinfo: "text",
  }));
  const on = payload.runs.some(({ history }) => history.val) ? "validation" : "training";
  draw("hypervolumes", traces, { ...curveLayout(`hypervolume on ${on}`, false), showlegend: runs.length > 1 && runs.length < 7 }, { ...CONFIG, displayModeBar: false });
}

function drawCurves(name, title, log) {
  const { view, i } = marked();
  const traces = view.tasks.flatMap((task, t) => {
    const colour = TASK_COLOURS[theme()][t % 8];
    const line = { color: colour, width: 2.2, dash: DASHES[t % DASHES.length] };
    const dotted = { line: { ...line, width: 1.3 }, mode: "lines+markers", marker: { size: 3 } };
    return [
      othersTrace(view, name, i, t, colour),
      ownTrace(view, name, i, t, { line, name: plain(task, 30) }, name === "losses" ? `${task}, training` : task),
      ...(name === "losses" && view.history.val ? [ownTrace(view, "val", i, t, { ...dotted, showlegend: false }, `${task}, validation`)] : []),
    ];
  });
  draw(name, traces, curveLayout(title, log), { ...CONFIG, displayModeBar: false });
}

function keptWords(view, i) {
  const last = view.history.epochs[view.history.epochs.length - 1];
  return view.kept && view.kept[i] !== last ? `. The model is that of epoch ${view.kept[i]}` : "";
}
