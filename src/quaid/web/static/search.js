// Search as you type: a short delay, one request at a time; outdated answers are discarded.
// A page with the results by words only (`fast` in its address) gets all results as soon as the server has them.

const WAIT = 120;
const form = document.querySelector("form[data-live]");
const results = document.getElementById("results");
let timer = 0;
let asking = null;

async function look() {
  const values = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  asking?.abort();
  const mine = (asking = new AbortController());
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${form.dataset.live}?${values}`, { signal: mine.signal });
    const text = await answer.text();
    if (mine.signal.aborted || !answer.ok) return;
    // The server has escaped every value; a parsed document runs nothing while it is put in place.
    const made = new DOMParser().parseFromString(text, "text/html");
    results.replaceChildren(...made.body.childNodes);
    history.replaceState(null, "", values.size ? `/search?${values}` : "/search"); // so that it survives a reload
    document.title = values.get("q") ? `${values.get("q")} · Quaid` : "Search · Quaid";
  } catch (error) {
    if (error.name !== "AbortError") results.textContent = "The server does not answer. Is quaid web still running?";
  } finally {
    if (asking === mine) results.setAttribute("aria-busy", "false");
  }
}

let isUsed = false;
for (const name of ["focusin", "pointerdown", "wheel", "touchmove"]) results.addEventListener(name, () => (isUsed = true), { passive: true });
addEventListener("scroll", () => (isUsed = true), { passive: true });

// Results that are being read do not change by themselves: then a button shows the fuller ones.
function complete(nodes) {
  const put = () => {
    results.replaceChildren(...nodes);
    results.setAttribute("aria-busy", "false");
  };
  if (!isUsed) return put();
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button small fuller", textContent: "Show all results" });
  button.addEventListener("click", () => {
    put();
    results.querySelector("a")?.focus({ preventScroll: true });
  });
  results.setAttribute("aria-busy", "false");
  form.after(button);
  addEventListener("input", () => button.remove(), { once: true });
}

async function loadRest(url) {
  const here = new URL(location.href);
  here.searchParams.delete("fast");
  history.replaceState(null, "", here); // a reload shows all results at once
  const mine = (asking = new AbortController());
  try {
    const answer = await fetch(url, { signal: mine.signal });
    const text = await answer.text();
    if (mine.signal.aborted) return;
    if (answer.ok) return complete([...new DOMParser().parseFromString(text, "text/html").body.childNodes]);
  } catch {
    // The results by words stay.
  }
  if (asking === mine) results.setAttribute("aria-busy", "false");
}
if (results.dataset.rest) loadRest(results.dataset.rest);

// Only if the owner has set log_opened: which page was opened from the results of which question.
results.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-item]");
  const question = new FormData(form).get("q").trim();
  if (!results.dataset.opened || !link?.pathname.startsWith("/page/") || !question) return;
  const csrf = document.querySelector("meta[name=csrf]").content;
  const body = new URLSearchParams({ q: question, path: link.pathname, csrf_token: csrf });
  fetch(results.dataset.opened, { method: "POST", body, keepalive: true }).catch(() => {});
});

form.addEventListener("submit", () => {
  clearTimeout(timer);
  const fast = Object.assign(document.createElement("input"), { type: "hidden", name: "fast", value: "1" });
  form.append(fast);
  setTimeout(() => fast.remove());
});
form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(look, WAIT);
});
