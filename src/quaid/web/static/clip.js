// The window of the clipper. It shows the page that the bookmarklet passed in the fragment, as text, and saves it when
// the user presses the button: any site can open this window, so nothing is saved by itself. The token is kept by the
// browser for this origin, so that the pages in which the bookmarklet runs never see it.

const KEY = "quaid-clip-token";
const part = (name) => document.querySelector(`[data-${name}]`);
const [kind, value] = [location.hash.slice(1, 6), location.hash.slice(6)];
history.replaceState(null, "", location.pathname);

function tell(words, isBad = false) {
  part("result").textContent = words;
  part("result").classList.toggle("trouble", isBad);
}

function show(name) {
  for (const section of document.querySelectorAll("[data-step]")) section.hidden = section.dataset.step !== name;
}

function readClip() {
  try {
    const clip = JSON.parse(decodeURIComponent(value));
    const texts = ["source", "title", "selection", "content"].map((name) => [name, String(clip[name] ?? "")]);
    return { ...Object.fromEntries(texts), cut: clip.cut === true };
  } catch {
    return null;
  }
}

async function save({ cut, ...clip }) {
  const answer = await fetch("/api/clip", {
    method: "POST",
    headers: { authorization: `Bearer ${localStorage.getItem(KEY)}`, "content-type": "application/json" },
    body: JSON.stringify({ ...clip, title: part("title").value }),
  });
  const record = await answer.json();
  if (answer.status === 401) localStorage.removeItem(KEY);
  if (!answer.ok) throw new Error(record.error.message);
  if (record.proposal) return "Proposed. It is saved when you accept it under Review.";
  return record.written ? `Saved as ${record.source_page}.` : `Nothing to do: ${record.source_page} has this already.`;
}

function offer(clip) {
  const page = new DOMParser().parseFromString(clip.content, "text/html"); // runs no script and loads nothing
  const text = page.body.textContent.replace(/\s+/g, " ").trim();
  part("title").value = clip.title;
  part("source").textContent = clip.source;
  part("selection").textContent = clip.selection;
  part("selection").hidden = !clip.selection;
  part("text").textContent = text ? `${text.slice(0, 600)}${text.length > 600 ? " …" : ""}` : "Only the address is saved: the page has no text.";
  part("cut").hidden = !clip.cut;
  show("clip");
  part("save").addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = part("save").querySelector("button");
    button.disabled = true;
    tell("Saving …");
    try {
      tell(await save(clip));
      setTimeout(() => close(), 2500);
    } catch (error) {
      tell(error instanceof TypeError ? "Quaid did not answer. Is it running?" : error.message, true);
      button.disabled = false;
    }
  });
}

function setUp() {
  show("setup");
  part("setup").addEventListener("submit", (event) => {
    event.preventDefault();
    localStorage.setItem(KEY, value);
    show("ready");
  });
}

const clip = kind === "clip=" ? readClip() : null;
if (kind === "auth=" && /^qd_[\w-]{20,100}$/.test(value)) setUp();
else if (clip && localStorage.getItem(KEY)) offer(clip);
else show("missing");
