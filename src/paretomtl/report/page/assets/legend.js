// The legend: runs grouped by method. The colour is that of the method, the symbol that of the seed.

function drawLegend() {
  const key = JSON.stringify([payload.runs.map((view) => [view.name, view.state, view.epoch]), payload.styles, [...choices.hidden], theme()]);
  rebuild("legend", key, () => {
    const groups = new Map();
    payload.runs.forEach((view, r) => groups.set(payload.styles[r].label, [...(groups.get(payload.styles[r].label) || []), { view, r }]));
    return [...groups].map(([label, runs]) => (runs.length === 1 ? legendEntry(runs[0], label) : legendGroup(label, runs)));
  });
}

function setHidden(names, hide) {
  const hidden = new Set(choices.hidden);
  for (const name of names) if (hide) hidden.add(name); else hidden.delete(name);
  change({ hidden });
}

function legendEntry({ view, r }, label) {
  const state = view.state === "finished" ? "" : `, ${view.state}`;
  return el("label", { class: "entry" },
    el("input", { type: "checkbox", checked: !choices.hidden.has(view.name), "data-key": `run-${view.name}`, onchange: (event) => setHidden([view.name], !event.target.checked) }),
    swatch(r), el("span", {}, named(label, 40), label === view.name ? null : el("span", { class: "hint" }, " ", named(view.name, 30)), el("span", { class: "hint" }, state)));
}

function legendGroup(label, runs) {
  const all = runs.every(({ view }) => !choices.hidden.has(view.name));
  return el("fieldset", { class: "group" },
    el("legend", {}, el("label", { class: "entry" },
      el("input", { type: "checkbox", checked: all, "data-key": `method-${label}`, onchange: (event) => setHidden(runs.map(({ view }) => view.name), !event.target.checked) }),
      named(label, 40))),
    runs.map(({ view, r }) => el("label", { class: "entry", title: view.name },
      el("input", { type: "checkbox", checked: !choices.hidden.has(view.name), "data-key": `run-${view.name}`, onchange: (event) => setHidden([view.name], !event.target.checked) }),
      swatch(r), el("span", {}, seedLabel(view, runs), el("span", { class: "hint" }, view.state === "finished" ? "" : `, ${view.state}`)))));
}

// Seeds name the runs of a method, unless two of them have the same one.
function seedLabel(view, runs) {
  const seeds = runs.map((run) => run.view.seed);
  return view.seed !== null && new Set(seeds).size === seeds.length ? `seed ${view.seed}` : named(view.name, 30);
}
