// The command palette: sections, commands, actions of this page and pages, found by typing.
// Its entries are links and buttons of this document, so that the palette offers what the page offers.

const WAIT = 120;
const MOST = 8; // entries of one group while words are typed
const dialog = document.getElementById("palette");
const input = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
const status = dialog.querySelector("[role=status]");
const SOURCES = [
  ["On this page", "main :is(.head, .page-head, .sheet-head, .card-head) .button, main [data-command]"],
  ["Go to", "nav[aria-label=Main] a"],
  ["Commands", ".foot :is(a, button):not([data-palette]), #palette [data-command]"],
];
let options = [];
let at = 0;
let chosen = false; // an arrow key was pressed since the last change of the text
let timer = 0;
let asking = null;

const labelOf = (element) =>
  (element.dataset.command || element.getAttribute("aria-label") || element.querySelector("span")?.textContent || element.textContent).trim().replace(/\s+/g, " ");

function matches(label, words) {
  const text = label.toLowerCase();
  return words.every((word) => text.startsWith(word) || text.includes(` ${word}`));
}

function commands() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = SOURCES.map(([name, selector]) => {
    const seen = new Set();
    const elements = [...document.querySelectorAll(selector)].filter((each) => !each.closest("main") || each.checkVisibility());
    const entries = elements.map((element) => ({ label: labelOf(element), run: () => element.click() }));
    const fresh = entries.filter(({ label }) => label && !seen.has(label) && seen.add(label) && matches(label, words));
    return [name, words.length ? fresh.slice(0, MOST) : fresh];
  });
  return groups.filter(([, entries]) => entries.length);
}

function typedCommands() {
  const text = input.value.trim();
  if (!text) return [];
  const entries = [...dialog.querySelectorAll("[data-typed]")].map((button) => ({
    label: `${button.dataset.typed} “${text}”`,
    run() {
      button.form.querySelector("[data-text]").value = text;
      button.click();
    },
  }));
  return [["With these words", entries]];
}

function show(pages) {
  options = [];
  const found = pages.length ? [["Pages", pages]] : [];
  const groups = [...commands(), ...found, ...typedCommands()].map(([name, entries], place) => {
    const group = document.createElement("div");
    const title = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", (title.id = `palette-group-${place}`));
    title.className = "quick-group";
    title.textContent = name;
    group.append(title, ...entries.map(optionFor));
    return group;
  });
  list.replaceChildren(...groups);
  mark(chosen ? Math.min(at, options.length - 1) : 0);
  status.textContent = options.length === 1 ? "1 entry" : `${options.length} entries`;
}

function optionFor(entry) {
  const option = document.createElement("div");
  option.setAttribute("role", "option");
  option.id = `palette-${options.length}`;
  option.textContent = entry.label;
  if (entry.detail) {
    const detail = option.appendChild(document.createElement("span"));
    detail.className = "muted";
    detail.textContent = entry.detail;
  }
  option.addEventListener("click", () => choose(entry));
  options.push({ option, entry });
  return option;
}

function mark(place) {
  at = place;
  options.forEach(({ option }, i) => option.setAttribute("aria-selected", String(i === at)));
  if (!options[at]) return input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-activedescendant", options[at].option.id);
  options[at].option.scrollIntoView({ block: "nearest" });
}

function choose(entry) {
  dialog.close();
  entry.run();
}

async function look() {
  const mine = (asking = new AbortController());
  try {
    const answer = await fetch(`/ui/search?${new URLSearchParams({ q: input.value.trim(), brief: "1" })}`, { signal: mine.signal });
    const text = await answer.text();
    if (mine.signal.aborted || !answer.ok || !dialog.open) return;
    const made = new DOMParser().parseFromString(`<ul>${text}</ul>`, "text/html");
    const links = [...made.querySelectorAll("[role=option]:not(.quick-all) a")];
    show(
      links.map((link) => ({
        label: link.querySelector(".main-line").textContent,
        detail: link.querySelector(".kind")?.textContent,
        run: () => location.assign(link.getAttribute("href")),
      })),
    );
  } catch {
    // Commands are still offered if the server does not answer.
  }
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  asking?.abort();
  chosen = false;
  show([]);
  if (input.value.trim()) timer = setTimeout(look, WAIT);
});
input.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
  if (Object.hasOwn(steps, event.key) && options.length) {
    event.preventDefault();
    chosen = true;
    const step = steps[event.key];
    const wrapped = (at + step + options.length) % options.length;
    mark(Math.abs(step) === 1 ? wrapped : Math.min(Math.max(at + step, 0), options.length - 1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    if (options[at]) choose(options[at].entry);
  }
});
dialog.addEventListener("keydown", (event) => {
  if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  dialog.close();
});
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // outside of the palette
dialog.addEventListener("close", () => {
  clearTimeout(timer);
  asking?.abort();
});

for (const button of document.querySelectorAll("[data-palette]"))
  button.addEventListener("click", () => {
    document.getElementById("more").hidePopover();
    input.value = "";
    chosen = false;
    dialog.showModal();
    show([]);
  });
