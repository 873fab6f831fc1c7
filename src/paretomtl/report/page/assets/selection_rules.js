// Selection rules: which solution a preference picks, and how it compares with others. Functions of a view, a split and
// the place i of a solution.

function lossesAt(view, split, i) {
  const values = view.values[split];
  return view.tasks.map((task) => (values ? values[`loss:${task}`][i] : null));
}

function isFinitePoint(point) {
  return point.every(isNumber);
}

// Losses as regions use them: relative to the ideal point, and in the units of the run.
function scaledAt(view, split, i) {
  return lossesAt(view, split, i).map((loss, t) => {
    if (!isNumber(loss)) return null;
    const shifted = view.ideal ? Math.max(0, loss - view.ideal[t]) : loss;
    return view.scale ? shifted * view.scale[i][t] : shifted;
  });
}

function length(vector) {
  return Math.hypot(...vector);
}

// In degrees, by the half-angle formula, which is accurate for nearly parallel vectors; NaN for a zero vector.
function angleBetween(one, other) {
  const u = one.map((value) => value / length(one));
  const v = other.map((value) => value / length(other));
  const difference = length(u.map((value, t) => value - v[t]));
  return (360 / Math.PI) * Math.atan2(difference, length(u.map((value, t) => value + v[t])));
}

// The solutions to choose from: finite, and not dominated by another one of the run.
function candidates(view, split) {
  const best = view.nondominated[split] || [];
  return view.subproblems.map((_, i) => i).filter((i) => best[i]);
}

// The rule of Front.select(direction=...): the smallest angle among the candidates.
function nearest(view, split, direction) {
  let best = null;
  let least = Infinity;
  for (const i of candidates(view, split)) {
    const angle = angleBetween(scaledAt(view, split, i), direction);
    if (angle < least) [best, least] = [i, angle];
  }
  return best;
}

// The rule of Front.select(max_regret=True): the smallest maximum regret, among those within the reference point.
function balanced(view, split) {
  const within = view.within[split] || [];
  const rows = candidates(view, split).filter((i) => within[i]);
  const points = rows.map((i) => lossesAt(view, split, i));
  const low = view.tasks.map((_, t) => Math.min(...points.map((point) => point[t])));
  const high = view.tasks.map((_, t) => Math.max(...points.map((point) => point[t])));
  let best = null;
  let least = [Infinity, Infinity];
  points.forEach((point, at) => {
    const regrets = point.map((loss, t) => (loss - low[t]) / (high[t] > low[t] ? high[t] - low[t] : 1));
    const score = [Math.max(...regrets), regrets.reduce((sum, regret) => sum + regret, 0)];
    if (score[0] < least[0] || (score[0] === least[0] && score[1] < least[1])) [best, least] = [rows[at], score];
  });
  return best;
}

// The candidates in the order of the front: along it for two tasks, else as they are numbered.
function ordered(view, split) {
  const rows = candidates(view, split);
  if (view.tasks.length !== 2) return rows;
  return rows.sort((i, j) => lossesAt(view, split, i)[0] - lossesAt(view, split, j)[0]);
}

function neighbours(view, split, i) {
  if (view.tasks.length === 2) {
    const own = lossesAt(view, split, i)[0];
    const others = ordered(view, split).filter((j) => j !== i);
    const before = others.filter((j) => lossesAt(view, split, j)[0] < own);
    const after = others.filter((j) => lossesAt(view, split, j)[0] >= own);
    return [...before.slice(-1), ...after.slice(0, 1)];
  }
  const own = scaledAt(view, split, i);
  const byAngle = candidates(view, split)
    .filter((j) => j !== i)
    .map((j) => [angleBetween(scaledAt(view, split, j), own), j]);
  return byAngle.sort((one, other) => one[0] - other[0]).slice(0, 2).map(([, j]) => j);
}

// What two solutions are compared by: metrics, and losses of the tasks that no metric is named after.
function comparedNames(view, split) {
  const metrics = Object.keys(view.values[split]).filter((name) => !name.startsWith("loss:") || !view.tasks.includes(name.slice(5)));
  const alone = view.tasks.filter((task) => !metrics.some((name) => name.startsWith(`${task} `)));
  return [...metrics, ...alone.map((task) => `loss:${task}`)];
}

// Shares, such as accuracies, are compared in percentage points.
function isShare(view, name) {
  if (view.better[name] !== "higher") return false;
  const all = Object.values(view.values).flatMap((values) => values[name] || []);
  return all.filter(isNumber).every((value) => value >= 0 && value <= 1);
}

// The gain of solution i over solution j in one loss or metric: an amount in words, and whether it is better.
function gain(view, split, i, j, name) {
  const [own, other] = [view.values[split][name][i], view.values[split][name][j]];
  if (!isNumber(own) || !isNumber(other)) return null;
  const difference = view.better[name] === "lower" ? other - own : own - other;
  const size = Math.abs(difference);
  const label = labelOf(name);
  if (size === 0) return { label, amount: "", sign: 0 };
  let amount = shown(size, 2);
  if (isShare(view, name)) {
    const points = 100 * size;
    amount = `${points >= 0.05 ? points.toFixed(1) : shown(points, 1)} points`;
  } else if (other !== 0) {
    amount += ` (${shown((100 * size) / Math.abs(other), 2)} %)`;
  }
  return { label, amount, sign: Math.sign(difference) };
}

// Pieces of a sentence, gains first: "2.1 points better on left accuracy, 0.8 points worse on right accuracy".
function comparison(view, split, i, j) {
  const gains = comparedNames(view, split).map((name) => gain(view, split, i, j, name)).filter((one) => one);
  const pieces = gains.sort((one, other) => other.sign - one.sign);
  return pieces.map(({ label, amount, sign }) => {
    if (sign === 0) return ["the same on ", named(label)];
    return [el("strong", { class: sign > 0 ? "gain" : "loss" }, `${amount} ${sign > 0 ? "better" : "worse"}`), " on ", named(label)];
  });
}

// Whether every solution of one run is dominated by some solution of another, in losses on a split.
function isBeaten(view, other, split) {
  const rivals = candidates(other, split).map((i) => lossesAt(other, split, i));
  const own = candidates(view, split).map((i) => lossesAt(view, split, i));
  const beats = (a, b) => a.every((loss, t) => loss <= b[t]) && a.some((loss, t) => loss < b[t]);
  return own.length > 0 && own.every((point) => rivals.some((better) => beats(better, point)));
}

function commandFor(view, i) {
  const k = view.subproblems[i];
  const name = short(view.name, 40).replace(/[^\w.]+/g, "-").replace(/^-+|-+$/g, "");
  return `paretomtl select ${quoted(view.folder)} --k ${k} --export ${name || "model"}-k${k}`;
}
