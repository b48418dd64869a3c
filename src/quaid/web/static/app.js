// For every page: theme switch, keyboard shortcuts, help. Pages can be read without it.

const root = document.documentElement;
const isDark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // The choice then applies to this page only.
    }
    dispatchEvent(new Event("theme"));
  });
}

const help = document.getElementById("help");
for (const button of document.querySelectorAll("[data-help]")) button.addEventListener("click", () => help.showModal());

const isTyping = (element) =>
  element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement;

function move(step) {
  const items = [...document.querySelectorAll("[data-item]")].filter((each) => each.offsetParent !== null);
  if (!items.length) return;
  const at = items.findIndex((each) => each.classList.contains("is-at"));
  const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(at + step, 0), items.length - 1);
  if (at >= 0) items[at].classList.remove("is-at");
  items[next].classList.add("is-at");
  items[next].focus({ preventScroll: true });
  items[next].scrollIntoView({ block: "nearest" });
}

function search() {
  const inputs = [...document.querySelectorAll("input[type=search]")].filter((each) => each.offsetParent !== null);
  const input = inputs.find((each) => !each.dataset.search) ?? inputs[0];
  if (!input) return void (location.href = "/search");
  input.focus();
  input.select();
}

const press = (selector) => document.querySelector(selector)?.click();
const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
const withCtrl = (key) => (isApple ? `⌘ ${key}` : `Ctrl ${key}`);

// All keys, as the help lists them. Entries without `run` are handled by a list, an editor or the graph.
const KEYS = [
  { keys: ["k"], ctrl: true, shown: [withCtrl("K")], does: "Find a page or a command", run: () => press("[data-palette]") },
  { keys: ["/"], does: "Search", run: search },
  { keys: ["j"], does: "Next item", run: () => move(1) },
  { keys: ["k"], does: "Previous item", run: () => move(-1) },
  { shown: ["↑", "↓"], does: "Choose in a list of results; move through time on the graph's slider" },
  { shown: ["Enter"], does: "Open the chosen item" },
  { shown: ["Esc"], does: "Close a list or dialog, leave a field" },
  { keys: ["e"], does: "Edit this page", run: () => press("[data-key=e]") },
  { keys: ["g"], does: "Graph of this page", run: () => press(document.querySelector("[data-key=g]") ? "[data-key=g]" : "nav a[href='/graph']") },
  {
    keys: [..."123456789"],
    shown: ["1", "…", "9"],
    does: "Open a section, in the order of the navigation",
    run: (key) => document.querySelectorAll("nav[aria-label=Main] a")[key - 1]?.click(),
  },
  { shown: [withCtrl("S")], does: "Save" },
  { shown: ["n", "p", "+", "-"], does: "In the graph: next and previous page, zoom" },
  { keys: ["?"], does: "These shortcuts", run: () => help.showModal() },
];

for (const { keys, shown = keys, does } of KEYS) {
  const row = document.createElement("div");
  const term = row.appendChild(document.createElement("dt"));
  for (const key of shown) {
    const sign = term.appendChild(document.createElement(key === "…" ? "span" : "kbd"));
    sign.textContent = key;
    term.append(" ");
  }
  row.appendChild(document.createElement("dd")).textContent = does;
  help.querySelector("[data-keys]").append(row);
}
for (const sign of document.querySelectorAll("[data-shown-key=palette]")) sign.textContent = withCtrl("K");

addEventListener("keydown", (event) => {
  if (event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const ctrl = event.ctrlKey || event.metaKey;
  if (event.key === "Escape" && !ctrl && isTyping(document.activeElement)) {
    if (document.activeElement.type === "search") event.preventDefault(); // browsers would clear the field but not the results
    return document.activeElement.blur();
  }
  const binding = KEYS.find(({ keys, ctrl: needed = false, run }) => run && needed === ctrl && keys.includes(event.key));
  if (!binding || (!ctrl && isTyping(event.target))) return;
  event.preventDefault();
  binding.run(event.key);
});

// Only on secure addresses: this machine, or TLS.
navigator.serviceWorker?.register("/service-worker.js").catch(() => {});
