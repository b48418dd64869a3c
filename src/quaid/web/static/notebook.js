// Open files as tabs, stored for the browser tab. Each tab is a link. Checkboxes and lists of an open file can be changed.

const KEY = "notebook-tabs";
const MOST = 8;
const bar = document.querySelector("[data-tabs]");

function kept() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

function keep(paths) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(paths));
  } catch {
    // The tabs are then not remembered.
  }
}

const address = (path) => "/notebook/" + path.split("/").map(encodeURIComponent).join("/");

function draw(paths) {
  bar.replaceChildren(
    ...paths.map((path) => {
      const tab = document.createElement("span");
      const link = Object.assign(document.createElement("a"), { href: address(path), textContent: path.split("/").pop() });
      const close = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
      close.setAttribute("aria-label", `Close ${path}`);
      link.title = path;
      const isOpen = path === bar.dataset.path;
      tab.classList.toggle("is-open", isOpen);
      if (isOpen) link.setAttribute("aria-current", "page");
      close.addEventListener("click", () => {
        const left = kept().filter((each) => each !== path);
        keep(left);
        if (isOpen) location.href = left.length ? address(left.at(-1)) : "/notebook";
        else draw(left);
      });
      tab.append(link, close);
      return tab;
    }),
  );
}

if (bar) {
  const path = bar.dataset.path;
  const paths = kept();
  if (!paths.includes(path)) paths.push(path);
  keep(paths.slice(-MOST));
  draw(paths.slice(-MOST));
}

// Ticking and moving in the rendered file. Each change names the version that is shown.

const note = document.querySelector("[data-lines]");
const words = (item) => [...item.childNodes].filter((each) => !["UL", "OL"].includes(each.nodeName) && !each.classList?.contains("mover")).map((each) => each.textContent).join("").replace(/[☐☑]/gu, "").trim().slice(0, 80);
const siblings = (item) => [...item.parentElement.children].filter((each) => each.dataset.line);
const itemAt = (line) => note.querySelector(`li[data-line="${line}"]`);
let dragged = null;
let working = false;

async function change(item, values, focus) {
  if (working) return;
  working = true;
  const state = document.querySelector("[data-line-state]");
  const token = document.querySelector("meta[name=csrf]").content;
  const body = new URLSearchParams({ path: note.dataset.path, version: note.dataset.version, line: item.dataset.line, ...values });
  try {
    const answer = await fetch("/ui/notebook/line", { method: "POST", headers: { "X-CSRF-Token": token }, body });
    const isKnown = answer.headers.get("content-type")?.startsWith("application/json");
    if (!isKnown || (!answer.ok && answer.status !== 409)) throw new Error(answer.status);
    const { html, version, line, message } = await answer.json();
    const made = new DOMParser().parseFromString(html, "text/html");
    note.replaceChildren(...made.body.childNodes);
    note.dataset.version = version;
    prepare();
    itemAt(line)?.querySelector(focus)?.focus();
    state.textContent = message || (values.steps ? `Moved to place ${siblings(itemAt(line)).indexOf(itemAt(line)) + 1}.` : "Saved.");
    state.classList.toggle("bad", Boolean(message));
  } catch {
    state.textContent = "Not saved: the server does not answer. Nothing was changed; try again.";
    state.classList.add("bad");
  } finally {
    working = false;
  }
}

function move(item, steps) {
  const row = siblings(item);
  const at = row.indexOf(item);
  if (steps && at + steps >= 0 && at + steps < row.length) change(item, { steps: String(steps) }, ".mover button");
}

function button(label, sign, act) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: sign, title: `${label} (Alt ${sign})` });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

function prepare() {
  for (const box of note.querySelectorAll("li > .box, li > p:first-child > .box")) {
    const item = box.closest("li");
    const isDone = box.classList.contains("done");
    Object.entries({ role: "checkbox", tabindex: "0", "aria-checked": String(isDone), "aria-label": words(item) }).forEach(([name, value]) => box.setAttribute(name, value));
    const flip = () => change(item, { done: isDone ? "no" : "yes" }, ".box");
    box.addEventListener("click", flip);
    box.addEventListener("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      flip();
    });
  }
  for (const item of note.querySelectorAll("li[data-line]")) {
    if (siblings(item).length < 2) continue;
    const name = words(item);
    const mover = Object.assign(document.createElement("span"), { className: "mover" });
    const grip = Object.assign(document.createElement("span"), { className: "grip", textContent: "⠿", draggable: true, title: "Drag to move" });
    grip.setAttribute("aria-hidden", "true");
    grip.addEventListener("dragstart", (event) => {
      dragged = item;
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", name);
      event.dataTransfer.setDragImage(item, 0, 0);
    });
    mover.append(grip, button(`Move up: ${name}`, "↑", () => move(item, -1)), button(`Move down: ${name}`, "↓", () => move(item, 1)));
    item.insertBefore(mover, [...item.children].find((each) => ["UL", "OL"].includes(each.nodeName)) ?? null);
    item.addEventListener("dragover", (event) => {
      if (!dragged || dragged === item || dragged.parentElement !== item.parentElement) return;
      event.preventDefault();
      event.stopPropagation();
      item.classList.add("is-target");
    });
    item.addEventListener("dragleave", () => item.classList.remove("is-target"));
    item.addEventListener("drop", (event) => {
      item.classList.remove("is-target");
      if (!dragged || dragged.parentElement !== item.parentElement) return;
      event.preventDefault();
      event.stopPropagation();
      const row = siblings(item);
      move(dragged, row.indexOf(item) - row.indexOf(dragged));
      dragged = null;
    });
    item.addEventListener("keydown", (event) => {
      if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      move(item, event.key === "ArrowUp" ? -1 : 1);
    });
  }
}

if (note) prepare();
