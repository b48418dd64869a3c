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

const KEYS = {
  "/": search,
  j: () => move(1),
  k: () => move(-1),
  e: () => document.querySelector("[data-key=e]")?.click(),
  g: () => (document.querySelector("[data-key=g]") ?? document.querySelector("nav a[href='/graph']"))?.click(),
  "?": () => help.showModal(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && isTyping(document.activeElement)) {
    if (document.activeElement.type === "search") event.preventDefault(); // browsers would clear the field but not the results
    return document.activeElement.blur();
  }
  if (isTyping(event.target) || help.open || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
