// Tables that are sorted by a click on a column, or by the keyboard.

function sortedRows(rows, columns, order) {
  const column = columns.find(({ key }) => key === order.key);
  if (!column) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null); // unknown values stay at the end
    return sign * (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
  });
}

function table(id, columns, rows, wire) {
  const order = choices.sort[id] || {};
  const head = columns.map(({ key, label, numeric, split }) => {
    const sort = () => change({ sort: { ...choices.sort, [id]: { key, down: order.key === key && !order.down } } });
    const arrow = order.key === key ? (order.down ? " ↓" : " ↑") : "";
    return el(
      "th", { scope: "col", class: numeric ? "number" : null, "aria-sort": order.key === key ? (order.down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", "data-key": `${id}-${key}`, onclick: sort }, named(label, 28), split ? el("span", { class: "where" }, ` on ${splitName(split)}`) : null, el("span", { "aria-hidden": "true" }, arrow)),
    );
  });
  const body = sortedRows(rows, columns, order).map((one) => {
    const cells = columns.map((column) => el("td", { class: column.numeric ? "number" : null }, column.cell ? column.cell(one) : shown(column.value(one))));
    return wire(el("tr", {}, cells), one);
  });
  byId(id).style.setProperty("--columns", columns.length);
  fill(id, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

const BESIDE = 8; // columns of losses and metrics that fit in one table; with more, test has its own table

function number(key, label, split, value, cell) {
  return { key, label, split, numeric: true, value, cell };
}

function valueColumns(split) {
  const names = [...new Set(payload.runs.flatMap((view) => Object.keys(view.values[split] || {})))];
  const at = (name) => ({ view, i }) => ((view.values[split] || {})[name] || [])[i] ?? null;
  return names.map((name) => number(split === choosingSplit() ? name : `${split}:${name}`, labelOf(name), split, at(name)));
}

function leadColumns(cell) {
  return [
    { key: "run", label: "run", value: ({ view }) => view.name, cell: ({ view, r }) => el("span", { class: "run" }, swatch(r), named(view.name, 36)) },
    number("k", "k", null, ({ view, i }) => view.subproblems[i], cell),
    ...(payload.runs.some((view) => view.names) ? [
      { key: "name", label: "name", value: ({ view, i }) => (view.names ? view.names[i] : null), cell: ({ view, i }) => (view.names ? named(view.names[i], 36) : "–") },
    ] : []),
  ];
}

// Columns of the split to choose by, and of test if there is room.
function solutionColumns(values) {
  const split = choosingSplit();
  const angle = ({ view, i }) => angleAt(view, i);
  const region = ({ view, i }) => (regionAt(view, i) === null ? null : Number(regionAt(view, i)));
  return [
    ...leadColumns(pickButton),
    ...(payload.runs.some((view) => view.reading !== "none") ? [
      { key: "preference", label: preferenceLabel(), value: ({ view, i }) => view.preferences[i][0] ?? null, cell: ({ view, i }) => (view.reading === "none" ? "–" : el("span", { class: "vector" }, row(view.preferences[i], 2))) },
    ] : []),
    ...values,
    { key: "status", label: "status", split, value: ({ view, i }) => statusWords(view, split, i), cell: ({ view, i }) => statusWords(view, split, i) },
    ...(payload.runs.some((view) => view.in_region) ? [
      number("region", "in region", "train", region, (one) => (region(one) === null ? "–" : region(one) ? "yes" : "no")),
      number("angle", "degrees", "train", angle, (one) => shown(angle(one), 2)),
    ] : []),
  ];
}

function preferenceLabel() {
  const readings = [...new Set(payload.runs.map((view) => view.reading).filter((reading) => reading !== "none"))];
  return readings.length === 1 ? readings[0] : "preference";
}

function statusWords(view, split, i) {
  return isFinitePoint(lossesAt(view, split, i)) && !view.nondominated[split][i] ? `${view.status[i]}, dominated` : view.status[i];
}

function pickButton({ view, r, i }) {
  const pressed = isMarked({ view, i });
  return el("button", { type: "button", class: "pick", "data-key": `pick-${r}-${i}`, "aria-pressed": String(pressed), "aria-label": `Mark ${solutionWords(view, i)} of ${view.name}` }, String(view.subproblems[i]));
}

function drawSolutions() {
  const split = choosingSplit();
  const rows = visibleRuns().filter(({ view }) => view.values[split]).flatMap(({ view, r }) => view.subproblems.map((_, i) => ({ view, r, i })));
  const wire = (made, { view, r, i }) => {
    made.addEventListener("click", () => pickSolution(r, i));
    if (isMarked({ view, i })) made.className = "marked";
    else if (!view.nondominated[split][i]) made.className = "dominated";
    if (!isKept(view, choices.split, i)) made.classList.add("out");
    return made;
  };
  const [own, beside] = [valueColumns(split), tableSplits().filter((other) => other !== split).flatMap((other) => valueColumns(other))];
  const together = own.length + beside.length <= BESIDE;
  table("solutions", solutionColumns(together ? [...own, ...beside] : own), rows, wire);
  byId("test-section").hidden = together;
  if (!together) table("solutions-test", [...leadColumns(({ view, i }) => String(view.subproblems[i])), ...beside], rows, wire);
}

// What a run is worth against all runs of its problem on the page.
function unionColumns() {
  const known = payload.runs.find((view) => view.union);
  if (!known) return [];
  const { split } = known.union;
  const at = (name) => ({ view }) => (view.union && view.union.split === split ? view.union[name] : null);
  const text = (value) => (isNumber(value) ? String(+value.toFixed(4)) : "–"); // shares of a range: 0.0001 is nothing
  const column = (name, label) => number(name, label, split, at(name), (one) => text(at(name)(one)));
  return [column("regret", "regret"), column("r2", "R2"), column("igd_plus", "IGD+")];
}

function unionHint() {
  const known = payload.runs.find((view) => view.union);
  if (!known) return "";
  const { split, chosen_on: chosen } = known.union;
  const where = chosen === split ? "" : ` on ${splitName(chosen)}, measured on ${splitName(split)}`;
  return ` Regret: what users with random utilities lose who choose from one run${where}. R2 and IGD+: distance to the best losses, and to the best solutions, of all runs of the problem. Less is better for these three.`;
}

function drawRuns() {
  const splits = tableSplits();
  const count = (list) => list.filter(Boolean).length;
  const many = (view, list) => (list ? `${count(list)} of ${view.subproblems.length}` : "–");
  const trained = payload.runs.some((view) => view.seed !== null);
  const columns = [
    { key: "run", label: "run", value: ({ view }) => view.name, cell: ({ view, r }) => el("span", { class: "run" }, swatch(r), named(view.name, 36)) },
    { key: "problem", label: "problem", value: ({ view }) => view.problem, cell: ({ view }) => named(view.problem, 28) },
    { key: "method", label: "method", value: ({ r }) => payload.styles[r].label, cell: ({ r }) => named(payload.styles[r].label, 28) },
    ...(trained ? [number("seed", "seed", null, ({ view }) => view.seed)] : []),
    ...splits.map((split) => number(`hypervolume-${split}`, "hypervolume", split, ({ view }) => view.hypervolume[split] ?? null)),
    ...unionColumns(),
    ...splits.map((split) => number(`best-${split}`, "not dominated", split, ({ view }) => count(view.nondominated[split] || []), ({ view }) => many(view, view.nondominated[split]))),
    ...(!trained ? [] : [
      number("region", "in region", "train", ({ view }) => (view.in_region ? count(view.in_region.train || []) : null), ({ view }) => many(view, view.in_region && view.in_region.train)),
      number("epoch", "epochs", null, ({ view }) => view.epoch),
      number("seconds", "time", null, ({ view }) => view.seconds, ({ view }) => clock(view.seconds)),
      { key: "state", label: "state", value: ({ view }) => view.state, cell: ({ view }) => view.state },
      { key: "strategy", label: "trained", value: ({ view }) => view.strategy, cell: ({ view }) => el("span", { class: "strategy" }, view.strategy) },
    ]),
  ];
  table("runs", columns, payload.runs.map((view, r) => ({ view, r })), (made) => made);
  const references = [...new Set(payload.runs.filter((view) => isNumber(view.hypervolume[splits[0]])).map((view) => row(view.reference)))];
  let hint = "";
  if (references.length === 1) hint = `Hypervolumes are at ${references[0]}; more is better. Compare runs on ${splitName(splits[0])}${splits.length > 1 ? "; test is shown next to it" : ""}.`;
  if (references.length > 1) hint = "Hypervolumes are at different reference points, and are not comparable.";
  fill("runs-hint", hint + unionHint());
}
