// Parallel coordinates for four tasks and more: a vertical axis per loss and metric, a line per solution.
// Not drawn by plotly, whose lines can be neither hovered over nor clicked.

const PARALLEL = { top: 48, bottom: 34, height: 350, margin: 46, gap: 92 };

function parallelNames(split) {
  const names = payload.runs.flatMap((view) => Object.keys(view.values[split] || {}));
  return [...new Set(names)].filter((name) => choices.parallel === "all" || name.startsWith("loss:") === (choices.parallel === "losses"));
}

// Whether a solution lies within all brushes.
function isKept(view, split, i) {
  return Object.entries(choices.brushes).every(([name, [low, high]]) => {
    const values = (view.values[split] || {})[name];
    return !values || (isNumber(values[i]) && values[i] >= low && values[i] <= high);
  });
}

function parallelScales(names, runs, split) {
  const { top, bottom, height } = PARALLEL;
  return names.map((name) => {
    const values = runs.flatMap(({ view }) => (view.values[split] || {})[name] || []).filter(isNumber);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const span = high - low || Math.abs(high) || 1;
    const [from, to] = high > low ? [low, high] : [low - span / 2, high + span / 2];
    const [start, end] = [height - bottom, top];
    return {
      name, low: from, high: to,
      place: (value) => start + ((value - from) / (to - from)) * (end - start),
      value: (place) => from + ((place - start) / (end - start)) * (to - from),
    };
  });
}

function lineOf(view, split, i, scales, at) {
  const points = scales.map((scale, a) => {
    const value = (view.values[split][scale.name] || [])[i];
    return isNumber(value) ? `${at(a).toFixed(1)},${scale.place(value).toFixed(1)}` : null;
  });
  return points.filter((point) => point).join(" ");
}

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
  const picture = svg("svg", { width, height: PARALLEL.height, class: "parallel", role: "group", "aria-label": "Parallel coordinates" });
  const tip = el("div", { class: "tip", hidden: true });
  const lines = runs.flatMap(({ view, r }) => view.subproblems.map((_, i) => ({ view, r, i })));
  lines.sort((one, other) => Number(isMarked(one)) - Number(isMarked(other)));
  for (const line of lines) picture.append(...parallelLine(line, split, scales, at, tip));
  scales.forEach((scale, a) => picture.append(axisGroup(scale, at(a))));
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parallel coordinates" }, picture);
  keepScroll("#parallel .scroll", () => fill("parallel", parallelControls(), box, tip));
  const inside = lines.filter(({ view, i }) => isKept(view, split, i)).length;
  const brushed = Object.keys(choices.brushes).length ? ` ${inside} of ${counted(lines.length, "solution")} lie within the brushes.` : "";
  const hint = `Values on ${splitName(split)}.${brushed}`;
  byId("parallel").append(el("p", { class: "hint", role: "status", id: "brushed" }, hint));
}

function isMarked({ view, i }) {
  const mark = marked();
  return mark.view === view && mark.i === i;
}

function parallelLine(line, split, scales, at, tip) {
  const { view, r, i } = line;
  if (!view.values[split]) return [];
  const points = lineOf(view, split, i, scales, at);
  const kept = isKept(view, split, i);
  const best = view.nondominated[split][i];
  const own = isMarked(line);
  const drawn = svg("polyline", {
    points, fill: "none", stroke: own ? ink("ink") : colourOf(r), "stroke-width": own ? 2.6 : 1.3,
    "stroke-opacity": kept ? (own || best ? 0.9 : 0.4) : 0.07, "stroke-dasharray": best || own ? null : "4 3", class: "line",
  });
  if (!kept) return [drawn];
  const wide = svg("polyline", { points, fill: "none", stroke: "transparent", "stroke-width": 9, class: "wide", "data-solution": `${r}-${i}` });
  wide.addEventListener("click", () => pickSolution(r, i));
  wide.addEventListener("pointermove", (event) => {
    drawn.setAttribute("stroke-width", 3);
    tip.hidden = false;
    tip.replaceChildren(...tipLines(view, split, i));
    const box = byId("parallel").getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 14, box.width - tip.offsetWidth))}px`;
    tip.style.top = `${event.clientY - box.top + 14}px`;
  });
  wide.addEventListener("pointerleave", () => {
    drawn.setAttribute("stroke-width", own ? 2.6 : 1.3);
    tip.hidden = true;
  });
  return [drawn, wide];
}

function tipLines(view, split, i) {
  const rows = Object.entries(view.values[split]).map(([name, values]) => el("div", {}, named(labelOf(name), 32), ` on ${splitName(split)}: ${shown(values[i])}`));
  return [el("strong", {}, named(view.name), `, ${briefly(view, i)}`), el("div", {}, preferenceWords(view, i)), ...rows, el("div", {}, standing(view, split, i))];
}

function parallelControls() {
  const kinds = [["losses", "Losses"], ["metrics", "Metrics"], ["all", "Both"]];
  const hasMetrics = payload.runs.some((view) => Object.keys((view.values[choices.split] || {})).some((name) => !name.startsWith("loss:")));
  const clear = el("button", { type: "button", class: "quiet", id: "clear-brushes", onclick: () => change({ brushes: {} }), disabled: !Object.keys(choices.brushes).length }, "Clear the brushes");
  const choose = hasMetrics ? segmented("parallel-kind", "Axes", kinds, choices.parallel, (kind) => change({ parallel: kind })) : null;
  return el("div", { class: "controls" }, choose, clear);
}

function setBrush(scale, low, high) {
  const brushes = { ...choices.brushes };
  const [from, to] = [Math.min(low, high), Math.max(low, high)];
  if (from <= scale.low && to >= scale.high) delete brushes[scale.name];
  else brushes[scale.name] = [Math.max(from, scale.low), Math.min(to, scale.high)];
  change({ brushes });
}

function axisGroup(scale, x) {
  const [low, high] = choices.brushes[scale.name] || [scale.low, scale.high];
  const group = svg("g", { class: "axis" });
  const text = (y, words, anchor = "middle") => {
    const made = svg("text", { x, y, "text-anchor": anchor });
    made.textContent = words;
    return made;
  };
  const words = choices.parallel === "losses" ? scale.name.replace("loss:", "") : labelOf(scale.name); // all axes are losses
  const label = text(14, short(words, 12));
  label.append(svg("title"));
  label.lastChild.textContent = labelOf(scale.name);
  label.setAttribute("class", "name");
  const [top, end] = [scale.place(scale.high), scale.place(scale.low)];
  group.append(svg("line", { x1: x, x2: x, y1: top, y2: end, class: "stem" }), label, text(end + 18, shown(scale.low, 3)), text(top - 12, shown(scale.high, 3)));
  if (scale.name in choices.brushes) {
    group.append(svg("rect", { x: x - 5, width: 10, y: scale.place(high), height: Math.max(1, scale.place(low) - scale.place(high)), class: "brush" }));
  }
  const catcher = svg("rect", { x: x - 12, width: 24, y: top, height: end - top, class: "catch", "data-axis": scale.name });
  dragBrush(catcher, scale);
  group.append(catcher, brushHandle(scale, x, low, "from", (value) => setBrush(scale, Math.min(value, high), high)), brushHandle(scale, x, high, "to", (value) => setBrush(scale, low, Math.max(value, low))));
  return group;
}

function brushHandle(scale, x, value, side, moved) {
  const y = scale.place(value);
  const handle = svg("rect", {
    x: x - 8, y: y - 3, width: 16, height: 6, rx: 3, class: "end", tabindex: 0, role: "slider", "data-key": `brush-${side}-${scale.name}`,
    "aria-label": `${labelOf(scale.name)} ${side}`, "aria-orientation": "vertical",
    "aria-valuemin": scale.low, "aria-valuemax": scale.high, "aria-valuenow": value, "aria-valuetext": shown(value),
  });
  handle.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 0.02, ArrowRight: 0.02, ArrowDown: -0.02, ArrowLeft: -0.02 }[event.key];
    if (!step) return;
    event.preventDefault();
    moved(Math.min(scale.high, Math.max(scale.low, value + step * (scale.high - scale.low))));
  });
  return handle;
}

// The picture is redrawn while a brush is dragged, so the window tracks the pointer.
function dragBrush(catcher, scale) {
  catcher.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const at = (moving) => scale.value(moving.clientY - document.querySelector("svg.parallel").getBoundingClientRect().top);
    const start = at(event);
    const move = (moving) => setBrush(scale, start, at(moving));
    const stop = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", stop);
      window.removeEventListener("pointercancel", stop);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop);
    window.addEventListener("pointercancel", stop);
  });
  catcher.addEventListener("dblclick", () => setBrush(scale, scale.low, scale.high));
}
