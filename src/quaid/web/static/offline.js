// Lists the texts that drafts.js has kept in this browser. They can be read and copied while the server is stopped.

const drafts = [];
try {
  for (let i = 0; i < localStorage.length; i++) {
    const key = localStorage.key(i);
    if (key.startsWith("draft:")) drafts.push(JSON.parse(localStorage.getItem(key)));
  }
} catch {
  // This browser stores nothing.
}
drafts.sort((one, other) => other.at - one.at);
const list = document.querySelector("[data-drafts]");
for (const { title, at, fields } of drafts) {
  const row = list.appendChild(document.createElement("li"));
  const details = row.appendChild(document.createElement("details"));
  const text = Object.values(fields ?? {}).filter((value) => typeof value === "string").sort((one, other) => other.length - one.length)[0] ?? "";
  details.appendChild(document.createElement("summary")).textContent = `${title}, ${new Date(at).toLocaleString()}`;
  const shown = details.appendChild(document.createElement("pre"));
  shown.className = "plain";
  shown.textContent = fields?.text ?? text;
}
document.querySelector("[data-kept]").hidden = !drafts.length;
document.querySelector("[data-again]").addEventListener("click", () => location.reload());
