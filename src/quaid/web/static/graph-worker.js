// Computes the layout on a separate thread, so that drawing stays smooth with any number of nodes.

import { Layout } from "./layout.js";

const BUDGET = 24; // ms of work between two reports
let layout = null;
let running = false;

function run() {
  if (!layout) return;
  const end = performance.now() + BUDGET;
  let goesOn = true;
  while (goesOn && performance.now() < end) goesOn = layout.step();
  postMessage({ x: layout.x.slice(), y: layout.y.slice(), resting: !goesOn });
  running = goesOn;
  if (goesOn) setTimeout(run, 0);
}

function warm(heat) {
  layout.heat = Math.max(layout.heat, heat);
  if (running) return;
  running = true;
  run();
}

addEventListener("message", ({ data }) => {
  if (data.nodes !== undefined) {
    layout = new Layout(data.nodes, data.links, data.centre);
    warm(1);
  } else if (layout && data.held !== undefined) {
    layout.held = data.held;
    if (data.held >= 0) {
      layout.x[data.held] = data.x;
      layout.y[data.held] = data.y;
      warm(0.25);
    }
  }
});
