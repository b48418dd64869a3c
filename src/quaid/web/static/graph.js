// Draws the graph on a canvas: pan, zoom, hover, drag, click to centre, and the links that are valid on a day.

const box = document.querySelector(".drawing");
const canvas = box.querySelector("canvas");
const pen = canvas.getContext("2d");
const hint = box.querySelector("[data-hint]");
const slider = box.querySelector("[data-when]");
const output = box.querySelector("[data-day]");
const player = box.querySelector("[data-play]");
const card = document.querySelector(".list");
const listed = Number(box.dataset.most);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

const DAY = 86_400_000;
const LABELS = 60; // maximum number of nodes labelled with their name
const view = { x: 0, y: 0, scale: 1, fitted: false };
let nodes = [];
let links = [];
let x = new Float32Array();
let y = new Float32Array();
let near = [];
let over = -1;
let marked = -1;
let day = Number.MAX_VALUE; // after every date, but before the end of links that never end (Infinity)
let first = 0; // the day at the slider's left end
let changes = []; // slider positions at which a link begins or ends
let shown = new Uint8Array(); // 1 for nodes that have a link on this day
let here = []; // links that are valid on this day
let colours = {};
let shapes = {};
let order = [];
let waiting = false;
let playing = 0;
let drawn = 0; // time of the last frame
let every = 1; // only every n-th link is drawn
let calm = 0;
let radius = [];

function readColours() {
  const of = (element) => getComputedStyle(element).color;
  const probe = document.createElement("span");
  box.append(probe);
  const variable = (name) => {
    probe.style.color = `var(${name})`;
    return of(probe);
  };
  colours = { ink: variable("--ink"), soft: variable("--ink-2"), line: variable("--edge"), accent: variable("--accent"), paper: variable("--surface"), types: {} };
  probe.remove();
  for (const each of box.querySelectorAll("[data-type]")) {
    colours.types[each.dataset.type] = of(each);
    shapes[each.dataset.type] = each.dataset.shape;
  }
  colours.font = getComputedStyle(canvas).fontFamily;
}

const isThere = (link) => link.from <= day && day < link.until;

/** Find the links and nodes of the day. Called when the day changes, not for every frame. */
function settle() {
  here = links.filter(isThere);
  shown = new Uint8Array(nodes.length);
  for (const link of here) shown[link.a] = shown[link.b] = 1;
  nodes.forEach((node, i) => node.isCentre && (shown[i] = 1));
}

/** Drawing links takes most of a frame's time. If frames are slow, some links are skipped until nothing moves. */
function pace(now) {
  const took = now - drawn;
  drawn = now;
  clearTimeout(calm);
  if (now === undefined || took > 400) every = 1;
  else if (took > 36) every = Math.min(every + 1, 6);
  else if (took < 22) every = Math.max(every - 1, 1);
  if (every > 1) calm = setTimeout(() => requestAnimationFrame(() => draw()), 160);
}

const OUTLINES = {
  circle: (px, py, r) => pen.arc(px, py, r, 0, 7),
  square: (px, py, r) => pen.rect(px - r * 0.9, py - r * 0.9, r * 1.8, r * 1.8),
  diamond: (px, py, r) => outline(px, py, r * 1.25, [[0, -1], [1, 0], [0, 1], [-1, 0]]),
  triangle: (px, py, r) => outline(px, py, r * 1.25, [[0, -1], [0.95, 0.75], [-0.95, 0.75]]),
};

function outline(px, py, r, corners) {
  corners.forEach(([cx, cy], i) => pen[i ? "lineTo" : "moveTo"](px + cx * r, py + cy * r));
  pen.closePath();
}

function draw(now) {
  waiting = false;
  pace(now);
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.translate(width / 2 + view.x, height / 2 + view.y);
  pen.scale(view.scale, view.scale);
  const focus = over >= 0 ? over : marked;
  pen.lineWidth = 1 / view.scale;
  pen.strokeStyle = colours.line;
  pen.globalAlpha = focus >= 0 ? 0.14 : links.length > 1500 ? 0.28 : 0.5;
  pen.beginPath();
  for (let i = 0; i < here.length; i += every) {
    const link = here[i];
    pen.moveTo(x[link.a], y[link.a]);
    pen.lineTo(x[link.b], y[link.b]);
  }
  pen.stroke();
  if (focus >= 0) {
    pen.globalAlpha = 1;
    pen.lineWidth = 1.8 / view.scale;
    pen.strokeStyle = colours.accent;
    pen.beginPath();
    for (const link of near[focus]) {
      if (!isThere(link)) continue;
      pen.moveTo(x[link.a], y[link.a]);
      pen.lineTo(x[link.b], y[link.b]);
    }
    pen.stroke();
  }
  const tied = new Set(focus >= 0 ? near[focus].filter(isThere).flatMap((link) => [link.a, link.b]) : []);
  const edge = { left: (-width / 2 - view.x) / view.scale, right: (width / 2 - view.x) / view.scale, top: (-height / 2 - view.y) / view.scale, bottom: (height / 2 - view.y) / view.scale };
  for (let i = 0; i < nodes.length; i++) {
    const r = Math.max(radius[i], 2.5 / view.scale); // never too small to see
    if (x[i] + r < edge.left || x[i] - r > edge.right || y[i] + r < edge.top || y[i] - r > edge.bottom) continue;
    const isLoud = focus < 0 || i === focus || tied.has(i);
    pen.globalAlpha = shown[i] ? (isLoud ? 1 : 0.25) : 0.1; // nodes without a link on this day are faint
    pen.fillStyle = colours.types[nodes[i].type] ?? colours.soft;
    pen.beginPath();
    OUTLINES[shapes[nodes[i].type] ?? "circle"](x[i], y[i], r);
    pen.fill();
    if (i === focus || nodes[i].isCentre) {
      pen.lineWidth = 2 / view.scale;
      pen.strokeStyle = colours.ink;
      pen.stroke();
    }
  }
  label(focus, tied, edge);
}

function label(focus, tied, edge) {
  const size = 12 / view.scale;
  pen.font = `560 ${size}px ${colours.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineJoin = "round";
  const taken = [];
  let written = 0;
  for (const i of focus >= 0 ? [focus, ...order.filter((each) => tied.has(each) && each !== focus)] : order) {
    const isWanted = i === focus || tied.has(i);
    if (written >= LABELS) break;
    if (!shown[i] || x[i] < edge.left || x[i] > edge.right || y[i] < edge.top || y[i] > edge.bottom) continue;
    const text = nodes[i].label;
    const half = (text.length * size * 0.29) + 2;
    const top = y[i] + radius[i] + 3 / view.scale;
    const isHidden = taken.some(([l, t, r, b]) => x[i] - half < r && x[i] + half > l && top < b && top + size * 1.3 > t);
    if (isHidden && i !== focus) continue;
    taken.push([x[i] - half, top, x[i] + half, top + size * 1.3]);
    pen.globalAlpha = 1;
    pen.lineWidth = 3.5 / view.scale;
    pen.strokeStyle = colours.paper;
    pen.strokeText(text, x[i], top);
    pen.fillStyle = isWanted || nodes[i].isCentre ? colours.ink : colours.soft;
    pen.fillText(text, x[i], top);
    written++;
  }
  pen.globalAlpha = 1;
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(draw);
}

function fit() {
  if (!nodes.length) return;
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (let i = 0; i < nodes.length; i++) {
    left = Math.min(left, x[i]);
    right = Math.max(right, x[i]);
    top = Math.min(top, y[i]);
    bottom = Math.max(bottom, y[i]);
  }
  const room = Math.min((canvas.clientWidth - 120) / (right - left + 1), (canvas.clientHeight - 130) / (bottom - top + 1));
  view.scale = Math.min(Math.max(room, 0.05), 2.2);
  view.x = (-(left + right) / 2) * view.scale;
  view.y = (-(top + bottom) / 2) * view.scale + 8;
  redraw();
}

const place = (event) => {
  const frame = canvas.getBoundingClientRect();
  return [
    (event.clientX - frame.left - frame.width / 2 - view.x) / view.scale,
    (event.clientY - frame.top - frame.height / 2 - view.y) / view.scale,
  ];
};

function at(px, py) {
  const slack = 5 / view.scale;
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < nodes.length; i++) {
    const d = Math.hypot(x[i] - px, y[i] - py) - radius[i];
    if (shown[i] && d < slack && d < least) [best, least] = [i, d];
  }
  return best;
}

const words = (name) => name.replace(/[_-]/g, " ");
const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const inWords = (time) => new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const iso = (time) => new Date(time).toISOString().slice(0, 10);

function tell(i) {
  const node = nodes[i];
  const count = i < 0 ? 0 : near[i].filter(isThere).length;
  if (i >= 0) return void (hint.textContent = `${node.title} · ${words(node.type)} · ${many(count, "link")}`);
  const there = shown.reduce((sum, each) => sum + each, 0);
  const all = there < nodes.length ? ` of ${nodes.length.toLocaleString("en")}` : "";
  hint.textContent = `${all ? `${there.toLocaleString("en")}${all} pages` : many(there, "page")}, ${many(here.length, "link")}`;
}

const centreOn = (i) => (location.href = `/graph?slug=${encodeURIComponent(nodes[i].address)}`);

function listen(worker) {
  let held = -1;
  let from = null;
  let moved = false;
  const fingers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    held = fingers.size === 1 ? at(...place(event)) : -1;
    from = { x: event.clientX, y: event.clientY };
    moved = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) {
      const found = at(...place(event));
      if (found !== over) {
        over = found;
        canvas.classList.toggle("is-over", over >= 0);
        tell(over);
        redraw();
      }
      return;
    }
    const before = fingers.get(event.pointerId);
    if (fingers.size === 2) {
      const [other] = [...fingers.values()].filter((each) => each.pointerId !== event.pointerId);
      const gap = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
      zoom(gap(event) / Math.max(gap(before), 1), event);
    } else if (Math.hypot(event.clientX - from.x, event.clientY - from.y) > 4 || moved) {
      moved = true;
      canvas.classList.add("is-dragging");
      if (held >= 0) {
        const [px, py] = place(event);
        worker.postMessage({ held, x: px, y: py });
      } else {
        view.x += event.clientX - before.clientX;
        view.y += event.clientY - before.clientY;
        redraw();
      }
      view.fitted = true;
    }
    fingers.set(event.pointerId, event);
  });
  const up = (event) => {
    fingers.delete(event.pointerId);
    canvas.classList.remove("is-dragging");
    if (held >= 0) worker.postMessage({ held: -1 });
    if (event.type === "pointerup" && !moved && held >= 0) centreOn(held);
    held = -1;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => {
    over = -1;
    tell(-1);
    redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0016), event);
  }, { passive: false });
  canvas.addEventListener("keydown", keys);
}

function zoom(factor, event) {
  const frame = canvas.getBoundingClientRect();
  const cx = event ? event.clientX - frame.left - frame.width / 2 : 0;
  const cy = event ? event.clientY - frame.top - frame.height / 2 : 0;
  const scale = Math.min(Math.max(view.scale * factor, 0.03), 8);
  view.x = cx - ((cx - view.x) * scale) / view.scale;
  view.y = cy - ((cy - view.y) * scale) / view.scale;
  view.scale = scale;
  view.fitted = true;
  redraw();
}

function keys(event) {
  const pans = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  if (pans[event.key]) {
    view.x += pans[event.key][0];
    view.y += pans[event.key][1];
  } else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "n" || event.key === "p") {
    const there = order.filter((i) => shown[i]);
    const step = event.key === "n" ? 1 : there.length - 1;
    marked = there.length ? there[(Math.max(there.indexOf(marked), event.key === "n" ? -1 : 0) + step) % there.length] : -1;
    tell(marked);
  } else if (event.key === "Enter" && marked >= 0) return centreOn(marked);
  else return;
  event.preventDefault();
  redraw();
}

/** List the links of the day, with the same content as the drawing. */
function list() {
  const isToday = slider.valueAsNumber === today();
  const rows = here.slice(0, listed).map((link) => {
    const row = document.createElement("li");
    const page = (i) => Object.assign(document.createElement("a"), { href: `/page/${nodes[i].address.split("/").map(encodeURIComponent).join("/")}`, textContent: nodes[i].title });
    const relation = Object.assign(document.createElement("span"), { className: "rel", textContent: words(link.relationship) });
    row.append(page(link.a), " ", relation, " ", page(link.b));
    if (link.since || link.ended) {
      const span = Object.assign(document.createElement("span"), { className: "span", textContent: `${link.since ?? "…"} – ${link.ended ?? "now"}` });
      row.append(" ", span);
    }
    return row;
  });
  if (!rows.length) rows.push(Object.assign(document.createElement("li"), { className: "empty", textContent: "No links on this day." }));
  card.querySelector("[data-links]").replaceChildren(...rows);
  card.querySelector("[data-count]").textContent = here.length.toLocaleString("en");
  card.querySelector("[data-list-title]").textContent = isToday ? "Links today" : `Links on ${inWords(day)}`;
  card.querySelector("[data-more]").hidden = here.length <= listed;
}

const today = () => Math.round((Date.parse(iso(Date.now())) - first) / DAY);

let listing = 0;
function showDay(place) {
  slider.value = place;
  const isToday = slider.valueAsNumber === today();
  day = first + slider.valueAsNumber * DAY;
  const said = isToday ? `today, ${inWords(day)}` : inWords(day);
  output.textContent = said;
  slider.setAttribute("aria-valuetext", said);
  settle();
  over = marked = -1;
  tell(-1);
  redraw();
  clearTimeout(listing);
  listing = setTimeout(() => {
    list();
    const address = new URL(location.href);
    if (isToday) address.searchParams.delete("on");
    else address.searchParams.set("on", iso(day));
    if (address.href !== location.href) history.replaceState(null, "", address);
  }, playing ? 250 : 90);
}

/** Show the next or the previous day on which a link begins or ends. */
function step(way) {
  const now = slider.valueAsNumber;
  const next = way > 0 ? changes.find((each) => each > now) : changes.findLast((each) => each < now);
  showDay(next ?? (way > 0 ? Number(slider.max) : 0));
}

function play(isPlaying) {
  clearInterval(playing);
  playing = 0;
  player.textContent = isPlaying ? "Pause" : "Play";
  player.setAttribute("aria-pressed", String(isPlaying));
  if (!isPlaying) return;
  if (slider.valueAsNumber >= today()) showDay(0);
  playing = setInterval(() => {
    step(1);
    if (slider.valueAsNumber >= Math.max(today(), changes.at(-1) ?? 0)) play(false);
  }, Math.min(Math.max(9000 / (changes.length + 1), 60), 700));
}

function dates() {
  const known = links.flatMap((link) => [link.from, link.until]).filter(Number.isFinite);
  const now = Date.parse(iso(Date.now()));
  first = Math.min(now, ...known) - DAY * 7;
  slider.min = 0;
  slider.max = Math.ceil((Math.max(now, ...known) - first) / DAY);
  changes = [...new Set(known.map((each) => Math.round((each - first) / DAY)))].sort((a, b) => a - b);
  slider.disabled = player.disabled = !known.length;
  grow(Number(slider.max));
  slider.addEventListener("input", () => {
    if (playing) play(false);
    showDay(slider.valueAsNumber);
  });
  slider.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (playing) play(false);
    step(way);
  });
  player.addEventListener("click", () => play(!playing));
  const asked = Date.parse(box.dataset.on);
  showDay(Number.isNaN(asked) ? today() : Math.round((asked - first) / DAY));
}

/** Draw the number of links over time, above the slider. */
function grow(last) {
  const differences = new Map();
  const add = (time, sign) => {
    const place = Number.isFinite(time) ? Math.round((time - first) / DAY) : sign > 0 ? 0 : last + 1;
    differences.set(place, (differences.get(place) ?? 0) + sign);
  };
  for (const link of links) {
    add(link.from, 1);
    add(link.until, -1);
  }
  let sum = 0;
  const counts = [...new Set([0, ...changes])].map((place) => [place, (sum += differences.get(place) ?? 0)]);
  const most = Math.max(1, ...counts.map(([, count]) => count));
  const points = counts.flatMap(([place, count], i) => {
    const height = 23 - (22 * count) / most;
    return [`${((counts[i][0] / last) * 100).toFixed(2)} ${i ? (23 - (22 * counts[i - 1][1]) / most).toFixed(2) : 24}`, `${((place / last) * 100).toFixed(2)} ${height.toFixed(2)}`];
  });
  const end = 23 - (22 * counts.at(-1)[1]) / most;
  box.querySelector("[data-growth] path").setAttribute("d", `M0 24 L${points.join(" L")} L100 ${end.toFixed(2)} L100 24 Z`);
}

async function begin() {
  const answer = await fetch(box.dataset.source);
  if (!answer.ok) return void (hint.textContent = "The links cannot be read.");
  const data = await answer.json();
  nodes = data.nodes.map(([address, title, type, distance]) => ({ address, title, type, distance, label: title.length > 34 ? title.slice(0, 33).replace(/\s+\S*$/, "") + "…" : title, isCentre: address === data.centre }));
  links = data.links.map(([a, b, relationship, since, ended, begins]) => ({ a, b, relationship, since, ended, from: begins ? Date.parse(begins) : -Infinity, until: ended ? Date.parse(ended) : Infinity }));
  near = nodes.map(() => []);
  for (const link of links) {
    near[link.a].push(link);
    near[link.b].push(link);
  }
  radius = nodes.map((node, i) => (node.isCentre ? 11 : Math.min(4 + Math.sqrt(near[i].length) * 1.5, 14)));
  order = [...nodes.keys()].sort((a, b) => radius[b] - radius[a]);
  readColours();
  dates();
  const worker = new Worker(box.dataset.worker, { type: "module" });
  worker.addEventListener("message", ({ data: news }) => {
    x = news.x;
    y = news.y;
    if (news.resting) box.dataset.resting = "yes";
    if (still && !news.resting) return;
    if (!view.fitted) fit();
    redraw();
  });
  const flat = new Int32Array(links.length * 2);
  links.forEach((link, i) => flat.set([link.a, link.b], i * 2));
  worker.postMessage({ nodes: nodes.length, links: flat, centre: nodes.findIndex((node) => node.isCentre) });
  listen(worker);
  box.dataset.ready = "yes";
  // For tests and debugging: returns the position of a page on the canvas.
  box.addEventListener("where", (event) => {
    const i = nodes.findIndex((node) => node.address === event.detail.address);
    event.detail.answer = i < 0 ? null : { x: x[i] * view.scale + canvas.clientWidth / 2 + view.x, y: y[i] * view.scale + canvas.clientHeight / 2 + view.y };
  });
}

box.querySelector("[data-fit]").addEventListener("click", fit);
box.querySelector("[data-depth]")?.addEventListener("change", (event) => {
  const address = new URL(location.href);
  address.searchParams.set("depth", event.target.value);
  location.href = address;
});
addEventListener("resize", redraw);
addEventListener("theme", () => {
  readColours();
  redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  redraw();
});
begin();
