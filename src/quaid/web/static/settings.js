// Progress of a rebuild, and the log. Events contain no text of pages or questions.

const form = document.querySelector("[data-rebuild]");
const box = document.querySelector("[data-progress]");
const bar = box?.querySelector("progress");
const progressText = document.querySelector("[data-progress-text]");
const log = document.querySelector("[data-log]");
const MOST = 200;

const number = (count) => (count ?? 0).toLocaleString();
const several = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

function folder({ collection, event, problem, ...facts }) {
  const name = collection || "A folder";
  if (problem) return `${name}: ${problem}`;
  if (event === "began") return `${name} is watched`;
  if (event !== "synced") return "";
  const kinds = ["new", "changed", "moved", "removed"].filter((kind) => facts[kind]);
  const words = kinds.map((kind) => `${number(facts[kind])} ${kind}`).join(", ");
  return `${name} was synced: ${words || "no changes"}`;
}

// The same wording as in settings.py, which describes earlier events.
const WORDS = {
  finished: ({ operation, succeeded, seconds }) => {
    const name = operation.replace(/[_-]/g, " ").replace(/^./, (letter) => letter.toUpperCase());
    return `${name} ${succeeded ? "took" : "failed after"} ${seconds} s`;
  },
  changed: ({ pages }) => `Pages changed: there are ${number(pages)} now`,
  gap: ({ open }) => `A question found no answer: ${several(open, "question is", "questions are")} open`,
  lost: ({ events }) => `${several(events, "event", "events")} were skipped because they came too fast`,
  files: folder,
};

function note(words) {
  if (!words) return;
  const line = document.createElement("li");
  const at = document.createElement("time");
  at.dateTime = new Date().toISOString();
  at.textContent = at.dateTime.slice(11, 16);
  line.append(at, ` ${words}`);
  log.prepend(line);
  while (log.children.length > MOST) log.lastChild.remove();
}

function progress({ done, total, what }) {
  if (!box) return;
  box.hidden = false;
  bar.max = total || 1;
  bar.value = done;
  const share = total ? ` (${Math.round((100 * done) / total)} %)` : "";
  progressText.textContent = `${what}: ${number(done)} of ${number(total)}${share}`;
}

const events = new EventSource("/api/events");
const read = (event) => {
  try {
    return JSON.parse(event.data);
  } catch {
    return {};
  }
};
events.addEventListener("progress", (event) => progress(read(event)));
events.addEventListener("embedding", (event) => progress({ ...read(event), what: "Passages with a vector" }));
for (const kind of Object.keys(WORDS)) {
  events.addEventListener(kind, (event) => note(WORDS[kind](read(event))));
}
addEventListener("pagehide", () => events.close());

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  box.hidden = false;
  progressText.textContent = "Rebuilding the index …";
  bar.removeAttribute("value");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const words = page.querySelector(".flash, .error .lede")?.textContent.trim();
    progressText.textContent = words || (answer.ok ? "The index is rebuilt." : "The rebuild failed.");
    if (answer.ok) {
      bar.value = bar.max;
      note("The index was rebuilt");
    } else box.classList.add("failed");
  } catch {
    progressText.textContent = "The server did not answer. Reload this page to see the current state.";
  }
  button.disabled = false;
});
