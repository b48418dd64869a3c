// Preview rendered by the server; Ctrl S saves; leaving with unsaved text asks for confirmation; a text that is too long
// is reported before it is sent.

const WAIT = 250;
const form = document.querySelector("form[data-preview]");
const text = form.querySelector("textarea[name=text]");
const preview = document.getElementById("preview");
const tooLong = form.querySelector("[data-too-long]");
const LIMIT = Number(form.dataset.limit);
const LONGEST_SIGN = 9; // maximum bytes of one character in a form
const token = document.querySelector("meta[name=csrf]").content;
let timer = 0;
let asking = null;
let changed = "unsaved" in form.dataset; // after a failed save the text exists only here

function fits() {
  // Measure the exact size only if the text might be too long, because that takes a while.
  const most = text.value.length * LONGEST_SIGN;
  const ends = text.value.split("\n").length * 3; // each is sent as two characters
  const size = most < LIMIT ? 0 : new URLSearchParams(new FormData(form)).toString().length + ends;
  const megabytes = (count) => (count / 1048576).toFixed(1);
  tooLong.hidden = size <= LIMIT;
  tooLong.textContent = tooLong.hidden
    ? ""
    : `This text is too long to save: it needs ${megabytes(size)} MB, the limit is ${megabytes(LIMIT)} MB. Nothing was sent, and your text is still here. Move a part of it to another page.`;
  return tooLong.hidden;
}

async function show() {
  asking?.abort();
  if (!fits()) return;
  const mine = (asking = new AbortController());
  const body = new URLSearchParams(new FormData(form));
  body.delete("base");
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
    // The next keystroke tries again.
  }
}

const unsaved = form.querySelector("[data-unsaved-mark]");
const mark = () => unsaved && (unsaved.hidden = !changed);
mark();
text.addEventListener("input", () => {
  changed = true;
  mark();
  clearTimeout(timer);
  if (preview) timer = setTimeout(show, WAIT);
});
form.addEventListener("submit", (event) => {
  if (fits()) changed = false;
  else {
    event.preventDefault();
    tooLong.scrollIntoView({ block: "nearest" });
  }
});
addEventListener("beforeunload", (event) => changed && event.preventDefault());
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit();
});
