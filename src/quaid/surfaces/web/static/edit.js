// The preview beside a text, made by the server; Ctrl S saves; leaving with unsaved text is asked about.

const WAIT = 250;
const form = document.querySelector("form[data-preview]");
const text = form.querySelector("textarea[name=text]");
const preview = document.getElementById("preview");
const token = document.querySelector("meta[name=csrf]").content;
let timer = 0;
let asking = null;
let changed = false;

async function show() {
  asking?.abort();
  const mine = (asking = new AbortController());
  const body = new URLSearchParams({ text: text.value, slug: form.elements.slug.value });
  try {
    const answer = await fetch(form.dataset.preview, {
      method: "POST",
      headers: { "X-CSRF-Token": token },
      body,
      signal: mine.signal,
    });
    if (!answer.ok) return;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    const place = preview.scrollTop;
    preview.replaceChildren(...made.body.childNodes);
    preview.scrollTop = place;
  } catch {
    // The next keystroke asks again.
  }
}

text.addEventListener("input", () => {
  changed = true;
  clearTimeout(timer);
  if (preview) timer = setTimeout(show, WAIT);
});
form.addEventListener("submit", () => (changed = false));
addEventListener("beforeunload", (event) => changed && event.preventDefault());
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit();
});
