// A force-directed layout: nodes repel each other, links attract, and the centre attracts all. Distant groups of nodes
// are approximated with a quadtree (Barnes–Hut), so that a step takes n log n. It has no access to page or canvas.

const LEAF = 1;
const LARGE = 3000; // with more nodes, distances are approximated more coarsely and the layout cools down faster
const ROUNDS = 12;

/** Quadtree over x and y, in flat arrays: for each cell its mass, its centre of mass, its width and four children. */
class Tree {
  constructor(most) {
    this.theta2 = most > LARGE ? 1.44 : 0.81;
    const cells = most * 4 + 64;
    this.mass = new Float32Array(cells);
    this.cx = new Float32Array(cells);
    this.cy = new Float32Array(cells);
    this.width = new Float32Array(cells);
    this.child = new Int32Array(cells * 4);
    this.node = new Int32Array(cells);
    this.stack = new Int32Array(4096);
  }

  build(x, y, n) {
    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
    for (let i = 0; i < n; i++) {
      left = Math.min(left, x[i]);
      right = Math.max(right, x[i]);
      top = Math.min(top, y[i]);
      bottom = Math.max(bottom, y[i]);
    }
    const width = Math.max(right - left, bottom - top, 1) * 1.001;
    this.count = 0;
    this.root = this.cell(width);
    for (let i = 0; i < n; i++) this.insert(i, x, y, left, top, width);
    for (let c = this.count - 1; c >= 0; c--) {
      if (this.mass[c] > 0) {
        this.cx[c] /= this.mass[c];
        this.cy[c] /= this.mass[c];
      }
    }
  }

  cell(width) {
    const c = this.count++;
    this.mass[c] = this.cx[c] = this.cy[c] = 0;
    this.width[c] = width;
    this.node[c] = -1;
    this.child.fill(0, c * 4, c * 4 + 4);
    return c;
  }

  insert(i, x, y, left, top, width) {
    let c = this.root;
    for (let depth = 0; ; depth++) {
      this.mass[c] += 1;
      this.cx[c] += x[i];
      this.cy[c] += y[i];
      if (this.mass[c] <= LEAF) return void (this.node[c] = i);
      if (depth > 24 || this.count + 8 > this.mass.length) return; // treat nodes this close as one
      const other = this.node[c];
      const half = width / 2;
      if (other >= 0) {
        this.node[c] = -1;
        const d = this.descend(c, x[other], y[other], left, top, half);
        this.mass[d] += 1;
        this.cx[d] += x[other];
        this.cy[d] += y[other];
        this.node[d] = other;
      }
      const right = x[i] >= left + half;
      const below = y[i] >= top + half;
      c = this.descend(c, x[i], y[i], left, top, half);
      if (right) left += half;
      if (below) top += half;
      width = half;
    }
  }

  descend(c, px, py, left, top, half) {
    const slot = c * 4 + (px >= left + half ? 1 : 0) + (py >= top + half ? 2 : 0);
    if (!this.child[slot]) this.child[slot] = this.cell(half);
    return this.child[slot];
  }

  /** Add to `out` the force with which all nodes repel node i at this position. */
  push(i, px, py, strength, out) {
    const { stack, mass, cx, cy, width, child, node, theta2 } = this;
    let size = 0;
    let fx = 0;
    let fy = 0;
    stack[size++] = this.root;
    while (size) {
      const c = stack[--size];
      if (!mass[c] || node[c] === i) continue;
      const dx = px - cx[c];
      const dy = py - cy[c];
      const d2 = dx * dx + dy * dy + 0.5;
      const isFar = width[c] * width[c] < theta2 * d2;
      const k = c * 4;
      const isLeaf = node[c] >= 0 || !(child[k] || child[k + 1] || child[k + 2] || child[k + 3]);
      if (isFar || isLeaf) {
        const f = (strength * mass[c]) / d2;
        fx += dx * f;
        fy += dy * f;
      } else {
        for (let q = 0; q < 4; q++) if (child[k + q]) stack[size++] = child[k + q];
      }
    }
    out[0] = fx;
    out[1] = fy;
  }
}

/**
 * Find groups of nodes with many links between them, by label propagation. Nodes are visited in their order, and ties go
 * to the smallest label, so the result is the same each time. Returns a group number for each node, 0 for the largest.
 */
export function communities(n, links) {
  const { start, ends } = adjacency(n, links);
  const label = Int32Array.from({ length: n }, (_, i) => i);
  const votes = new Int32Array(n);
  for (let round = 0, moved = 1; moved && round < ROUNDS; round++) {
    moved = 0;
    for (let i = 0; i < n; i++) {
      let best = label[i];
      let most = 0;
      for (let k = start[i]; k < start[i + 1]; k++) votes[label[ends[k]]]++;
      if (votes[best]) most = votes[best];
      for (let k = start[i]; k < start[i + 1]; k++) {
        const other = label[ends[k]];
        if (votes[other] > most || (votes[other] === most && most && other < best && votes[label[i]] < most)) [best, most] = [other, votes[other]];
      }
      for (let k = start[i]; k < start[i + 1]; k++) votes[label[ends[k]]] = 0;
      if (best !== label[i]) {
        label[i] = best;
        moved++;
      }
    }
  }
  const sizes = new Int32Array(n);
  for (const each of label) sizes[each]++;
  const order = [...sizes.keys()].filter((each) => sizes[each]).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const number = new Int32Array(n);
  order.forEach((each, place) => (number[each] = place));
  return label.map((each) => number[each]);
}

/** The neighbours of each node: those of node i are ends[start[i]] up to ends[start[i + 1]]; via names the link. */
export function adjacency(n, links) {
  const start = new Int32Array(n + 1);
  for (const end of links) start[end + 1]++;
  for (let i = 0; i < n; i++) start[i + 1] += start[i];
  const place = start.slice();
  const ends = new Int32Array(links.length);
  const via = new Int32Array(links.length);
  for (let l = 0; l < links.length; l += 2) {
    for (const [one, other] of [[links[l], links[l + 1]], [links[l + 1], links[l]]]) {
      via[place[one]] = l / 2;
      ends[place[one]++] = other;
    }
  }
  return { start, ends, via };
}

/** Place each group near the groups it has links with, and its nodes on a spiral around its centre. */
function place(layout, groups) {
  const { n, x, y, links } = layout;
  const count = groups.reduce((most, each) => Math.max(most, each + 1), 0);
  const sizes = new Int32Array(count);
  for (const each of groups) sizes[each]++;
  const between = new Set();
  for (let l = 0; l < links.length; l += 2) {
    const [a, b] = [groups[links[l]], groups[links[l + 1]]];
    if (a !== b) between.add(Math.min(a, b) * count + Math.max(a, b));
  }
  const coarse = new Layout(count, Int32Array.from([...between].flatMap((pair) => [Math.floor(pair / count), pair % count])));
  for (let step = 0; step < (count > 1000 ? 12 : 60); step++) coarse.step();
  let width = 1;
  for (let g = 0; g < count; g++) width = Math.max(width, Math.hypot(coarse.x[g], coarse.y[g]));
  const stretch = (26 * Math.sqrt(n)) / width;
  const placed = new Int32Array(count);
  for (let i = 0; i < n; i++) {
    const g = groups[i];
    const k = placed[g]++;
    const r = sizes[g] > 1 ? 16 * Math.sqrt(k + 0.5) : 0;
    x[i] = coarse.x[g] * stretch + r * Math.cos(k * 2.39996);
    y[i] = coarse.y[g] * stretch + r * Math.sin(k * 2.39996);
  }
}

export class Layout {
  /** links: a flat list of pairs of node numbers. groups: a group number for each node, for the start of a large layout. */
  constructor(n, links, centre = -1, groups = null) {
    this.n = n;
    this.links = links;
    this.centre = centre;
    this.x = new Float32Array(n);
    this.y = new Float32Array(n);
    this.vx = new Float32Array(n);
    this.vy = new Float32Array(n);
    this.degree = new Float32Array(n).fill(1);
    for (const end of links) this.degree[end] += 1;
    // Start on a sunflower spiral: evenly spread, and the same each time.
    for (let i = 0; i < n; i++) {
      const r = 14 * Math.sqrt(i + 0.5);
      this.x[i] = r * Math.cos(i * 2.39996);
      this.y[i] = r * Math.sin(i * 2.39996);
    }
    this.tree = new Tree(Math.max(n, 1));
    this.heat = 1;
    this.cooling = n > LARGE ? 0.965 : 0.985;
    this.held = -1;
    this.push = new Float32Array(2);
    if (groups && n > 300) place(this, groups);
  }

  /** Run one step. Return false if the layout has come to rest. */
  step() {
    const { n, x, y, vx, vy, links, degree, push } = this;
    if (this.heat < 0.004 || !n) return false;
    this.heat *= this.cooling;
    this.tree.build(x, y, n);
    const strength = 380 * this.heat;
    for (let i = 0; i < n; i++) {
      this.tree.push(i, x[i], y[i], strength, push);
      const pull = (degree[i] > 1 ? 0.012 : 0.06) * this.heat; // pages without links stay near the others
      vx[i] += push[0] - x[i] * pull;
      vy[i] += push[1] - y[i] * pull;
    }
    for (let l = 0; l < links.length; l += 2) {
      const a = links[l];
      const b = links[l + 1];
      const dx = x[b] - x[a];
      const dy = y[b] - y[a];
      const d = Math.sqrt(dx * dx + dy * dy) + 0.01;
      const f = ((d - 58) / d) * 0.6 * this.heat / Math.min(degree[a], degree[b]);
      const bias = degree[a] / (degree[a] + degree[b]);
      vx[b] -= dx * f * bias;
      vy[b] -= dy * f * bias;
      vx[a] += dx * f * (1 - bias);
      vy[a] += dy * f * (1 - bias);
    }
    for (let i = 0; i < n; i++) {
      vx[i] *= 0.62;
      vy[i] *= 0.62;
      const speed = Math.hypot(vx[i], vy[i]);
      const most = speed > 40 ? 40 / speed : 1;
      if (i === this.held) continue;
      if (i === this.centre) {
        x[i] *= 0.85;
        y[i] *= 0.85;
        continue;
      }
      x[i] += vx[i] * most;
      y[i] += vy[i] * most;
    }
    return true;
  }
}
