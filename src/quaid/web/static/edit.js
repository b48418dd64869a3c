// The editor of pages, notebook files and nodes: preview rendered by the server, Ctrl S saves and stays, a text that is
// too long is reported before it is sent. drafts.js keeps the text and sends the form.

const WAIT = 250;
const LONGEST_SIGN = 9; // maximum bytes of one character in a form
const token = () => document.querySelector("meta[name=csrf]").content;

function edit(form) {
  const text = form.querySelector("textarea[name=text]");
  const preview = document.getElementById("preview");
  const tooLong = form.querySelector("[data-too-long]");
  const limit = Number(form.dataset.limit);
  let timer = 0;
  let asking = null;

  function fits() {
    // Measure the exact size only if the text might be too long, because that takes a while.
    const most = text.value.length * LONGEST_SIGN;
    const ends = text.value.split("\n").length * 3; // each is sent as two characters
    const size = most < limit ? 0 : new URLSearchParams(new FormData(form)).toString().length + ends;
    const megabytes = (count) => (count / 1048576).toFixed(1);
    tooLong.hidden = size <= limit;
    tooLong.textContent = tooLong.hidden
      ? ""
      : `This text is too long to save: it needs ${megabytes(size)} MB, the limit is ${megabytes(limit)} MB. Nothing was sent, and your text is still here. Move a part of it to another page.`;
    return tooLong.hidden;
  }

  async function show() {
    asking?.abort();
    if (!fits()) return;
    const mine = (asking = new AbortController());
    const body = new URLSearchParams(new FormData(form));
    body.delete("base");
    try {
      const answer = await fetch(form.dataset.preview, { method: "POST", headers: { "X-CSRF-Token": token() }, body, signal: mine.signal });
      if (!answer.ok) return;
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      const place = preview.scrollTop;
      preview.replaceChildren(...made.body.childNodes);
      preview.scrollTop = place;
    } catch {
      // The next keystroke tries again.
    }
  }

  const soon = () => {
    clearTimeout(timer);
    if (preview) timer = setTimeout(show, WAIT);
  };
  if (form.elements.title && form.elements.slug) nameIt(form.elements.title, form.elements.slug);
  if ("attach" in form.dataset) takeImages(form, text);
  text.addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    moveLine(text, event.key === "ArrowUp" ? -1 : 1);
  });
  form.addEventListener("input", soon);
  form.addEventListener("restored", soon);
  form.addEventListener("saved", soon);
  form.addEventListener(
    "submit",
    (event) => {
      if (fits()) return;
      event.preventDefault();
      tooLong.scrollIntoView({ block: "nearest" });
    },
    { capture: true }, // before drafts.js sends it
  );
}

// An image that is pasted, dropped or chosen is stored, and shown where the caret is.
const MAX_IMAGE = 5 * 1048576;

function insert(area, text) {
  area.focus();
  if (!document.execCommand("insertText", false, text)) area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
}

function takeImages(form, area) {
  const choose = form.querySelector("[data-add-image]");
  const state = form.querySelector("[data-state]");
  const say = (text) => {
    state.textContent = text;
    state.classList.add("bad");
  };

  async function take(file) {
    if (file.size > MAX_IMAGE) return say(`Image not added: it has ${(file.size / 1048576).toFixed(1)} MB, the limit is 5 MB.`);
    const page = form.dataset.attach || form.elements.slug?.value || "";
    try {
      const answer = await fetch(`/ui/attach?${new URLSearchParams({ page })}`, {
        method: "POST",
        headers: { "X-CSRF-Token": token(), "Content-Type": file.type || "application/octet-stream" },
        body: file,
      });
      const isKnown = answer.headers.get("content-type")?.startsWith("application/json");
      if (!isKnown) return say(`Image not added: the server answered ${answer.status}.`);
      const { markdown, message } = await answer.json();
      if (!answer.ok) return say(`Image not added: ${message}`);
      const name = file.name.replace(/\.\w+$/, "").replace(/[[\]\n]/g, " ");
      insert(area, markdown.replace("![]", `![${name === "image" ? "" : name}]`));
    } catch {
      say("Image not added: the server does not answer.");
    }
  }

  const images = (data) => [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));
  const takeAll = async (files) => {
    for (const file of files) await take(file);
  };
  for (const [name, source] of [["paste", "clipboardData"], ["drop", "dataTransfer"]]) {
    area.addEventListener(name, (event) => {
      const files = images(event[source]);
      if (!files.length) return;
      event.preventDefault();
      takeAll(files);
    });
  }
  area.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  choose.hidden = false;
  choose.querySelector("input").addEventListener("change", async (event) => {
    await takeAll([...event.target.files]);
    event.target.value = "";
  });
}

// Alt and an arrow key move the line with the caret, and what is indented below it, past the next one.
function moveLine(area, step) {
  const lines = area.value.split("\n");
  const depth = (line) => (line.trim() ? line.match(/^\s*/)[0].length : -1);
  const first = area.value.slice(0, area.selectionStart).split("\n").length - 1;
  const column = area.selectionStart - (lines.slice(0, first).join("\n").length + (first ? 1 : 0));
  const endOf = (at) => {
    let end = at + 1;
    while (end < lines.length && depth(lines[end]) > depth(lines[at])) end++;
    return end;
  };
  let from = first;
  let middle = endOf(first);
  let to = middle;
  if (step < 0) {
    middle = first;
    for (from = first - 1; from >= 0 && depth(lines[from]) > depth(lines[first]); ) from--;
    to = endOf(first);
  } else to = middle < lines.length ? endOf(middle) : middle;
  const other = step < 0 ? from : middle;
  if (from < 0 || other >= lines.length || depth(lines[first]) < 0 || depth(lines[other]) !== depth(lines[first])) return;
  const start = lines.slice(0, from).join("\n").length + (from ? 1 : 0);
  const text = [...lines.slice(middle, to), ...lines.slice(from, middle)].join("\n");
  area.setSelectionRange(start, start + text.length);
  if (!document.execCommand("insertText", false, text)) area.setRangeText(text);
  const before = step < 0 ? 0 : lines.slice(middle, to).join("\n").length + 1;
  area.setSelectionRange(start + before + column, start + before + column);
}

// The address of a new page follows its title until somebody edits it.
const SPELLED = { ß: "ss", æ: "ae", ø: "o", ł: "l", đ: "d", þ: "th", ð: "d", œ: "oe", ı: "i" };
const bare = (sign) => {
  if (SPELLED[sign.toLowerCase()]) return SPELLED[sign.toLowerCase()];
  const plain = sign.normalize("NFKD").replace(/\p{M}/gu, "");
  return /^[\x20-\x7e]+$/.test(plain) ? plain : sign;
};
const derived = (title) =>
  [...title.normalize("NFC")].map(bare).join("").toLowerCase().replace(/[^\p{L}\p{N}\p{M}]+/gu, "-").replace(/^-+|-+$/g, "");

function nameIt(title, slug) {
  const follows = () => !slug.value || slug.value === last;
  let last = derived(title.value);
  title.addEventListener("input", () => {
    const isFollowing = follows();
    last = derived(title.value);
    if (isFollowing) slug.value = last;
  });
}

const start = () => document.querySelectorAll("form[data-preview]").forEach(edit);
start();
document.addEventListener("replaced", start);
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
  const form = document.querySelector("form[data-preview]");
  if (!form) return;
  event.preventDefault();
  form.stays = true;
  form.requestSubmit();
});
