// The answer: the recommended or chosen model with its numbers, one line why, one line on the runs, and the command.

// "75.4 % top-left, 80.1 % bottom-right": one value per task, as the reader measures it.
function valuesOf(view, split, i) {
  const names = taskNames(split);
  const accuracies = names.every((name, t) => name === `${payload.tasks[t]} accuracy`);
  return names.map((name, t) => {
    const words = accuracies ? payload.tasks[t] : labelOf(name);
    return [el("span", { class: words.length <= 16 ? "one" : null }, el("strong", { class: "value" }, valueText(name, valueAt(view, split, name, i), 3)), " ", named(words, 40))];
  });
}

function joined(pieces, between = ", ") {
  return pieces.flatMap((piece, at) => (at ? [between, ...piece] : piece));
}

function headlineOf(view, i) {
  const { how, name } = choices.pick;
  const limited = limitList(choices.limits).length > 0;
  const soFar = isEnded(view) ? ": " : " so far: ";
  if (how === "best") return ["Best ", named(labelOf(name), 40), soFar, modelWords(view, i), ". "];
  if (how === "model") return ["Your choice", soFar, modelWords(view, i), ". "];
  return [limited ? "Recommended within your limits" : "Recommended", soFar, modelWords(view, i), ". "];
}

function isEnded(view) {
  return view.state === "finished" || view.state === "stopped";
}

function drawAnswer() {
  const { view, i } = marked();
  const split = choosingSplit();
  byId("export").hidden = i === null || !isEnded(view);
  fill("verdict", verdictOf());
  byId("verdict").hidden = !byId("verdict").childNodes.length;
  if (i === null) {
    const [headline, why] = nothingLeft(view, split);
    fill("headline", headline);
    fill("why", why);
    return;
  }
  fill("headline", headlineOf(view, i), el("span", { class: "values" }, joined(valuesOf(view, split, i))));
  fill("why", whyOf(view, split, i), rivalWords(view, split, i));
  if (isEnded(view)) fill("command", joined(commandFor(view, i).map((part) => [el("span", { class: "part" }, part)]), " "));
}

function ofRun(view) {
  return payload.runs.length > 1 ? [" of ", named(view.name, 40)] : [];
}

function whyOf(view, split, i) {
  const { how, name } = choices.pick;
  const limits = limitList(choices.limits).length ? " within your limits" : "";
  const on = ` on ${splitName(split)}`;
  if (how === "best") {
    const count = choosableRuns(split).reduce((sum, run) => sum + run.subproblems.filter((_, j) => isWithin(run, split, j, choices.limits)).length, 0);
    return ["It has the best ", named(labelOf(name), 40), ` of ${counted(count, "model")}${limits}${on}`, ...(payload.runs.length > 1 ? [", in ", named(view.name, 40)] : []), "."];
  }
  if (how === "model") {
    const other = balanced(view, split);
    if (other === null || other === i) return ["It is also the recommended model", ...ofRun(view), `${limits}${on}.`];
    return [`Against the recommended model ${briefly(view, other)}`, ...ofRun(view), `${on}: `, ...joined(comparison(view, split, i, other)), "."];
  }
  const least = taskNames(split).every(isLoss) ? "It gives up least" : "By losses, it gives up least"; // what follows may be metrics
  if (candidates(view, split).length > 1) return [least, ...ofRun(view), `${limits}: `, ...givenUp(view, split, i), "."];
  const left = view.subproblems.filter((_, j) => isWithin(view, split, j, choices.limits)).length;
  return left === 1 ? ["It is the only model", ...ofRun(view), `${limits}.`] : ["No other model", ...ofRun(view), `${limits} has a lower loss in any task${on}.`];
}

// A run is chosen by its hypervolume, and a model within its run: one of another run may still be better.
function rivalWords(view, split, i) {
  const rival = rivalsOf(view, split)[i];
  if (!rival) return [];
  return [` ${capital(modelWords(rival.view, rival.i))} of `, named(rival.view.name, 40), ` has a ${rival.every ? "lower" : "lower or equal"} loss in every task on ${splitName(split)}.`];
}

// How far the model is behind the best model in each task; for many tasks, in the worst one.
function givenUp(view, split, i) {
  const rows = view.subproblems.map((_, j) => j).filter((j) => isWithin(view, split, j, choices.limits) && isFinitePoint(lossesAt(view, split, j)));
  const names = taskNames(split);
  const behind = names.map((name) => {
    const best = rows.reduce((a, b) => (gainOf(view, split, b, a, name) > 0 ? b : a));
    const values = rows.map((j) => valueAt(view, split, name, j)).filter(isNumber);
    const share = gainOf(view, split, best, i, name) / (Math.max(...values) - Math.min(...values) || 1);
    return { name, share, amount: amountText(name, gainOf(view, split, best, i, name), null) };
  });
  const piece = ({ name, share, amount }) => (share > 0 ? [`${amount} behind the best `, named(labelOf(name), 40)] : ["the best ", named(labelOf(name), 40)]);
  if (names.length <= 3) return joined(behind.map(piece), ", ");
  const worst = behind.reduce((a, b) => (b.share > a.share ? b : a));
  return ["in no task is it farther than ", `${Math.round(100 * worst.share)} % of the way from the best to the worst model (`, named(labelOf(worst.name), 40), ")"];
}

function gainOf(view, split, i, j, name) {
  const [own, other] = [valueAt(view, split, name, i), valueAt(view, split, name, j)];
  return isNumber(own) && isNumber(other) ? (isHigher(view, name) ? own - other : other - own) : 0;
}

function verdictOf() {
  const problems = [...new Set(payload.runs.map((view) => view.problem))];
  if (problems.length > 1) return ["These runs are of different problems (", ...joined(problems.map((name) => [named(name, 30)])), "): their numbers do not compare, and the recommendation is for ", named(marked().view.problem, 30), " alone."];
  return payload.verdict ? [payload.verdict] : [];
}

// No model is left: which limit binds, and by how much.
function nothingLeft(view, split) {
  const limits = limitList(choices.limits);
  const rows = view ? view.subproblems.filter((_, i) => isFinitePoint(lossesAt(view, split, i))) : [];
  const { how, name } = choices.pick;
  if (how === "best" && candidates(view, split).length) return [[`No model${limits.length ? " within your limits" : ""} has a known `, named(labelOf(name), 40), ` on ${splitName(split)}.`], []];
  if (!limits.length || !rows.length) return [["There is nothing to choose from yet."], []];
  const near = nearestRun(split);
  if (near === null) {
    const unknown = limits.filter(({ name }) => !payload.runs.some((run) => ((run.values[split] || {})[name] || []).some(isNumber)));
    return [["No model is within your limits."], unknown.length ? ["No model has a known ", named(labelOf(unknown[0].name)), ` on ${splitName(split)}.`] : []];
  }
  const missed = limits.filter((one) => missOf(one, valueAt(near.view, split, one.name, near.i)) > 0);
  const binding = missed.map((one) => {
    const value = valueAt(near.view, split, one.name, near.i);
    const low = one.side === "least";
    return [named(labelOf(one.name), 40), ` is ${valueText(one.name, value)}, ${amountText(one.name, missOf(one, value), null)} too ${low ? "low" : "high"} for at ${one.side} ${valueText(one.name, one.limit)}`];
  });
  return [
    ["No model is within your limits."],
    [`${capital(modelWords(near.view, near.i))}`, ...ofRun(near.view), " comes nearest: its ", ...joined(binding, " and its "), ". ",
      ...missed.map((one) => relaxButton(one, valueAt(near.view, split, one.name, near.i)))],
  ];
}

function nearestRun(split) {
  const runs = choosableRuns(split).map((view) => ({ view, i: nearestToLimits(view, split) })).filter(({ i }) => i !== null);
  const far = ({ view, i }) => Math.max(...limitList(choices.limits).map((one) => missOf(one, valueAt(view, split, one.name, i)) / rangesOfNames(view, split, [one.name])[0]));
  return runs.length ? runs.reduce((a, b) => (far(b) < far(a) ? b : a)) : null;
}

function relaxButton({ name, side }, value) {
  return el("button", { type: "button", class: "relax", onclick: () => setLimit(name, side, value) }, `Relax ${short(labelOf(name), 30)} to ${valueText(name, value)}`);
}

// The bar at the bottom of a phone: one slider through the models, and the numbers of the marked one.
function drawBar() {
  const { view, i } = marked();
  const split = choosingSplit();
  byId("bar").hidden = i === null;
  if (i === null) return;
  const order = ordered(view, split);
  rebuild("bar", JSON.stringify([view.name, split, order]), () => [
    el("input", { type: "range", id: "bar-slider", min: 0, max: Math.max(0, order.length - 1), step: 1, disabled: order.length < 2, "aria-label": "Step through the models",
      oninput: (event) => pickModel(marked().r, ordered(marked().view, choosingSplit())[Number(event.target.value)]) }),
    el("div", { id: "bar-text", class: "bar-text" }),
  ]);
  byId("bar-slider").value = Math.max(0, order.indexOf(i));
  byId("bar-slider").setAttribute("aria-valuetext", modelWords(view, i));
  fill("bar-text", el("strong", {}, capital(modelWords(view, i))), ": ", joined(valuesOf(view, split, i), " · "));
}

function wireCopy() {
  byId("copy").addEventListener("click", async () => {
    const text = byId("command").textContent;
    let copied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      window.getSelection().selectAllChildren(byId("command"));
      copied = document.execCommand("copy");
    }
    byId("copy").textContent = copied ? "Copied" : "Press Ctrl+C";
    setTimeout(() => fill("copy", "Copy"), 1600);
  });
}
