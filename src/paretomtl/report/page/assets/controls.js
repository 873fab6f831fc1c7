// Controls: what is shown, on which split, on which axes.

function segmented(id, label, options, value, picked) {
  const inputs = options.map(([key, words]) => el("label", {},
    el("input", { type: "radio", name: id, value: key, checked: key === value, "data-key": `${id}-${key}`, onchange: () => picked(key) }), el("span", {}, words)));
  return el("fieldset", { class: "segmented", id }, el("legend", {}, label), inputs);
}

function box(id, label, value, changed) {
  return el("label", { class: "check" }, el("input", { type: "checkbox", id, "data-key": id, checked: value, onchange: (event) => changed(event.target.checked) }), label);
}

// Metrics or losses on the axes; nothing if there are no metrics.
function kindControl() {
  if (!availableNames(choices.split).some((name) => !isLoss(name))) return null;
  const kinds = [["metrics", "metrics"], ["losses", "losses"], ...(payload.tasks.length > 3 ? [["both", "both"]] : [])];
  return segmented("kind", "Show", kinds, choices.kind, (kind) => change({ kind, x: null, y: null }));
}

function drawControls() {
  const splits = availableSplits();
  const names = availableNames(choices.split);
  const targets = payload.runs.some((view) => view.reading === "direction") && (choices.kind === "losses" || isLossPlane({ tasks: payload.tasks }, choices.x, choices.y));
  const far = hasOutliers(choices.split);
  rebuild("controls", JSON.stringify([splits, choices.split, choices.kind, names, targets, choices.targets, far, choices.outliers]), () => [
    kindControl(),
    splits.length > 1 ? segmented("splits", "on", splits.map((split) => [split, splitName(split)]), choices.split, (split) => change({ split })) : null,
    targets ? box("show-targets", payload.tasks.length === 2 ? "Targets and regions" : "Targets", choices.targets, (value) => change({ targets: value })) : null,
    far ? box("outliers", "Show outliers", choices.outliers, (value) => change({ outliers: value })) : null,
  ]);
  rebuild("axes", JSON.stringify([names, choices.x, choices.y]), () => ["y", "x"].map((side) => el("label", { class: "field" }, side.toUpperCase(), " ",
    el("select", { id: `axis-${side}`, "data-key": `axis-${side}`, onchange: (event) => change({ [side]: event.target.value }) },
      names.map((name) => el("option", { value: name, selected: name === choices[side] }, short(labelOf(name))))))));
  byId("plane-title").hidden = payload.tasks.length < 4;
  fill("plane-hint", planeHint(far));
}

function planeHint(far) {
  const words = [];
  if (far && !showsOutliers(choices.split)) words.push("Outliers are left out.");
  const hollow = visibleRuns().some(({ view }) => view.subproblems.some((_, i) => isFinitePoint(lossesAt(view, choices.split, i)) && !view.nondominated[choices.split][i]));
  if (hollow) words.push("Hollow models are dominated: another one of their run has lower losses.");
  if (choices.targets) words.push(payload.tasks.length === 2 ? "Dashed rays are targets, every other region is grey; thin lines join each model to its target." : "Thin lines join each model to its target.");
  if (payload.tasks.length === 3) words.unshift(`Values are on ${splitName(choices.split)}.`);
  return [words.join(" "), payload.live === null ? el("span", { class: "doing" }, " Click a model to mark it.") : null];
}
