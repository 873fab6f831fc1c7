// Selection rules: which solution a preference picks, and how it compares with others. Functions of a view, a split and
// the place i of a solution.

function lossesAt(view, split, i) {
  const values = view.values[split];
  return view.tasks.map((task) => (values ? values[`loss:${task}`][i] : null));
}

function isFinitePoint(point) {
  return point.every(isNumber);
}

// As regions see them: counted from the ideal point, and in the units of the run.
function scaledAt(view, split, i) {
  return lossesAt(view, split, i).map((loss, t) => {
    if (!isNumber(loss)) return null;
    const counted = view.ideal ? Math.max(0, loss - view.ideal[t]) : loss;
    return view.scale ? counted * view.scale[i][t] : counted;
  });
}

function length(vector) {
  return Math.hypot(...vector);
}

// In degrees, by the half-angle formula, which is exact for vectors that are nearly parallel; NaN for zero.
function angleBetween(one, other) {
  const u = one.map((value) => value / length(one));
  const v = other.map((value) => value / length(other));
  const difference = length(u.map((value, t) => value - v[t]));
  return (360 / Math.PI) * Math.atan2(difference, length(u.map((value, t) => value + v[t])));
}

// The solutions that a wish chooses from: finite, and dominated by no other one of the run.
function candidates(view, split) {
  const best = view.nondominated[split] || [];
  return view.subproblems.map((_, i) => i).filter((i) => best[i]);
}

// The rule of Front.select(direction=...): the least angle, among the candidates.
function nearest(view, split, direction) {
  let found = null;
  let least = Infinity;
  for (const i of candidates(view, split)) {
    const angle = angleBetween(scaledAt(view, split, i), direction);
    if (angle < least) [found, least] = [i, angle];
  }
  return found;
}

// The rule of Front.select(max_regret=True): the smallest of the largest regrets, among those within the reference point.
function balanced(view, split) {
  const within = view.within[split] || [];
  const rows = candidates(view, split).filter((i) => within[i]);
  const points = rows.map((i) => lossesAt(view, split, i));
  const low = view.tasks.map((_, t) => Math.min(...points.map((point) => point[t])));
  const high = view.tasks.map((_, t) => Math.max(...points.map((point) => point[t])));
  let found = null;
  let least = [Infinity, Infinity];
  points.forEach((point, at) => {
    const regrets = point.map((loss, t) => (loss - low[t]) / (high[t] > low[t] ? high[t] - low[t] : 1));
    const score = [Math.max(...regrets), regrets.reduce((sum, regret) => sum + regret, 0)];
    if (score[0] < least[0] || (score[0] === least[0] && score[1] < least[1])) [found, least] = [rows[at], score];
  });
  return found;
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
  const apart = candidates(view, split)
    .filter((j) => j !== i)
    .map((j) => [angleBetween(scaledAt(view, split, j), own), j]);
  return apart.sort((one, other) => one[0] - other[0]).slice(0, 2).map(([, j]) => j);
}

// What two solutions are compared by: metrics, and losses of the tasks that no metric is named after.
function comparedNames(view, split) {
  const metrics = Object.keys(view.values[split]).filter((name) => !name.startsWith("loss:") || !view.tasks.includes(name.slice(5)));
  const alone = view.tasks.filter((task) => !metrics.some((name) => name.startsWith(`${task} `)));
  return [...metrics, ...alone.map((task) => `loss:${task}`)];
}

// Shares, such as accuracies, are compared in points of a hundred.
function isShare(view, name) {
  if (view.better[name] !== "higher") return false;
  const all = Object.values(view.values).flatMap((values) => values[name] || []);
  return all.filter(isNumber).every((value) => value >= 0 && value <= 1);
}

// What solution i gains over solution j in one name: an amount in words, and whether that is better.
function gain(view, split, i, j, name) {
  const [mine, theirs] = [view.values[split][name][i], view.values[split][name][j]];
  if (!isNumber(mine) || !isNumber(theirs)) return null;
  const difference = view.better[name] === "lower" ? theirs - mine : mine - theirs;
  const size = Math.abs(difference);
  const label = labelOf(name);
  if (size === 0) return { label, amount: "", sign: 0 };
  let amount = shown(size, 2);
  if (isShare(view, name)) {
    const points = 100 * size;
    amount = `${points >= 0.05 ? points.toFixed(1) : shown(points, 1)} points`;
  } else if (theirs !== 0) {
    amount += ` (${shown((100 * size) / Math.abs(theirs), 2)} %)`;
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
  const theirs = candidates(other, split).map((i) => lossesAt(other, split, i));
  const mine = candidates(view, split).map((i) => lossesAt(view, split, i));
  const beats = (a, b) => a.every((loss, t) => loss <= b[t]) && a.some((loss, t) => loss < b[t]);
  return mine.length > 0 && mine.every((point) => theirs.some((better) => beats(better, point)));
}

function commandFor(view, i) {
  const k = view.subproblems[i];
  const name = short(view.name, 40).replace(/[^\w.]+/g, "-").replace(/^-+|-+$/g, "");
  return `paretomtl select ${quoted(view.folder)} --k ${k} --export ${name || "model"}-k${k}`;
}
