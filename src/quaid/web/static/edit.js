// The preview beside a text, made by the server; Ctrl S saves; leaving with unsaved text is asked about, and a text
// that is too long to be sent is told before it goes.

const WAIT = 250;
const form = document.querySelector("form[data-preview]");
const text = form.querySelector("textarea[name=text]");
const preview = document.getElementById("preview");
const tooLong = form.querySelector("[data-too-long]");
const LIMIT = Number(form.dataset.limit);
const LONGEST_SIGN = 9; // bytes that one sign may take in a form
const token = document.querySelector("meta[name=csrf]").content;
let timer = 0;
let asking = null;
let changed = "unsaved" in form.dataset; // what could not be saved is all there is of it

function fits() {
  // Counted only where it could be too much: a long text takes a while.
  const most = text.value.length * LONGEST_SIGN;
  const ends = text.value.split("\n").length * 3; // each is sent as two signs
  const size = most < LIMIT ? 0 : new URLSearchParams(new FormData(form)).toString().length + ends;
  const megabytes = (count) => (count / 1048576).toFixed(1);
  tooLong.hidden = size <= LIMIT;
  tooLong.textContent = tooLong.hidden
    ? ""
    : `This text is too long to be saved: ${megabytes(size)} MB as it is sent, and ${megabytes(LIMIT)} MB are the most. Nothing was sent, and all of it is still here. Move a part of it to another page.`;
  return tooLong.hidden;
}

async function show() {
  asking?.abort();
  if (!fits()) return;
  const mine = (asking = new AbortController());
  const body = new URLSearchParams(new FormData(form));
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
