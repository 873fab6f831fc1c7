// The style of charts. A run has the colour of its method, and a symbol for its seed; both come with the payload.

const OUTLINES = {
  circle: "M6 1.6a4.4 4.4 0 1 0 .01 0z",
  square: "M2 2h8v8H2z",
  diamond: "M6 .8 11.2 6 6 11.2.8 6z",
  cross: "M4.4 1h3.2v3.4H11v3.2H7.6V11H4.4V7.6H1V4.4h3.4z",
  x: "M3 .9 6 3.9 9 .9 11.1 3 8.1 6l3 3L9 11.1l-3-3-3 3L.9 9l3-3-3-3z",
};

// The theme that is drawn: paper is light, whatever the screen is.
function theme() {
  if (printing || window.matchMedia("print").matches) return "light";
  return choices.theme || (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function colourOf(r) {
  return payload.styles[r].colour[theme()];
}

function shapeOf(r) {
  return payload.styles[r].symbol;
}

function swatch(r, hollow = false) {
  const style = hollow ? { fill: "none", stroke: colourOf(r), "stroke-width": 1.4 } : { fill: colourOf(r) };
  return svg("svg", { viewBox: "0 0 12 12", class: "swatch", "aria-hidden": "true" }, svg("path", { d: OUTLINES[shapeOf(r)], ...style }));
}

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const CONFIG = {
  responsive: true,
  displaylogo: false,
  showTips: false,
  doubleClick: "reset",
  modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
};

function axisStyle(title) {
  return {
    title: { text: title, standoff: 8 },
    gridcolor: ink("rule"),
    linecolor: ink("rule"),
    zeroline: false,
    automargin: true,
    tickcolor: ink("rule"),
    nticks: 7,
  };
}

function layoutOf(extra) {
  const touch = window.matchMedia("(pointer: coarse)").matches;
  return {
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 13, color: ink("muted") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 16, t: 10, b: 44 },
    hovermode: "closest",
    hoverlabel: { bgcolor: ink("raised"), bordercolor: ink("rule"), font: { color: ink("ink"), size: 13 }, align: "left" },
    showlegend: false,
    dragmode: touch ? false : "zoom",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: ink("muted"), activecolor: ink("accent") },
    ...extra,
  };
}

// Charts that are drawn for paper, in pixels: scaled ones would have letters of any size.
const PAPER = { plane: [688, 440], space: [688, 480], pair: [338, 290], curve: [338, 260] };

function paperSize(place) {
  const kind = Object.keys(PAPER).find((name) => place.classList.contains(name)) || "pair";
  return { autosize: false, width: PAPER[kind][0], height: PAPER[kind][1] };
}

// A chart that cannot be drawn says so in its place; the rest of the page stays.
function draw(id, traces, layout, config = CONFIG) {
  const place = byId(id);
  try {
    const failed = place.querySelector(".failed");
    if (failed) failed.remove();
    const size = printing ? paperSize(place) : { width: place.clientWidth }; // plotly keeps an old width if it was hidden
    Plotly.react(place, traces, { ...layout, ...size }, config);
  } catch (error) {
    place.replaceChildren(el("p", { class: "notice failed" }, `This chart could not be drawn (${error.message}). The tables below have its numbers.`));
    return null;
  }
  scaleOnPaper(place);
  if (!place.dataset.scaled) {
    place.dataset.scaled = "yes";
    place.on("plotly_afterplot", () => scaleOnPaper(place));
  }
  return place;
}

// Set the view box, so that print CSS can scale the chart to the width of the paper.
function scaleOnPaper(place) {
  const [width, height] = [place._fullLayout.width, place._fullLayout.height];
  place.style.setProperty("--shape", `${width} / ${height}`);
  for (const layer of place.querySelectorAll(".main-svg")) layer.setAttribute("viewBox", `0 0 ${width} ${height}`);
}

function listen(place, clicked) {
  if (!place || place.dataset.heard) return;
  place.dataset.heard = "yes";
  const markOf = (event) => event.points.map((point) => point.customdata).find((data) => data);
  place.on("plotly_click", (event) => {
    const mark = markOf(event);
    if (mark) clicked(mark[0], mark[1]);
  });
  place.on("plotly_hover", (event) => {
    const mark = markOf(event);
    if (mark) showTip(mark[0], mark[1], event.event);
  });
  place.on("plotly_unhover", hideTip);
}

// The tooltip of a model, made when somebody asks for it: text, never markup.
function showTip(r, i, { clientX = 0, clientY = 0 } = {}) {
  const [view, tip] = [payload.runs[r], byId("tip")];
  tip.replaceChildren(...tipLines(view, choices.split, i));
  tip.hidden = false;
  tip.style.left = `${Math.max(0, Math.min(clientX + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(0, Math.min(clientY + 14, window.innerHeight - tip.offsetHeight - 8))}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

function tipLines(view, split, i) {
  const names = Object.keys(view.values[split]);
  const rows = [...names.filter((name) => !isLoss(name)), ...names.filter(isLoss)].map((name) => el("div", {}, named(labelOf(name), 32), ` on ${splitName(split)}: ${valueText(name, valueAt(view, split, name, i))}`));
  const favours = favourWords(view, i);
  return [el("strong", {}, named(view.name), ", ", modelWords(view, i)), favours === "–" ? "" : el("div", {}, `favours: ${favours}`), ...rows, el("div", {}, standing(view, split, i))];
}
