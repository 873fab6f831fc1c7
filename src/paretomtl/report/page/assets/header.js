// The header: title, what the page is about, notices, and how to read it.

function drawHeader() {
  fill("title", named(payload.title, 90));
  document.title = payload.title;
  fill("theme", theme() === "dark" ? "Light" : "Dark");
  byId("theme").setAttribute("aria-label", theme() === "dark" ? "Use light colours" : "Use dark colours");
  fill("lede", ledeOf());
  drawNotices();
  rebuild("footer", JSON.stringify([payload.made, payload.version]), () => [
    el("details", {}, el("summary", {}, "How to read this page"), READING.map((text) => el("p", {}, text))),
    el("p", {}, `Made ${payload.made} by paretomtl ${payload.version}.`)]);
}

const READING = [
  "Each model is a different trade-off between the tasks. No model is better than another one of its run in every task, except where one is called dominated.",
  "The recommended model gives up least: its largest regret is the smallest. The regret in a task is how far its loss lies between the best and the worst of the run, from 0 to 1. Outliers, with a loss above the run's reference point, do not count.",
  "Models are chosen on validation, or on training if there is no validation, and never on test: a model that was chosen on test looks better there than it is. Limits are on the same split.",
  "Accuracies and other shares are compared in percentage points, everything else in its own unit and in per cent of the other model.",
  "A colour is a method. If a method has several runs, a symbol is a seed; else symbols tell methods apart.",
];

function ledeOf() {
  if (!payload.runs.length) return ["There is nothing to show yet."];
  const total = payload.runs.reduce((sum, view) => sum + view.subproblems.length, 0);
  const tasks = joined(payload.tasks.map((task) => [named(task, 30)]));
  const runs = payload.runs.length > 1 ? ` of ${payload.runs.length} runs` : "";
  return [`${counted(total, "model")}${runs}, ${total === 1 ? "a trade-off" : "trade-offs"} between `, ...tasks, `. Chosen on ${splitName(choosingSplit())}.`];
}

function isBeatenByAny(view, split) {
  return remembered(view, ["beaten", split, payload.runs.length], () => payload.runs.some((other) => other !== view && other.problem === view.problem && other.values[split] && isBeaten(view, other, split)));
}

const NOTICES = 3; // more of them are folded

function drawNotices() {
  const all = [...payload.runs.flatMap((view) => [...stateNotices(view), ...frontNotices(view)]), ...beatenNotice()].map((notice) => el("p", { class: "notice" }, notice));
  const [first, rest] = [all.slice(0, NOTICES), all.slice(NOTICES)];
  fill("notices", first, rest.length ? el("details", {}, el("summary", {}, `${counted(rest.length, "more notice")}`), rest) : null);
}

// Runs whose every model is dominated by one of another run of the same problem.
function beatenNotice() {
  const split = choosingSplit();
  const beaten = payload.runs.filter((view) => view.values[split] && isBeatenByAny(view, split));
  if (!beaten.length) return [];
  const names = joined(beaten.slice(0, 5).map((view) => [named(view.name, 40)]));
  return [["Every model of ", ...names, beaten.length > 5 ? ` and ${beaten.length - 5} more runs` : "", ` is dominated by one of another run on ${splitName(split)}.`]];
}

function stateNotices(view) {
  const name = () => named(view.name);
  const notes = view.note ? [[name(), `: ${view.note}`]] : [];
  if (!Object.keys(view.values).length) notes.push(["There is nothing to show yet of ", name(), ": its first epoch is not done."]);
  if (payload.live !== null) return notes; // the news of a live page say more
  if (view.state === "stopped") notes.push([name(), ` was stopped early, after ${counted(view.epoch, "epoch")}.`]);
  if (view.state === "broken") notes.push([name(), " broke off; what it had stored is shown."]);
  return notes;
}

function frontNotices(view) {
  const split = choosingSplit();
  if (!Object.keys(view.values).length) return [];
  if (!view.values[split]) return [[named(view.name), ` has no values on ${splitName(split)}, and is left out of the choice.`]];
  const count = view.subproblems.length;
  const lost = view.subproblems.filter((_, i) => !isFinitePoint(lossesAt(view, split, i))).length;
  if (lost === count) return [["No model of ", named(view.name), ` has finite losses on ${splitName(split)}: there is nothing to draw or to choose.`]];
  const notes = lost ? [[`${counted(lost, "model")} of `, named(view.name), ` ${lost === 1 ? "has" : "have"} losses on ${splitName(split)} that are not finite, and ${lost === 1 ? "is" : "are"} left out.`]] : [];
  const best = candidates(view, split, {});
  if (best.length === 1 && count - lost > 1) notes.push([`${capital(modelWords(view, best[0]))} dominates all other models of `, named(view.name), ` on ${splitName(split)}: there is no trade-off to choose.`]);
  return notes;
}
