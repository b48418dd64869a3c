// Open files as tabs, stored for the browser tab. Each tab is a link.

const KEY = "notebook-tabs";
const MOST = 8;
const bar = document.querySelector("[data-tabs]");

function kept() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

function keep(paths) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(paths));
  } catch {
    // The tabs are then not remembered.
  }
}

const address = (path) => "/notebook/" + path.split("/").map(encodeURIComponent).join("/");

function draw(paths) {
  bar.replaceChildren(
    ...paths.map((path) => {
      const tab = document.createElement("span");
      const link = Object.assign(document.createElement("a"), { href: address(path), textContent: path.split("/").pop() });
      const close = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
      close.setAttribute("aria-label", `Close ${path}`);
      link.title = path;
      const isOpen = path === bar.dataset.path;
      tab.classList.toggle("is-open", isOpen);
      if (isOpen) link.setAttribute("aria-current", "page");
      close.addEventListener("click", () => {
        const left = kept().filter((each) => each !== path);
        keep(left);
        if (isOpen) location.href = left.length ? address(left.at(-1)) : "/notebook";
        else draw(left);
      });
      tab.append(link, close);
      return tab;
    }),
  );
}

if (bar) {
  const path = bar.dataset.path;
  const paths = kept();
  if (!paths.includes(path)) paths.push(path);
  keep(paths.slice(-MOST));
  draw(paths.slice(-MOST));
}
