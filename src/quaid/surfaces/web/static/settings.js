// What is done while one looks: progress of a rebuild, and the log. Events tell what happened, never a text.

const form = document.querySelector("[data-rebuild]");
const box = document.querySelector("[data-progress]");
const bar = box?.querySelector("progress");
const told = document.querySelector("[data-progress-text]");
const log = document.querySelector("[data-log]");
const MOST = 200;

function note(kind, facts) {
  const parts = Object.entries(facts).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  const line = document.createElement("li");
  line.textContent = `${new Date().toISOString().slice(11, 19)} ${kind} ${parts.join(", ")}`;
  log.prepend(line);
  while (log.children.length > MOST) log.lastChild.remove();
}

function progress({ done, total, what }) {
  if (!box) return;
  box.hidden = false;
  bar.max = total || 1;
  bar.value = done;
  const share = total ? ` (${Math.round((100 * done) / total)} %)` : "";
  told.textContent = `${what}: ${done.toLocaleString()} of ${total.toLocaleString()}${share}`;
}

const events = new EventSource("/api/events");
const read = (event) => {
  try {
    return JSON.parse(event.data);
  } catch {
    return {};
  }
};
events.addEventListener("hello", () => note("listening", {}));
events.addEventListener("progress", (event) => progress(read(event)));
events.addEventListener("embedding", (event) => progress({ ...read(event), what: "Passages with a vector" }));
for (const kind of ["finished", "changed", "files", "gap", "lost"]) {
  events.addEventListener(kind, (event) => note(kind, read(event)));
}
addEventListener("pagehide", () => events.close());

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  box.hidden = false;
  told.textContent = "Reading folders …";
  bar.removeAttribute("value");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok) throw new Error();
    bar.value = bar.max;
    told.textContent = "The index is up to date.";
    note("rebuilt", {});
  } catch {
    told.textContent = "It did not work. quaid status says more.";
  }
  button.disabled = false;
});
