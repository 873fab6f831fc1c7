// Limits: "at least" and "at most" for every metric and loss, and the name by which the best model within them is taken.
// Brushes of the parallel coordinates set the same limits.

function setLimit(name, side, value) {
  const limits = { ...choices.limits, [name]: { least: null, most: null, ...choices.limits[name], [side]: value } };
  if (!isNumber(limits[name].least) && !isNumber(limits[name].most)) delete limits[name];
  change({ limits, ...afterLimit() });
}

// A model that was picked by hand gives way to the rule: what is outside the limits must not stay chosen.
function afterLimit() {
  return choices.pick.how === "model" ? { pick: { how: "balanced" } } : {};
}

function clearLimits() {
  change({ limits: {} });
}

function limitNames(split) {
  const names = availableNames(split);
  return { metrics: names.filter((name) => !isLoss(name)), losses: names.filter(isLoss) };
}

function drawLimits() {
  const split = choosingSplit();
  const { metrics, losses } = limitNames(split);
  rebuild("limits", JSON.stringify([metrics, losses, split, [...payload.shares]]), () => [
    el("h3", { id: "limits-title" }, "What must it have?"),
    metrics.length ? limitTable("Metrics", metrics, split) : null,
    metrics.length
      ? el("details", { id: "loss-limits" }, el("summary", {}, "Limits on losses"), limitTable("Losses", losses, split))
      : limitTable("Losses", losses, split),
    el("div", { class: "steps" },
      el("span", { id: "left", class: "hint", role: "status" }),
      el("button", { type: "button", class: "quiet", id: "clear-limits", onclick: clearLimits }, "Clear limits")),
  ]);
  for (const name of [...metrics, ...losses]) {
    for (const side of ["least", "most"]) showLimit(name, side);
    const take = byId("limits").querySelector(`[data-best="${CSS.escape(name)}"]`);
    take.setAttribute("aria-pressed", String(choices.pick.how === "best" && choices.pick.name === name));
  }
  drawLeft(split);
}

function drawLeft(split) {
  const runs = choosableRuns(split);
  const all = runs.reduce((sum, view) => sum + view.subproblems.length, 0);
  const within = runs.reduce((sum, view) => sum + view.subproblems.filter((_, i) => isWithin(view, split, i, choices.limits)).length, 0);
  const some = limitList(choices.limits).length > 0;
  fill("left", some ? `${within} of ${counted(all, "model")} within the limits on ${splitName(split)}.` : `No limits yet: ${counted(all, "model")}.`);
  byId("clear-limits").disabled = !some;
}

function limitTable(caption, names, split) {
  const head = [el("td"), el("th", { scope: "col" }, "at least"), el("th", { scope: "col" }, "at most"), el("td")];
  return el("table", { class: "limits" },
    el("caption", { class: "hidden" }, `Limits: ${caption}`),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, names.map((name) => el("tr", {},
      el("th", { scope: "row" }, named(labelOf(name), 40), isShare(name) ? el("span", { class: "hint" }, " in %") : null),
      el("td", {}, limitField(name, "least", split)), el("td", {}, limitField(name, "most", split)),
      el("td", {}, el("button", { type: "button", class: "take", "data-best": name, "aria-pressed": "false", "aria-label": `Take the best ${labelOf(name)}`,
        onclick: () => change({ pick: { how: "best", name } }) }, "Best"))))));
}

// Empty fields show the range of all models: the lowest value for "at least", the highest one for "at most".
function limitField(name, side, split) {
  const values = choosableRuns(split).flatMap((view) => view.values[split][name] || []).filter(isNumber);
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [null, null];
  const hint = side === "least" ? low : high;
  return el("input", {
    type: "number", step: "any", inputmode: "decimal", class: "limit", "data-key": `limit-${side}-${name}`, "aria-label": `${labelOf(name)} at ${side}${isShare(name) ? ", in per cent" : ""}`,
    placeholder: hint === null ? "" : isShare(name) ? (100 * hint).toFixed(1) : shown(hint, 3),
    oninput: (event) => {
      const { valueAsNumber: number } = event.target;
      setLimit(name, side, Number.isFinite(number) ? (isShare(name) ? +(number / 100).toPrecision(12) : number) : null);
    },
  });
}

// A field that is being typed into is left alone.
function showLimit(name, side) {
  const field = byId("limits").querySelector(`[data-key="${CSS.escape(`limit-${side}-${name}`)}"]`);
  if (field === document.activeElement) return;
  const limit = (choices.limits[name] || {})[side];
  const text = isNumber(limit) ? String(isShare(name) ? +(100 * limit).toPrecision(10) : limit) : "";
  if (field.value !== text) field.value = text;
}
