// Progress of forms that take long, and the log. Events contain no text of pages or questions.

const form = document.querySelector("[data-rebuild]");
let box = document.querySelector("[data-progress]");
let bar = box?.querySelector("progress");
let progressText = box?.querySelector("[data-progress-text]");
let operation; // if set, only its progress is shown
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

/** Show the progress of a form that takes long below it, until the answer replaces this page. */
for (const each of document.querySelectorAll("form[data-long]")) {
  each.addEventListener("submit", () => {
    operation = each.dataset.operation;
    box = document.createElement("div");
    box.className = "progress";
    bar = box.appendChild(document.createElement("progress"));
    progressText = box.appendChild(Object.assign(document.createElement("p"), { className: "muted", textContent: each.dataset.long }));
    progressText.setAttribute("aria-live", "polite");
    each.after(box);
    each.querySelector("button").disabled = true;
  });
}

function note(words) {
  if (!words || !log) return;
  const line = document.createElement("li");
  const at = document.createElement("time");
  at.dateTime = new Date().toISOString();
  at.textContent = at.dateTime.slice(11, 16);
  line.append(at, ` ${words}`);
  log.prepend(line);
  while (log.children.length > MOST) log.lastChild.remove();
}

function progress({ done, total, what, operation: name }) {
  if (!box || (operation && name !== operation)) return;
  box.hidden = false;
  bar.max = total || 1;
  bar.value = done;
  const share = total ? ` (${Math.round((100 * done) / total)} %)` : "";
  progressText.textContent = `${what}${operation ? "" : ":"} ${number(done)} of ${number(total)}${share}`;
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
events.addEventListener("embedding", (event) => progress({ ...read(event), what: "Passages found by meaning" }));
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

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      document.execCommand("copy"); // over plain HTTP on another host, there is no clipboard
    }
    button.textContent = "Copied";
  });
}

// The link has its address only here, so that no page contains a URL with a script. The policy of this page forbids to
// run it here; it runs when it is a bookmark.
const link = document.querySelector("[data-bookmarklet]");
if (link) link.href = `javascript:${link.dataset.bookmarklet}`;
link?.addEventListener("click", (event) => {
  event.preventDefault();
  link.textContent = "Drag this to your bookmarks";
});
