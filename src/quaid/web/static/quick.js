// The search field at the side: a list of results while typing. Without this script it is a plain search form.

const WAIT = 120;
const SLOW = 200; // after this many milliseconds without an answer, pages with these words are shown meanwhile
const form = document.querySelector("form.quick");
const input = form.querySelector("input");
const list = form.querySelector("[role=listbox]");
let timer = 0;
let asking = null;
let at = -1;

Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id }).forEach(
  ([name, value]) => input.setAttribute(name, value),
);
const options = () => [...list.querySelectorAll("[role=option]")];

function show(isShown) {
  list.hidden = !isShown;
  input.setAttribute("aria-expanded", String(isShown));
  if (!isShown) mark(-1);
}

function mark(place) {
  at = place;
  options().forEach((each, i) => {
    each.id = `quick-${i}`;
    each.setAttribute("aria-selected", String(i === at));
    if (i === at) each.scrollIntoView({ block: "nearest" });
  });
  if (at < 0) input.removeAttribute("aria-activedescendant");
  else input.setAttribute("aria-activedescendant", `quick-${at}`);
}

async function ask(question, signal, more = {}) {
  const answer = await fetch(`/ui/search?${new URLSearchParams({ q: question, brief: "1", ...more })}`, { signal });
  const text = await answer.text();
  if (signal.aborted || !answer.ok || document.activeElement !== input || at >= 0) return;
  // The server has escaped every value; a parsed document runs nothing while it is put in place.
  const made = new DOMParser().parseFromString(`<ul>${text}</ul>`, "text/html");
  list.replaceChildren(...made.body.firstChild.children);
  mark(-1);
  show(true);
}

async function look() {
  asking?.abort();
  const question = input.value.trim();
  if (!question) return show(false);
  mark(-1); // a result that is chosen while the answer is on its way is not taken from under the cursor
  const mine = (asking = new AbortController());
  const hasty = new AbortController();
  mine.signal.addEventListener("abort", () => hasty.abort());
  const slow = setTimeout(() => ask(question, hasty.signal, { words: "1" }).catch(() => {}), SLOW);
  try {
    await ask(question, mine.signal);
  } catch (error) {
    if (error.name !== "AbortError") show(false); // Enter still opens the search page.
  } finally {
    clearTimeout(slow);
    hasty.abort();
  }
}

function move(step) {
  const count = options().length;
  if (list.hidden || !count) return look();
  mark(at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count + 1) % (count + 1) === count ? -1 : at + step);
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  asking?.abort();
  timer = setTimeout(look, WAIT);
});
input.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter" && at >= 0) {
    event.preventDefault();
    options()[at].querySelector("a").click();
  } else if (event.key === "Escape" && !list.hidden) {
    event.preventDefault();
    event.stopPropagation(); // the first one closes the list, the next one leaves the field
    show(false);
  }
});
input.addEventListener("focus", () => input.value.trim() && list.childElementCount && show(true));
form.addEventListener("submit", () => {
  clearTimeout(timer);
  asking?.abort();
  // The search page then shows the results by words first.
  const fast = Object.assign(document.createElement("input"), { type: "hidden", name: "fast", value: "1" });
  form.append(fast);
  setTimeout(() => fast.remove());
});
form.addEventListener("focusout", (event) => form.contains(event.relatedTarget) || show(false));
list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus until the click
