// Search as you type: a short delay, one request at a time; outdated answers are discarded.

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

form.addEventListener("submit", () => clearTimeout(timer));
form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(look, WAIT);
});
