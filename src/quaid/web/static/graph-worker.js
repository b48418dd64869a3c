// Computes the layout and paints the links and nodes on a separate thread, so that moving the picture stays smooth with
// any number of them. The page draws the last picture, moved and scaled, until the next one arrives.

import { Layout, communities } from "./layout.js";

const BUDGET = 40; // ms of layout between two reports
const WHILE_MOVING = 6000; // at most this many links are painted while the layout runs
const PATHS = {
  circle: (pen, r) => pen.arc(0, 0, r, 0, 7),
  square: (pen, r) => pen.rect(-r * 0.9, -r * 0.9, r * 1.8, r * 1.8),
  diamond: (pen, r) => outline(pen, r * 1.25, [[0, -1], [1, 0], [0, 1], [-1, 0]]),
  triangle: (pen, r) => outline(pen, r * 1.25, [[0, -1], [0.95, 0.75], [-0.95, 0.75]]),
};

let layout = null;
let running = false;
let painting = false;
let look = null; // colours and radii
let shown = null; // which links and nodes are there: link: Uint8Array, node: Uint8Array (0 hidden, 1 faint, 2 there)
let view = null;
let canvas = null;
let sprites = new Map();

function outline(pen, r, corners) {
  corners.forEach(([cx, cy], i) => pen[i ? "lineTo" : "moveTo"](cx * r, cy * r));
  pen.closePath();
}

function run() {
  const end = performance.now() + BUDGET;
  let goesOn = true;
  while (goesOn && performance.now() < end) goesOn = layout.step();
  running = goesOn;
  postMessage({ x: layout.x.slice(), y: layout.y.slice(), resting: !goesOn });
  paint();
  if (goesOn) setTimeout(run, 0);
}

function warm(heat) {
  layout.heat = Math.max(layout.heat, heat);
  if (running) return;
  running = true;
  run();
}

/** A picture of a node, to be copied: much faster than drawing thousands of shapes. */
function sprite(style, r) {
  const size = Math.max(Math.round(r * 2) / 2, 0.5);
  const key = style * 10000 + size * 2;
  let made = sprites.get(key);
  if (!made) {
    const width = Math.ceil(size * 2.6) + 2;
    made = new OffscreenCanvas(width, width);
    const pen = made.getContext("2d");
    pen.translate(width / 2, width / 2);
    pen.fillStyle = look.palette[style].colour;
    pen.beginPath();
    PATHS[look.palette[style].shape](pen, size);
    pen.fill();
    if (sprites.size > 3000) sprites.clear();
    sprites.set(key, made);
  }
  return made;
}

function paint() {
  painting = false;
  if (!layout || !look || !shown || !view) return;
  const began = performance.now();
  const { ratio, scale } = view;
  const width = Math.round((view.width + 2 * view.margin) * ratio);
  const height = Math.round((view.height + 2 * view.margin) * ratio);
  if (!canvas || canvas.width !== width || canvas.height !== height) canvas = new OffscreenCanvas(width, height);
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, width, height);
  const s = scale * ratio;
  const ox = width / 2 + view.x * ratio;
  const oy = height / 2 + view.y * ratio;
  paintLinks(pen, s, ox, oy, width, height);
  paintNodes(pen, s, ox, oy, width, height);
  const bitmap = canvas.transferToImageBitmap();
  postMessage({ bitmap, view, took: performance.now() - began }, [bitmap]);
}

function paintLinks(pen, s, ox, oy, width, height) {
  const { x, y, links } = layout;
  const there = shown.links;
  const every = running ? Math.ceil(links.length / 2 / WHILE_MOVING) : 1;
  pen.strokeStyle = look.line;
  pen.lineWidth = view.ratio;
  pen.globalAlpha = links.length > 20000 ? 0.1 : links.length > 3000 ? 0.28 : 0.5;
  pen.beginPath();
  for (let l = 0; l < links.length; l += 2 * every) {
    if (!there[l >> 1]) continue;
    const ax = x[links[l]] * s + ox, ay = y[links[l]] * s + oy, bx = x[links[l + 1]] * s + ox, by = y[links[l + 1]] * s + oy;
    if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > width && bx > width) || (ay > height && by > height)) continue;
    pen.moveTo(ax, ay);
    pen.lineTo(bx, by);
  }
  pen.stroke();
}

function paintNodes(pen, s, ox, oy, width, height) {
  const { x, y, n } = layout;
  for (const [state, alpha] of [[1, 0.12], [2, 1]]) {
    pen.globalAlpha = alpha;
    for (let i = n - 1; i >= 0; i--) { // the nodes with the most links are first, and painted last
      if (shown.nodes[i] !== state) continue;
      const px = x[i] * s + ox, py = y[i] * s + oy;
      if (px < -20 || py < -20 || px > width + 20 || py > height + 20) continue;
      const picture = sprite(look.style[i], Math.max(look.radius[i] * s, (1.2 + look.radius[i] * 0.18) * look.dot * view.ratio));
      pen.drawImage(picture, px - picture.width / 2, py - picture.height / 2);
    }
  }
}

function soon() {
  if (painting || running) return;
  painting = true;
  setTimeout(paint, 0);
}

addEventListener("message", ({ data }) => {
  if (data.look) {
    look = data.look;
    sprites = new Map();
  }
  if (data.shown) shown = data.shown;
  if (data.view) view = data.view;
  if (data.start) {
    const { nodes, links, centre, x, y, heat } = data.start;
    const groups = communities(nodes, links);
    layout = new Layout(nodes, links, centre, x ? null : groups);
    if (x) {
      layout.x.set(x);
      layout.y.set(y);
    }
    layout.heat = heat;
    postMessage({ groups, x: layout.x.slice(), y: layout.y.slice(), resting: !heat });
    if (heat) warm(heat);
  } else if (layout && data.held !== undefined) {
    layout.held = data.held;
    if (data.held >= 0) {
      layout.x[data.held] = data.x;
      layout.y[data.held] = data.y;
      warm(layout.n > 3000 ? 0.06 : 0.25);
    }
  }
  soon();
});
