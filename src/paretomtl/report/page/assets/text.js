// Text and elements. Names that users gave go into the page as text, never as markup.

const LONG = 48;

// The content of a packed script: gzip in base64, which is two fifths as long.
async function unpack(id) {
  const letters = atob(byId(id).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function byId(id) {
  return document.getElementById(id);
}

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function fill(id, ...children) {
  byId(id).replaceChildren(...children.flat().filter((child) => child !== null));
}

function short(text, length = LONG) {
  const letters = Array.from(String(text).replace(/\s+/g, " "));
  return letters.length <= length ? letters.join("") : letters.slice(0, length - 1).join("") + "…";
}

// A name in a sentence: isolated, so that right-to-left text does not reorder the sentence.
function named(text, length = LONG) {
  const cut = short(text, length);
  return el("bdi", cut === text ? {} : { title: text }, cut);
}

// Escaped for plotly, which interprets some markup in labels, and formulas between dollars.
function plain(text, length = LONG) {
  const cut = short(text, length).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
  return `\u2068${cut}\u2069`;
}

// For the axes of plotly's 3D plot, which interpret tags but not entities: a zero-width character breaks every tag.
function painted(text, length = LONG) {
  return short(text, length).replace(/</g, "<\u2060");
}

// What a model is called: the name that the user gave it, or its number.
function briefly(view, i, length = 40) {
  return view.names ? `\u2068${short(view.names[i], length)}\u2069` : String(view.subproblems[i]);
}

// The same in a sentence.
function modelWords(view, i) {
  return `model ${view.subproblems[i]}${view.names ? ` (${briefly(view, i)})` : ""}`;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// What a model was trained for, such as "direction (0.6, 0.8)"; nothing without preferences.
function preferenceWords(view, i) {
  return view.reading === "none" ? "" : `${view.reading} ${row(view.preferences[i])}`;
}

// The tasks that a model was trained to favour; "–" without preferences.
function favourWords(view, i) {
  if (!view.favours || !view.favours[i]) return "–";
  const [tasks, all] = [view.favours[i], view.tasks.length];
  const list = (some) => some.map((t) => short(view.tasks[t], 26)).join(", ");
  if (all > 3 && tasks.length === all - 1) return `all but ${list([view.tasks.findIndex((_, t) => !tasks.includes(t))])}`;
  return tasks.length ? `${list(tasks.slice(0, 2))}${tasks.length > 2 ? ` and ${tasks.length - 2} more` : ""}` : "balanced";
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function shown(value, digits = 4) {
  if (!isNumber(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-4 ? value.toExponential(digits - 2) : String(+value.toPrecision(digits));
  return text.replace("-", "−");
}

function row(values, digits = 3) {
  return `(${values.map((value) => shown(value, digits)).join(", ")})`;
}

function counted(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function clock(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds < 100) return `${shown(seconds, 3)}\u00a0s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

// Quoted for a POSIX shell.
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

// A folder that begins with a dash must not look like an option, nor must the value of an option.
function quotedPath(text) {
  return quoted(text.startsWith("-") ? `./${text}` : text);
}

function option(flag, value) {
  return `${flag}${value.startsWith("-") ? "=" : " "}${quoted(value)}`;
}

function splitName(split) {
  return payload.splits[split] || split;
}

function isLoss(name) {
  return name.startsWith("loss:") && payload.tasks.includes(name.slice(5));
}

function labelOf(name) {
  return isLoss(name) ? `${name.slice(5)} loss` : name;
}

// Shares, such as accuracies, are written in per cent, and compared in percentage points.
function isShare(name) {
  return payload.shares.has(name);
}

function valueText(name, value, digits = 4) {
  if (!isNumber(value) || !isShare(name)) return shown(value, digits);
  return `${(100 * value).toFixed(1)} %`;
}

// A difference of two values in words: points for shares, else its own unit and per cent of the other value.
function amountText(name, size, other) {
  if (isShare(name)) {
    const points = 100 * size;
    return `${points >= 0.05 || points === 0 ? points.toFixed(1) : shown(points, 1)} points`;
  }
  return shown(size, 2) + (isNumber(other) && other !== 0 ? ` (${shown((100 * size) / Math.abs(other), 2)} %)` : "");
}
