// The graph on a canvas: pan, zoom, hover, drag, click to centre, and the links as they were on a day.

const box = document.querySelector(".drawing");
const canvas = box.querySelector("canvas");
const pen = canvas.getContext("2d");
const hint = box.querySelector("[data-hint]");
const slider = box.querySelector("[data-when]");
const output = box.querySelector("[data-day]");
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

const DAY = 86_400_000;
const LABELS = 60; // nodes that have their name beside them without being asked
const view = { x: 0, y: 0, scale: 1, fitted: false };
let nodes = [];
let links = [];
let x = new Float32Array();
let y = new Float32Array();
let near = [];
let over = -1;
let marked = -1;
let day = Number.MAX_VALUE; // after every day, and before what never ends
let colours = {};
let waiting = false;
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
  for (const each of box.querySelectorAll("[data-type]")) colours.types[each.dataset.type] = of(each);
}

const isThere = (link) => link.from <= day && day < link.until;

function draw() {
  waiting = false;
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
  const shown = new Uint8Array(nodes.length);
  const focus = over >= 0 ? over : marked;
  pen.lineWidth = 1 / view.scale;
  pen.strokeStyle = colours.line;
  pen.globalAlpha = focus >= 0 ? 0.14 : links.length > 1500 ? 0.28 : 0.5;
  pen.beginPath();
  for (const link of links) {
    if (!isThere(link)) continue;
    shown[link.a] = shown[link.b] = 1;
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
  for (let i = 0; i < nodes.length; i++) {
    const isLoud = focus < 0 || i === focus || tied.has(i);
    pen.globalAlpha = (shown[i] || nodes[i].distance === 0 ? 1 : 0.22) * (isLoud ? 1 : 0.25);
    pen.fillStyle = colours.types[nodes[i].type] ?? colours.soft;
    pen.beginPath();
    pen.arc(x[i], y[i], Math.max(radius[i], 2.5 / view.scale), 0, 7); // never too small to be seen
    pen.fill();
    if (i === focus || nodes[i].isCentre) {
      pen.lineWidth = 2 / view.scale;
      pen.strokeStyle = colours.ink;
      pen.stroke();
    }
  }
  label(focus, tied, shown);
}

function label(focus, tied, shown) {
  const size = 12 / view.scale;
  pen.font = `560 ${size}px ${getComputedStyle(canvas).fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineJoin = "round";
  const taken = [];
  const order = [...nodes.keys()].sort((a, b) => (b === focus) - (a === focus) || radius[b] - radius[a]);
  let drawn = 0;
  for (const i of order) {
    const isWanted = i === focus || tied.has(i);
    if (!isWanted && (focus >= 0 || drawn >= LABELS || !(shown[i] || nodes[i].isCentre))) continue;
    const text = nodes[i].title.length > 34 ? nodes[i].title.slice(0, 33) + "…" : nodes[i].title;
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
    drawn++;
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
    if (d < slack && d < least) [best, least] = [i, d];
  }
  return best;
}

function tell(i) {
  const node = nodes[i];
  const count = i < 0 ? 0 : near[i].filter(isThere).length;
  hint.textContent = i < 0 ? `${nodes.length.toLocaleString()} pages, ${links.filter(isThere).length.toLocaleString()} links` : `${node.title} · ${node.type} · ${count} ${count === 1 ? "link" : "links"}`;
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
    marked = (marked + (event.key === "n" ? 1 : nodes.length - 1)) % nodes.length;
    tell(marked);
  } else if (event.key === "Enter" && marked >= 0) return centreOn(marked);
  else return;
  event.preventDefault();
  redraw();
}

function dates() {
  const known = links.flatMap((link) => [link.from, link.until]).filter(Number.isFinite);
  if (!known.length) return void (slider.disabled = true);
  const first = Math.min(...known) - DAY * 7;
  const last = Math.max(Date.now(), ...known) + DAY;
  slider.min = 0;
  slider.max = Math.ceil((last - first) / DAY);
  const today = Math.round((Date.now() - first) / DAY);
  slider.value = today;
  day = Date.now();
  slider.addEventListener("input", () => {
    day = first + slider.valueAsNumber * DAY;
    output.textContent = slider.valueAsNumber === today ? "today" : new Date(day).toISOString().slice(0, 10);
    tell(-1);
    redraw();
  });
  output.textContent = "today";
}

async function begin() {
  const answer = await fetch(box.dataset.source);
  if (!answer.ok) return void (hint.textContent = "The links cannot be read.");
  const data = await answer.json();
  nodes = data.nodes.map(([address, title, type, distance]) => ({ address, title, type, distance, isCentre: address === data.centre }));
  links = data.links.map(([a, b, relationship, from, until]) => ({ a, b, relationship, from: from ? Date.parse(from) : -Infinity, until: until ? Date.parse(until) : Infinity }));
  near = nodes.map(() => []);
  for (const link of links) {
    near[link.a].push(link);
    near[link.b].push(link);
  }
  radius = nodes.map((node, i) => (node.isCentre ? 11 : Math.min(4 + Math.sqrt(near[i].length) * 1.5, 14)));
  readColours();
  dates();
  tell(-1);
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
  // For tests and for whoever wants to look inside: where a page stands on the canvas.
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
