// Selection rules: which model a wish picks, within limits. Functions of a view, a split and the place i of a model.
// The rules are those of Front.select, so that the copied command picks the same model.

function lossesAt(view, split, i) {
  const values = view.values[split];
  return view.tasks.map((task) => (values ? values[`loss:${task}`][i] : null));
}

function valueAt(view, split, name, i) {
  return ((view.values[split] || {})[name] || [])[i] ?? null;
}

function isFinitePoint(point) {
  return point.every(isNumber);
}

function length(vector) {
  return Math.hypot(...vector);
}

function unit(vector) {
  const size = length(vector) || 1;
  return vector.map((value) => value / size);
}

function isHigher(view, name) {
  return view.better[name] !== "lower";
}

// Limits. A model keeps a limit if its value is known and not beyond it, on the split to choose by.

function limitList(limits) {
  return Object.entries(limits).flatMap(([name, { least, most }]) => [
    ...(isNumber(least) ? [{ name, side: "least", limit: least }] : []),
    ...(isNumber(most) ? [{ name, side: "most", limit: most }] : []),
  ]);
}

// How far a value violates a limit: 0 if it keeps it, NaN if it is unknown.
function missOf({ side, limit }, value) {
  if (!isNumber(value)) return NaN;
  return Math.max(0, side === "least" ? limit - value : value - limit);
}

function isWithin(view, split, i, limits) {
  return limitList(limits).every((one) => missOf(one, valueAt(view, split, one.name, i)) === 0);
}

function dominates(a, b) {
  return a.every((loss, t) => loss <= b[t]) && a.some((loss, t) => loss < b[t]);
}

// The models to choose from: within the limits, finite, and not dominated by another such model of the run.
function candidates(view, split, limits = choices.limits) {
  return remembered(view, ["candidates", split, limits], () => {
    if (!view.values[split]) return [];
    if (!limitList(limits).length) return view.subproblems.map((_, i) => i).filter((i) => view.nondominated[split][i]);
    const rows = view.subproblems.map((_, i) => i).filter((i) => isFinitePoint(lossesAt(view, split, i)) && isWithin(view, split, i, limits));
    const points = rows.map((i) => lossesAt(view, split, i));
    return rows.filter((_, at) => !points.some((other) => dominates(other, points[at])));
  });
}

// Results of the last call, per view: a slider asks for the same candidates many times.
const memory = new WeakMap();

function remembered(view, key, make) {
  const text = JSON.stringify(key);
  const own = memory.get(view) || memory.set(view, new Map()).get(view);
  if (!own.has(text)) {
    if (own.size > 40) own.clear();
    own.set(text, make());
  }
  return own.get(text);
}

// Models with a loss above the run's reference point, such as diverged ones, do not count, unless all are above it.
function withinReference(view, split, rows) {
  const point = view.own_reference;
  if (!point || !isFinitePoint(point)) return rows;
  const near = rows.filter((i) => lossesAt(view, split, i).every((loss, t) => loss <= point[t]));
  return near.length ? near : rows;
}

// The rule of Front.select(max_regret=True): the smallest maximum regret among the candidates.
function balanced(view, split, limits = choices.limits) {
  const rows = withinReference(view, split, candidates(view, split, limits));
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

// The rule of Front.select(best=NAME): the best value of all models within the limits, dominated ones included.
function bestBy(view, split, name, limits = choices.limits) {
  const sign = isHigher(view, name) ? -1 : 1;
  const rows = view.subproblems.map((_, i) => i).filter((i) => isNumber(valueAt(view, split, name, i)) && isWithin(view, split, i, limits));
  return firstOf(view, split, rows, (i) => [sign * valueAt(view, split, name, i)]);
}

// The row whose score, a list of numbers, is smallest; of equal ones, that which fewest other such rows dominate.
function firstOf(view, split, rows, scoreOf) {
  const points = rows.map((i) => lossesAt(view, split, i));
  const beats = (other, own) => isFinitePoint(other) && (isFinitePoint(own) ? dominates(other, own) : true);
  const scores = points.map((own, at) => [...scoreOf(rows[at]), points.filter((other) => beats(other, own)).length]);
  const order = (one, other) => one.map((value, at) => value - other[at]).find((difference) => difference !== 0) || 0;
  const first = scores.reduce((best, score, at) => (best === null || order(score, scores[best]) < 0 ? at : best), null);
  return first === null ? null : rows[first];
}

// The rule of Front.select if no model keeps all limits: the model whose largest miss is smallest, where a miss counts
// as a share of the run's range of that value.
function nearestToLimits(view, split, limits = choices.limits) {
  const all = limitList(limits);
  const known = view.subproblems.map((_, i) => i).filter((i) => all.every(({ name }) => isNumber(valueAt(view, split, name, i))));
  const usual = withinReference(view, split, known);
  return firstOf(view, split, known, (i) => {
    const shares = all.map((one) => {
      const values = usual.map((j) => valueAt(view, split, one.name, j));
      return missOf(one, valueAt(view, split, one.name, i)) / (Math.max(...values) - Math.min(...values) || 1);
    });
    return [Math.max(...shares), shares.reduce((sum, share) => sum + share, 0)];
  });
}

// The candidates in the order of a name, from worst to best; for two tasks and no name, along the front.
function ordered(view, split, name = null) {
  const key = name || `loss:${view.tasks[0]}`;
  const sign = name && isHigher(view, name) ? 1 : -1;
  const rows = candidates(view, split).filter((i) => isNumber(valueAt(view, split, key, i)));
  const sorted = rows.sort((i, j) => sign * (valueAt(view, split, key, i) - valueAt(view, split, key, j)));
  return name ? sorted : sorted.reverse();
}

function neighbours(view, split, i) {
  const own = lossesAt(view, split, i);
  const others = candidates(view, split).filter((j) => j !== i);
  if (view.tasks.length === 2) {
    const along = ordered(view, split).filter((j) => j !== i);
    const before = along.filter((j) => lossesAt(view, split, j)[0] < own[0]);
    const after = along.filter((j) => lossesAt(view, split, j)[0] >= own[0]);
    return [...before.slice(-1), ...after.slice(0, 1)];
  }
  const ranges = rangesOfNames(view, split, view.tasks.map((task) => `loss:${task}`));
  const far = (j) => length(lossesAt(view, split, j).map((loss, t) => (loss - own[t]) / ranges[t]));
  return others.sort((one, other) => far(one) - far(other)).slice(0, 2);
}

function rangesOfNames(view, split, names) {
  return names.map((name) => {
    const values = candidates(view, split, {}).map((i) => valueAt(view, split, name, i)).filter(isNumber);
    return values.length ? Math.max(...values) - Math.min(...values) || 1 : 1;
  });
}

// A move from model i: better where asked to improve, no worse where asked to keep, anything elsewhere. The model whose
// smallest improvement is largest, as a share of the range; null if there is none. `wishes` is by name.
function moveFrom(view, split, i, wishes) {
  const names = Object.keys(wishes);
  const ranges = rangesOfNames(view, split, names);
  const gains = (j) => names.map((name, at) => {
    const [own, other] = [valueAt(view, split, name, i), valueAt(view, split, name, j)];
    return isNumber(own) && isNumber(other) ? ((isHigher(view, name) ? 1 : -1) * (other - own)) / ranges[at] : NaN;
  });
  const moves = candidates(view, split).filter((j) => j !== i).map((j) => ({ j, gains: gains(j) }));
  const improves = (move) => names.every((name, at) => wishes[name] !== "improve" || move.gains[at] > 0);
  const lost = (move) => Math.max(0, ...names.map((name, at) => (wishes[name] === "keep" ? -move.gains[at] : 0)));
  const better = moves.filter(improves);
  const kept = better.filter((move) => lost(move) === 0);
  const least = (move) => Math.min(...names.map((name, at) => (wishes[name] === "improve" ? move.gains[at] : Infinity)));
  if (kept.length) return { j: kept.reduce((a, b) => (least(b) > least(a) ? b : a)).j, kept: true };
  return { j: better.length ? better.reduce((a, b) => (lost(b) < lost(a) ? b : a)).j : null, kept: false };
}

// The gain of model i over model j in one loss or metric: an amount in words, and whether it is better.
function gain(view, split, i, j, name) {
  const [own, other] = [valueAt(view, split, name, i), valueAt(view, split, name, j)];
  if (!isNumber(own) || !isNumber(other)) return null;
  const difference = isHigher(view, name) ? own - other : other - own;
  return { name, amount: amountText(name, Math.abs(difference), other), sign: Math.sign(difference) };
}

// Pieces of a sentence, gains first: "2.1 points better on left accuracy, 0.8 points worse on right accuracy".
function comparison(view, split, i, j) {
  const gains = readerNames(split).map((name) => gain(view, split, i, j, name)).filter((one) => one);
  return gains.sort((one, other) => other.sign - one.sign).map(({ name, amount, sign }) => {
    if (sign === 0) return ["the same on ", named(labelOf(name))];
    return [el("strong", { class: sign > 0 ? "gain" : "loss" }, `${amount} ${sign > 0 ? "better" : "worse"}`), " on ", named(labelOf(name))];
  });
}

// Whether every model of one run is dominated by some model of another, in losses on a split.
function isBeaten(view, other, split) {
  const rivals = candidates(other, split, {}).map((i) => lossesAt(other, split, i));
  const own = candidates(view, split, {}).map((i) => lossesAt(view, split, i));
  return own.length > 0 && own.every((point) => rivals.some((better) => dominates(better, point)));
}

// For each model, one of another run of the problem that dominates it within the limits, in losses on a split, as
// {view, i, every}, where every says whether it is better in every task; null if there is none.
function rivalsOf(view, split) {
  return remembered(view, ["rivals", split, choices.limits, payload.runs.length], () => {
    const others = payload.runs.filter((other) => other !== view && other.problem === view.problem && other.values[split]);
    const models = others.flatMap((other) => candidates(other, split).map((i) => ({ view: other, i, point: lossesAt(other, split, i) })));
    return view.subproblems.map((_, i) => {
      const own = lossesAt(view, split, i);
      if (!isFinitePoint(own)) return null;
      const every = models.find(({ point }) => point.every((loss, t) => loss < own[t]));
      const found = every || models.find(({ point }) => dominates(point, own));
      return found ? { ...found, every: Boolean(every) } : null;
    });
  });
}

// The command that selects the marked model by the reader's own rule, and exports it if there are weights.
function commandFor(view, i) {
  const k = view.subproblems[i];
  const { how, name } = choices.pick;
  const limits = limitList(choices.limits).map((one) => option(`--at-${one.side}`, `${commandName(one.name)}=${one.limit}`));
  const rules = { best: () => [...limits, option("--best", commandName(name))], model: () => [`--k ${k}`], balanced: () => [...limits, "--max-regret"] };
  const split = choosingSplit() === SPLITS.find((one) => view.values[one]) ? [] : [`--split ${choosingSplit()}`];
  const file = short(view.name, 40).replace(/[^\w.]+/g, "-").replace(/^-+|-+$/g, "") || "model";
  return [`paretomtl select ${quotedPath(view.folder)}`, ...rules[how](), ...split, ...(view.exports ? [`--export ${file}-k${k}`] : [])];
}

// A loss goes by the name of its task, which is never taken for a metric.
function commandName(name) {
  return isLoss(name) ? name.slice(5) : name.replace(/ \(metric\)$/, "");
}
