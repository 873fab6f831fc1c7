// The live page: it polls its server while it is visible, and shows how far each run is and how old the data are.

const served = { payload: null, tag: null, lost: false, asking: false, timer: 0, held: false, waiting: false };

function newsOf({ name, state, process, time, text, left }) {
  const age = time === null ? "" : clock(Math.max(0, Math.round(Date.now() / 1000 - time)));
  const view = served.payload.runs.find((run) => run.name === name);
  const done = view ? `epoch ${view.epoch}${isNumber(view.epochs) ? ` of ${view.epochs}` : ""}` : "";
  const rest = isNumber(left) ? `, about ${clock(Math.max(0, Math.round(left - (Date.now() / 1000 - time))))} left` : "";
  const unknown = process === "unknown" ? "; it is unknown whether its process still runs" : "";
  const words = {
    waiting: "no run yet; it appears here when it begins.",
    training: `${done}${rest}, last news ${age} ago${unknown}.`,
    broken: age ? `no news for ${age}; the process is gone. The same command with --resume goes on.` : "it cannot be read.",
    stopped: `stopped, ${done}. The same command with --resume goes on.`,
    finished: `finished, ${done}.`,
  };
  const more = text ? ` ${text[0].toUpperCase()}${text.slice(1)}.` : "";
  const bar = state === "training" && view && isNumber(view.epochs)
    ? el("progress", { max: view.epochs, value: view.epoch, "aria-label": `Progress of ${name}` }) : null;
  return el("div", { class: state === "broken" ? "notice" : "hint", "data-state": state }, bar, named(name), `: ${words[state]}${more}`);
}

function drawNews() {
  const lost = el("p", { class: "notice", "data-state": "lost" }, "The server does not answer: paretomtl watch has ended, or is busy. The page shows its last answer.");
  fill("progress", served.lost ? lost : null, served.payload.live.news.map(newsOf));
}

function show() {
  served.waiting = served.held;
  if (!served.held) render(served.payload);
}

async function ask() {
  if (served.asking || document.hidden) return;
  served.asking = true;
  clearTimeout(served.timer);
  try {
    const answer = await fetch("/data.json", { cache: "no-store", headers: served.tag === null ? {} : { "If-None-Match": served.tag } });
    served.lost = answer.status !== 200 && answer.status !== 304;
    if (answer.status === 200) {
      served.payload = await answer.json();
      served.tag = answer.headers.get("ETag");
      show();
    }
  } catch {
    served.lost = true;
  }
  drawNews();
  served.asking = false;
  served.timer = setTimeout(ask, served.payload.live.every);
}

function follow(first) {
  served.payload = first;
  // No redraw during a drag.
  document.addEventListener("pointerdown", () => { served.held = true; }, true);
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => setTimeout(() => { // after the click that follows, whose target must still be there
      served.held = false;
      if (served.waiting) show();
    }), true);
  }
  document.addEventListener("visibilitychange", ask);
  drawNews();
  ask();
}
