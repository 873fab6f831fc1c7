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
    const words = [named(label, 32), split ? el("span", { class: "where" }, ` on ${splitName(split)}`) : null, el("span", { "aria-hidden": "true" }, arrow)];
    return el(
      "th", { scope: "col", class: numeric ? "number" : null, "aria-sort": order.key === key ? (order.down ? "descending" : "ascending") : "none" },
      printing ? el("span", { class: "head" }, words) : el("button", { type: "button", class: "head", "data-key": `${id}-${key}`, onclick: sort }, words), // Chromium repeats headers on paper without their buttons
    );
  });
  const body = sortedRows(rows, columns, order).map((one) => {
    const cells = columns.map((column) => el("td", { class: column.numeric ? "number" : null }, column.cell ? column.cell(one) : shown(column.value(one))));
    return wire(el("tr", {}, cells), one);
  });
  byId(id).style.setProperty("--columns", columns.length);
  fill(id, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

const ROWS = 400; // more rows than this are listed on request
const BESIDE = 8; // columns of losses and metrics that fit in one table; with more, test has its own table

function number(key, label, split, value, cell) {
  return { key, label, split, numeric: true, value, cell };
}

// Metrics first: they are what a reader knows.
function valueColumns(split) {
  const names = availableNames(split);
  return [...names.filter((name) => !isLoss(name)), ...names.filter(isLoss)].map((name) => {
    const value = ({ view, i }) => valueAt(view, split, name, i);
    return number(split === choosingSplit() ? name : `${split}:${name}`, labelOf(name), split, value, (one) => valueText(name, value(one)));
  });
}

function leadColumns(cell) {
  return [
    { key: "run", label: "run", value: ({ view }) => view.name, cell: ({ view, r }) => el("span", { class: "run" }, swatch(r), named(view.name, 36)) },
    number("k", "model", null, ({ view, i }) => view.subproblems[i], cell),
    ...(payload.runs.some((view) => view.names) ? [
      { key: "name", label: "name", value: ({ view, i }) => (view.names ? view.names[i] : null), cell: ({ view, i }) => (view.names ? named(view.names[i], 36) : "–") },
    ] : []),
  ];
}

// Columns of the split to choose by, and of test if there is room.
function modelColumns(values) {
  const split = choosingSplit();
  return [
    ...leadColumns(pickButton),
    ...(payload.runs.some((view) => view.favours) ? [
      { key: "favours", label: "favours", value: ({ view, i }) => favourWords(view, i), cell: ({ view, i }) => el("span", { class: "vector", title: preferenceWords(view, i) }, favourWords(view, i)) },
    ] : []),
    ...values,
    { key: "note", label: "note", value: ({ view, i }) => standing(view, split, i), cell: ({ view, i }) => standing(view, split, i).replace(/ on .*/, "") },
  ];
}

function pickButton({ view, r, i }) {
  return el("button", { type: "button", class: "pick", "data-key": `pick-${r}-${i}`, "aria-pressed": String(isMarked({ view, i })), "aria-label": `Mark ${modelWords(view, i)} of ${view.name}` }, String(view.subproblems[i]));
}

function modelRows() {
  const split = choosingSplit();
  const all = visibleRuns().filter(({ view }) => view.values[split]).flatMap(({ view, r }) => view.subproblems.map((_, i) => ({ view, r, i })));
  const some = all.length <= ROWS || choices.rows ? all : all.filter(({ view }) => view === marked().view);
  fill("models-hint", "Click a column to sort by it, or a row to mark its model.", some.length === all.length ? null : [
    " Only the models of ", named(marked().view.name), " are listed. ",
    el("button", { type: "button", id: "all-rows", onclick: () => change({ rows: true }) }, `List all ${all.length}`)]);
  return some;
}

function drawModels() {
  const split = choosingSplit();
  const wire = (made, { view, r, i }) => {
    made.addEventListener("click", () => pickModel(r, i));
    made.dataset.model = `${r}-${i}`;
    if (standing(view, split, i)) made.classList.add("dominated");
    return made;
  };
  const rows = modelRows();
  const [own, beside] = [valueColumns(split), tableSplits().filter((other) => other !== split).flatMap((other) => valueColumns(other))];
  const together = own.length + beside.length <= BESIDE;
  table("models", modelColumns(together ? [...own, ...beside] : own), rows, wire);
  byId("test-section").hidden = together || !beside.length;
  if (!byId("test-section").hidden) table("models-test", [...leadColumns(({ view, i }) => String(view.subproblems[i])), ...beside], rows, wire);
  drawTargets(rows);
  markRows();
}

// Move the mark alone.
function markRows() {
  const { r, i } = marked();
  for (const made of document.querySelectorAll("tr[data-model]")) {
    const own = made.dataset.model === `${r}-${i}`;
    if (made.classList.contains("marked") === own) continue;
    made.classList.toggle("marked", own);
    const button = made.querySelector(".pick");
    if (button) button.setAttribute("aria-pressed", String(own));
  }
}

// Directions and importances have opposite meanings, so each is named.
function drawTargets(rows) {
  const trained = rows.filter(({ view }) => view.reading !== "none");
  byId("targets").hidden = !trained.length;
  if (!trained.length || !byId("targets").open) return;
  fill("targets-hint", "A direction is where the losses should point: a large part allows a large loss. An importance is the opposite: a large part asks for a small loss. A model is on target if its training losses are nearer to its own direction than to that of any other model.");
  const angle = ({ view, i }) => angleAt(view, i);
  table("targets-table", [
    ...leadColumns(({ view, i }) => String(view.subproblems[i])),
    { key: "reading", label: "trained for", value: ({ view }) => view.reading, cell: ({ view, i }) => el("span", { class: "vector" }, `${view.reading} ${row(view.preferences[i], 2)}`) },
    { key: "target", label: "target", value: ({ view, i }) => targetWords(view, i), cell: ({ view, i }) => targetWords(view, i) },
    number("angle", "degrees off", "train", angle, (one) => shown(angle(one), 2)),
    { key: "status", label: "status", value: ({ view, i }) => view.status[i], cell: ({ view, i }) => view.status[i] },
  ], trained, (made, { r, i }) => {
    made.dataset.model = `${r}-${i}`;
    return made;
  });
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
  return ` Regret: what users with random wishes lose who choose from one run${where}. R2 and IGD+: distance to the best losses, and to the best models, of all runs of the problem. Less is better for these three.`;
}

function drawRuns() {
  const splits = tableSplits();
  const count = (list) => list.filter(Boolean).length;
  const many = (view, list) => (list ? `${count(list)} of ${view.subproblems.length}` : "–");
  const trained = payload.runs.some((view) => view.seed !== null);
  const problems = new Set(payload.runs.map((view) => view.problem)).size > 1;
  const columns = [
    { key: "run", label: "run", value: ({ view }) => view.name, cell: ({ view, r }) => el("span", { class: "run" }, swatch(r), named(view.name, 36)) },
    ...(problems ? [{ key: "problem", label: "problem", value: ({ view }) => view.problem, cell: ({ view }) => named(view.problem, 28) }] : []),
    { key: "method", label: "method", value: ({ r }) => payload.styles[r].label, cell: ({ r }) => named(payload.styles[r].label, 28) },
    ...(trained ? [number("seed", "seed", null, ({ view }) => view.seed)] : []),
    number("models", "models", null, ({ view }) => view.subproblems.length),
    ...splits.map((split) => number(`hypervolume-${split}`, "hypervolume", split, ({ view }) => view.hypervolume[split] ?? null)),
    ...unionColumns(),
    ...splits.slice(0, 1).map((split) => number(`best-${split}`, "not dominated", split, ({ view }) => count(view.nondominated[split] || []), ({ view }) => many(view, view.nondominated[split]))),
    ...(!trained ? [] : [
      number("epoch", "epochs", null, ({ view }) => view.epoch),
      number("seconds", "time", null, ({ view }) => view.seconds, ({ view }) => clock(view.seconds)),
      { key: "state", label: "state", value: ({ view }) => view.state, cell: ({ view }) => view.state },
    ]),
  ];
  table("runs", columns, payload.runs.map((view, r) => ({ view, r })), (made) => made);
  const references = [...new Set(payload.runs.filter((view) => isNumber(view.hypervolume[splits[0]])).map((view) => row(view.reference)))];
  let hint = "";
  if (references.length === 1) hint = `Hypervolume: how much of the losses below ${references[0]} the models cover; more is better.`;
  if (references.length > 1) hint = "Hypervolumes are at different reference points, and are not comparable.";
  fill("runs-hint", hint + unionHint());
}
