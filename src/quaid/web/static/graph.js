// The graph on a canvas: pan, zoom, hover, drag, select, find, filter, and the links that hold on a day. A worker lays the
// nodes out and paints them; this script draws its picture, with labels and the selection on top.

import { adjacency } from "./layout.js";
import { findField } from "./graph-find.js";
import { TimeSlider, inWords, isoDay } from "./graph-time.js";

const box = document.querySelector(".drawing");
const canvas = box.querySelector("canvas");
const pen = canvas.getContext("2d");
const hint = box.querySelector("[data-hint]");
const legend = box.querySelector("[data-legend]");
const panel = box.querySelector("[data-panel]");
const card = document.querySelector(".card.list:last-of-type");
const isWhole = "whole" in box.dataset;
const listed = Number(box.dataset.most);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const key = `graph ${box.dataset.source}`;

const MARGIN = 200; // the worker's picture is this many pixels larger on each side than the canvas
const LABELS = 36; // names in the whole picture; more when zoomed in
const MOST_LABELS = 110;
const AGES = [["changed this week", 7, "person"], ["this month", 31, "source"], ["this year", 366, "concept"], ["earlier", Infinity, "company"]];

const view = { x: 0, y: 0, scale: 1 };
let isFitted = false; // the user has moved the picture: it is no longer fitted
let fitScale = 1;
let graph = null; // the data, in columns
let x = new Float32Array();
let y = new Float32Array();
let radius = new Float32Array();
let groups = null; // cluster of each node
let shown = { links: new Uint8Array(), nodes: new Uint8Array(), count: 0, pages: 0 };
const hidden = { type: new Set(), group: new Set() };
let look = { mode: "type", style: new Uint16Array(), palette: [] };
let colours = {};
let over = -1;
let selected = -1;
let picture = null; // the last picture of the worker, and its view
let isAsking = false; // the worker is painting
let waiting = false;
let names = { at: 0, scale: 0, list: [] };
const widths = new Map();
let worker = null;
let time = null;

const words = (name) => name.replace(/[_-]/g, " ");
const number = (count) => count.toLocaleString("en");
const many = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const pageUrl = (i) => `/page/${graph.slugs[i].split("/").map(encodeURIComponent).join("/")}`;
const dot = () => (graph.n > 3000 ? 0.62 : 1); // many nodes are drawn smaller
const screenRadius = (i) => Math.max(radius[i] * view.scale, (1.2 + radius[i] * 0.18) * dot());
const toScreen = (i) => [x[i] * view.scale + canvas.clientWidth / 2 + view.x, y[i] * view.scale + canvas.clientHeight / 2 + view.y];

// --- what is there

/** Find the links and nodes of the day and the filters: 0 for hidden nodes, 1 for those without a link then, 2 for others. */
function settle() {
  const { n, m, ends, begins, until, start } = graph;
  const isHidden = (i) => hidden.type.has(graph.type[i]) || (graph.group.length && hidden.group.has(graph.group[i]));
  const links = new Uint8Array(m);
  const nodes = new Uint8Array(n);
  for (let i = 0; i < n; i++) nodes[i] = isHidden(i) ? 0 : start[i] === start[i + 1] || i === graph.centre ? 2 : 1;
  const day = time?.day ?? Infinity;
  let count = 0;
  for (let l = 0; l < m; l++) {
    const a = ends[l * 2];
    const b = ends[l * 2 + 1];
    if (begins[l] > day || (until[l] && until[l] <= day) || !nodes[a] || !nodes[b]) continue;
    links[l] = 1;
    nodes[a] = nodes[b] = 2;
    count++;
  }
  shown = { links, nodes, count, pages: nodes.reduce((sum, each) => sum + (each === 2), 0) };
  names.at = 0;
  worker?.postMessage({ shown: { links, nodes } });
}

function near(i) {
  const found = [];
  for (let k = graph.start[i]; k < graph.start[i + 1]; k++) if (shown.links[graph.via[k]]) found.push(graph.near[k]);
  return found;
}

// --- colours

function cssColour(element) {
  return getComputedStyle(element).color;
}

function clusterRows() {
  const sizes = [];
  const hubs = [];
  groups.forEach((g, i) => {
    sizes[g] = (sizes[g] ?? 0) + 1;
    if (hubs[g] === undefined || radius[i] > radius[hubs[g]]) hubs[g] = i;
  });
  const rows = graph.palette.filter((_, g) => sizes[g] > 2).map((colour, g) => [`around ${graph.titles[hubs[g]]}`, colour, "circle", sizes[g]]);
  const rest = graph.n - rows.reduce((sum, row) => sum + row[3], 0);
  return rest ? [...rows, ["others", "other", "circle", rest]] : rows;
}

/** The rows of the legend, and the place of each node's row. */
function colouring(mode) {
  if (mode === "age") {
    const place = (age) => AGES.findIndex(([, most]) => age < most);
    const style = Uint16Array.from(graph.ages, place);
    return [AGES.map(([name, , colour], i) => [name, colour, "circle", style.reduce((sum, each) => sum + (each === i), 0)]), style];
  }
  if (mode === "cluster" && groups) {
    const rows = clusterRows();
    return [rows, Uint16Array.from(groups, (g) => Math.min(g, rows.length - 1))];
  }
  return [graph.styles[mode], Uint16Array.from(graph[mode])];
}

function paintLegend(mode, rows) {
  const canFilter = mode in hidden && rows.length > 1;
  legend.replaceChildren(...rows.map(([name, colour, shape, count], place) => {
    const row = Object.assign(document.createElement("li"), { className: `t-${colour}` });
    const inside = canFilter ? Object.assign(document.createElement("button"), { type: "button", title: "Show or hide" }) : row;
    const amount = Object.assign(document.createElement("span"), { className: "count", textContent: number(count) });
    inside.append(Object.assign(document.createElement("i"), { className: shape }), words(name) || "none", " ", amount);
    if (canFilter) {
      inside.setAttribute("aria-pressed", String(!hidden[mode].has(place)));
      inside.addEventListener("click", () => {
        if (!hidden[mode].delete(place)) hidden[mode].add(place);
        inside.setAttribute("aria-pressed", String(!hidden[mode].has(place)));
        refresh();
      });
      row.append(inside);
    }
    return row;
  }));
}

function recolour(mode = look.mode) {
  const probe = box.appendChild(document.createElement("span"));
  const variable = (name) => {
    probe.style.color = `var(${name})`;
    return cssColour(probe);
  };
  colours = { ink: variable("--ink"), soft: variable("--ink-2"), line: variable("--edge"), accent: variable("--accent"), paper: variable("--surface"), font: getComputedStyle(canvas).fontFamily };
  probe.remove();
  const [rows, style] = colouring(mode);
  if (mode !== look.mode || !look.palette.length) paintLegend(mode, rows);
  const palette = rows.map(([, , shape], place) => ({ shape, colour: cssColour(legend.children[place]) }));
  look = { mode, style, palette };
  worker?.postMessage({ look: { style, palette, radius, dot: dot(), line: colours.line } });
  redraw();
}

// --- drawing

function resize() {
  const ratio = devicePixelRatio || 1;
  const size = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  return ratio;
}

/** Ask the worker for a picture of this view, unless it is painting one; then it is asked when that arrives. */
function ask() {
  if (isAsking || !worker || !canvas.clientWidth) return;
  const wanted = { ...view, width: canvas.clientWidth, height: canvas.clientHeight, ratio: devicePixelRatio || 1, margin: MARGIN };
  if (picture && ["x", "y", "scale", "width", "height", "ratio"].every((each) => picture.view[each] === wanted[each])) return;
  isAsking = true;
  worker.postMessage({ view: wanted });
}

function draw() {
  waiting = false;
  const ratio = resize();
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const focus = over >= 0 ? over : selected;
  const isFocused = focus >= 0 && shown.nodes[focus];
  if (picture) {
    const from = picture.view;
    const k = view.scale / from.scale;
    const left = width / 2 + view.x - (from.width / 2 + from.x + MARGIN) * k;
    const top = height / 2 + view.y - (from.height / 2 + from.y + MARGIN) * k;
    pen.globalAlpha = isFocused ? 0.25 : 1;
    pen.drawImage(picture.bitmap, left, top, (from.width + 2 * MARGIN) * k, (from.height + 2 * MARGIN) * k);
    pen.globalAlpha = 1;
  }
  const tied = isFocused ? near(focus) : [];
  if (isFocused) highlight(focus, tied);
  else if (graph.centre >= 0) node(graph.centre, true);
  if (x.length) label(isFocused ? focus : -1, tied);
  ask();
}

function highlight(focus, tied) {
  const [fx, fy] = toScreen(focus);
  pen.lineWidth = 1.6;
  pen.strokeStyle = colours.accent;
  pen.beginPath();
  for (const i of tied) {
    pen.moveTo(fx, fy);
    pen.lineTo(...toScreen(i));
  }
  pen.stroke();
  for (const i of tied) node(i, false);
  node(focus, true);
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

function node(i, isMarked) {
  const style = look.palette[look.style[i]];
  pen.fillStyle = style.colour;
  pen.beginPath();
  OUTLINES[style.shape](...toScreen(i), screenRadius(i) + (isMarked ? 1 : 0));
  pen.fill();
  if (!isMarked) return;
  pen.lineWidth = 2;
  pen.strokeStyle = colours.ink;
  pen.stroke();
}

function textWidth(text) {
  if (!widths.has(text)) widths.set(text, pen.measureText(text).width);
  return widths.get(text);
}

/** Choose the nodes to label: the most connected ones first, none whose name would cover another. */
function chooseLabels(focus, tied) {
  const zoomed = Math.max(Math.log2(view.scale / fitScale), 0);
  const most = Math.min(LABELS + 24 * zoomed, MOST_LABELS);
  const candidates = focus >= 0 ? [focus, ...tied.slice().sort((a, b) => radius[b] - radius[a])] : graph.order;
  const taken = [];
  const list = [];
  for (const i of candidates) {
    if (list.length >= most) break;
    if (shown.nodes[i] !== 2) continue;
    const [px, py] = toScreen(i);
    if (px < 0 || py < 0 || px > canvas.clientWidth || py > canvas.clientHeight) continue;
    const half = textWidth(graph.labels[i]) / 2 + 4;
    const top = py + screenRadius(i) + 3;
    const isCovered = taken.some(([l, t, r]) => px - half < r && px + half > l && Math.abs(top - t) < 17);
    if (isCovered && i !== focus) continue;
    taken.push([px - half, top, px + half]);
    list.push(i);
  }
  return list;
}

function label(focus, tied) {
  pen.font = `560 12px ${colours.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineJoin = "round";
  const now = performance.now();
  if (names.focus !== focus || names.scale !== view.scale || now - names.at > 150) names = { at: now, focus, scale: view.scale, list: chooseLabels(focus, tied) };
  pen.lineWidth = 3.5;
  pen.strokeStyle = colours.paper;
  for (const i of names.list) {
    const [px, py] = toScreen(i);
    const top = py + screenRadius(i) + 3;
    pen.strokeText(graph.labels[i], px, top);
    pen.fillStyle = focus >= 0 || i === graph.centre ? colours.ink : colours.soft;
    pen.fillText(graph.labels[i], px, top);
  }
}

function redraw() {
  if (waiting || !graph) return;
  waiting = true;
  requestAnimationFrame(draw);
}

function fit() {
  if (!x.length) return;
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (let i = 0; i < x.length; i++) {
    if (!shown.nodes[i]) continue;
    left = Math.min(left, x[i]);
    right = Math.max(right, x[i]);
    top = Math.min(top, y[i]);
    bottom = Math.max(bottom, y[i]);
  }
  if (left > right) return;
  const room = Math.min((canvas.clientWidth - 90) / (right - left + 1), (canvas.clientHeight - 80) / (bottom - top + 1));
  view.scale = fitScale = Math.min(Math.max(room, 0.02), 2.2);
  view.x = (-(left + right) / 2) * view.scale;
  view.y = (-(top + bottom) / 2) * view.scale;
  redraw();
}

function zoom(factor, event) {
  const frame = canvas.getBoundingClientRect();
  const cx = event ? event.clientX - frame.left - frame.width / 2 : 0;
  const cy = event ? event.clientY - frame.top - frame.height / 2 : 0;
  const scale = Math.min(Math.max(view.scale * factor, Math.min(fitScale, 0.05) / 2), 8);
  view.x = cx - ((cx - view.x) * scale) / view.scale;
  view.y = cy - ((cy - view.y) * scale) / view.scale;
  view.scale = scale;
  isFitted = true;
  redraw();
}

function centreOn(i) {
  view.scale = Math.max(view.scale, Math.min(0.9, fitScale * 8));
  view.x = -x[i] * view.scale;
  view.y = -y[i] * view.scale;
  isFitted = true;
  redraw();
}

// --- selection

function at(event) {
  const frame = canvas.getBoundingClientRect();
  const [px, py] = [event.clientX - frame.left, event.clientY - frame.top];
  const slack = event.pointerType === "touch" ? 16 : 5;
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < x.length; i++) {
    if (shown.nodes[i] !== 2) continue;
    const [nx, ny] = toScreen(i);
    const d = Math.hypot(nx - px, ny - py) - screenRadius(i);
    if (d < slack && d < least) [best, least] = [i, d];
  }
  return best;
}

function tell(i) {
  if (i >= 0) return void (hint.textContent = `${graph.titles[i]} · ${words(graph.styles.type[graph.type[i]][0])} · ${many(near(i).length, "link")}`);
  const all = shown.pages < graph.pages ? `${number(shown.pages)} of ${number(graph.pages)} pages` : many(shown.pages, "page");
  hint.textContent = `${all}, ${many(shown.count, "link")}`;
}

let reading = null;
async function select(i) {
  selected = i;
  reading?.abort();
  tell(i);
  redraw();
  panel.hidden = i < 0;
  if (i < 0) return;
  const mine = (reading = new AbortController());
  const body = panel.querySelector("[data-panel-body]");
  body.replaceChildren(Object.assign(document.createElement("h2"), { id: "panel-title", textContent: graph.titles[i] }));
  try {
    const answer = await fetch(`/ui/graph/page?slug=${encodeURIComponent(graph.slugs[i])}`, { signal: mine.signal });
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine.signal.aborted) return;
    if (answer.ok) {
      body.replaceChildren(...made.body.childNodes);
      if (matchMedia("(max-width: 860px)").matches) panel.scrollIntoView({ block: "nearest" });
    } else body.append(Object.assign(document.createElement("p"), { className: "trouble", textContent: "This page cannot be read now." }));
  } catch (error) {
    if (error.name !== "AbortError") body.append(Object.assign(document.createElement("p"), { className: "trouble", textContent: "The server did not answer." }));
  }
}

panel.querySelector("[data-panel-close]").addEventListener("click", () => {
  select(-1);
  canvas.focus();
});
panel.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-node]");
  const i = link ? graph.slugs.indexOf(link.dataset.node) : -1;
  if (i < 0 || !shown.nodes[i] || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  centreOn(i);
  select(i);
});

// --- input

function listen() {
  let held = -1;
  let from = null;
  let moved = false;
  const fingers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
    held = fingers.size === 1 ? at(event) : -1;
    from = { x: event.clientX, y: event.clientY };
    moved = fingers.size > 1;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return hover(event);
    const before = fingers.get(event.pointerId);
    if (fingers.size === 2) pinch(event, before);
    else if (moved || Math.hypot(event.clientX - from.x, event.clientY - from.y) > 4) {
      moved = isFitted = true;
      canvas.classList.add("is-dragging");
      if (held >= 0) {
        const frame = canvas.getBoundingClientRect();
        worker.postMessage({ held, x: (event.clientX - frame.left - frame.width / 2 - view.x) / view.scale, y: (event.clientY - frame.top - frame.height / 2 - view.y) / view.scale });
      } else {
        view.x += event.clientX - before.clientX;
        view.y += event.clientY - before.clientY;
        redraw();
      }
    }
    fingers.set(event.pointerId, event);
  });
  function pinch(event, before) {
    const other = [...fingers.values()].find((each) => each.pointerId !== event.pointerId);
    const gap = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
    moved = true;
    zoom(gap(event) / Math.max(gap(before), 1), event);
  }
  const up = (event) => {
    fingers.delete(event.pointerId);
    canvas.classList.remove("is-dragging");
    if (held >= 0 && moved) worker.postMessage({ held: -1 });
    if (event.type === "pointerup" && !moved) select(held);
    held = -1;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", (event) => {
    const i = at(event);
    if (i >= 0) location.href = pageUrl(i);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0016), event);
  }, { passive: false });
  canvas.addEventListener("keydown", keys);
}

function hover(event) {
  const found = event ? at(event) : -1;
  if (found === over) return;
  over = found;
  canvas.classList.toggle("is-over", over >= 0);
  tell(over >= 0 ? over : selected);
  redraw();
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const pans = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  if (pans[event.key]) {
    view.x += pans[event.key][0];
    view.y += pans[event.key][1];
    isFitted = true;
  } else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") fit();
  else if (event.key === "n" || event.key === "p") {
    const there = graph.order.filter((i) => shown.nodes[i] === 2);
    const place = there.indexOf(selected);
    const next = event.key === "n" ? place + 1 : place < 0 ? there.length - 1 : place - 1 + there.length;
    if (there.length) select(there[next % there.length]);
  } else if (event.key === "Enter" && selected >= 0) location.href = pageUrl(selected);
  else if (event.key === "Escape" && selected >= 0) select(-1);
  else return;
  event.preventDefault();
  event.stopPropagation();
  redraw();
}

// --- the list, with the same content as the drawing

function pageLink(i, href = pageUrl(i)) {
  return Object.assign(document.createElement("a"), { href, textContent: graph.titles[i] });
}

function list(isToday) {
  const rows = [];
  if (isWhole) {
    for (let k = 0; k < graph.n && rows.length < listed; k++) {
      const i = graph.order[k];
      if (!shown.nodes[i]) continue;
      const row = document.createElement("li");
      const link = pageLink(i, `/graph?slug=${encodeURIComponent(graph.slugs[i])}`);
      const amount = Object.assign(document.createElement("span"), { className: "muted", textContent: many(near(i).length, "link") });
      link.replaceChildren(Object.assign(document.createElement("span"), { className: "main-line", textContent: graph.titles[i] }), " ", amount);
      row.append(link);
      rows.push(row);
    }
  } else {
    for (let l = 0; l < graph.m && rows.length < listed; l++) {
      if (!shown.links[l]) continue;
      const row = document.createElement("li");
      const relation = Object.assign(document.createElement("span"), { className: "rel", textContent: words(graph.relationships[graph.relation[l]]) });
      row.append(pageLink(graph.ends[l * 2]), " ", relation, " ", pageLink(graph.ends[l * 2 + 1]));
      const [since, until] = [graph.since[l], graph.until[l]];
      if (since || until) row.append(" ", Object.assign(document.createElement("span"), { className: "span", textContent: `${since ? isoDay(since) : "…"} – ${until ? isoDay(until) : "now"}` }));
      rows.push(row);
    }
    card.querySelector("[data-list-title]").textContent = isToday ? "Links today" : `Links on ${inWords(time.day)}`;
  }
  const total = isWhole ? shown.nodes.reduce((sum, each) => sum + (each > 0), 0) : shown.count;
  if (!rows.length) rows.push(Object.assign(document.createElement("li"), { className: "empty", textContent: isWhole ? "No pages." : "No links on this day." }));
  card.querySelector("[data-links], [data-pages]").replaceChildren(...rows);
  card.querySelector("[data-count]").textContent = number(total);
  card.querySelector("[data-more]").hidden = total <= listed;
}

let listing = 0;
function refresh(isToday = true, isPlaying = false) {
  settle();
  over = -1;
  if (selected >= 0 && shown.nodes[selected] !== 2) select(-1);
  tell(selected);
  redraw();
  clearTimeout(listing);
  listing = setTimeout(() => {
    list(isToday);
    const address = new URL(location.href);
    if (isToday) address.searchParams.delete("on");
    else address.searchParams.set("on", isoDay(time.day));
    if (address.href !== location.href) history.replaceState(null, "", address);
  }, isPlaying ? 250 : 90);
}

// --- positions are kept for this tab, so that a return shows the picture at once

const fold = (slug) => {
  let hash = 2166136261;
  for (let i = 0; i < slug.length; i++) hash = Math.imul(hash ^ slug.charCodeAt(i), 16777619);
  return hash;
};
const pack = (array) => {
  const bytes = new Uint8Array(array.buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
};
const unpack = (Type, text) => new Type(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

function keep() {
  if (!x.length) return;
  const kept = { hashes: pack(Int32Array.from(graph.slugs, fold)), x: pack(Int16Array.from(x)), y: pack(Int16Array.from(y)), mode: look.mode, view: isFitted ? view : null, selected: graph.slugs[selected] };
  try {
    sessionStorage.setItem(key, JSON.stringify(kept));
  } catch {
    sessionStorage.removeItem(key); // no room: the layout is computed again
  }
}

/** Return kept positions and the heat that new nodes need, or only a heat if nothing useful is kept. */
function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(key));
    const [hashes, xs, ys] = [unpack(Int32Array, kept.hashes), unpack(Int16Array, kept.x), unpack(Int16Array, kept.y)];
    const places = new Map([...hashes].map((hash, i) => [hash, i]));
    const found = graph.slugs.map((slug) => places.get(fold(slug)) ?? -1);
    const known = found.filter((place) => place >= 0).length;
    if (known < graph.n * 0.8) return { heat: 1 };
    const from = (i) => (found[i] >= 0 ? i : graph.near.subarray(graph.start[i], graph.start[i + 1]).find((other) => found[other] >= 0));
    const at = (list) => Float32Array.from(found, (_, i) => (from(i) === undefined ? i % 97 : list[found[from(i)]] + (found[i] < 0 ? (i % 13) - 6 : 0)));
    return { x: at(xs), y: at(ys), heat: known === graph.n ? 0 : 0.1, kept };
  } catch {
    return { heat: 1 };
  }
}

// --- start

function columns(data) {
  const n = data.slugs.length;
  const m = data.links.length / 6;
  const column = (k, step) => Int32Array.from({ length: m }, (_, l) => data.links[l * step + k]);
  const ends = Int32Array.from({ length: m * 2 }, (_, i) => data.links[(i >> 1) * 6 + (i & 1)]);
  const { start, ends: neighbours, via } = adjacency(n, ends);
  const label = (title) => (title.length > 34 ? `${title.slice(0, 33).replace(/\s+\S*$/, "")}…` : title);
  graph = { ...data, n, m, ends, relation: column(2, 6), begins: column(3, 6), until: column(4, 6), since: column(5, 6), start, near: neighbours, via, labels: data.titles.map(label) };
  radius = Float32Array.from({ length: n }, (_, i) => (i === data.centre ? 11 : Math.min(4 + Math.sqrt(start[i + 1] - start[i]) * 1.5, 14)));
  const degree = (i) => (i === data.centre ? Infinity : start[i + 1] - start[i]);
  graph.order = Array.from({ length: n }, (_, i) => i).sort((a, b) => degree(b) - degree(a) || a - b);
}

function receive({ data }) {
  if (data.bitmap) {
    picture?.bitmap.close();
    picture = { bitmap: data.bitmap, view: data.view };
    isAsking = false;
    box.dataset.paint = data.took.toFixed(0);
    box.dataset.first ??= performance.now().toFixed(0);
    return redraw();
  }
  if (data.groups) groups = data.groups;
  if (still && !data.resting && x.length) return;
  x = data.x;
  y = data.y;
  if (!isFitted) fit();
  if (data.resting) {
    box.dataset.resting = "yes";
    names.at = 0;
    keep();
  }
  redraw();
}

async function begin() {
  const answer = await fetch(box.dataset.source);
  if (!answer.ok) return void (hint.textContent = "The links cannot be read.");
  columns(await answer.json());
  worker = new Worker(box.dataset.worker, { type: "module" });
  worker.addEventListener("message", receive);
  const { kept, ...start } = restore();
  const mode = box.querySelector("[data-colour]");
  recolour();
  worker.postMessage({ start: { nodes: graph.n, links: graph.ends, centre: graph.centre, ...start } });
  if (kept?.view) {
    Object.assign(view, kept.view);
    isFitted = true;
  }
  time = new TimeSlider(box, graph.begins, graph.until, (_, isToday, isPlaying) => time && refresh(isToday, isPlaying));
  refresh(time.day === time.today);
  if (mode && kept?.mode && kept.mode !== "cluster") recolour((mode.value = kept.mode));
  if (kept?.selected) select(graph.slugs.indexOf(kept.selected));
  mode?.addEventListener("change", () => recolour(mode.value));
  findField(document.querySelector("[data-find]"), graph.titles, (i) => {
    hidden.type.delete(graph.type[i]);
    if (shown.nodes[i] !== 2) refresh();
    centreOn(i);
    select(i);
  });
  listen();
  box.dataset.ready = "yes";
  // For tests and debugging: returns the position of a page on the canvas.
  box.addEventListener("where", (event) => {
    const i = graph.slugs.indexOf(event.detail.address);
    const [px, py] = i < 0 ? [] : toScreen(i);
    event.detail.answer = i < 0 ? null : { x: px, y: py };
  });
}

box.querySelector("[data-fit]").addEventListener("click", () => {
  isFitted = false;
  fit();
});
box.querySelector("[data-depth]")?.addEventListener("change", (event) => {
  const address = new URL(location.href);
  address.searchParams.set("depth", event.target.value);
  location.href = address;
});
addEventListener("pagehide", () => graph && keep());
addEventListener("resize", redraw);
addEventListener("theme", () => graph && recolour());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => graph && recolour());
begin();
