// Typing [[ in an editor offers pages to link to. Arrow keys choose, Enter or Tab inserts, Esc closes.

const WAIT = 100;
const OPENED = /\[\[([^[\]\n|#]{0,80})$/;
const COPIED = "font line-height letter-spacing tab-size white-space overflow-wrap word-break padding border box-sizing width".split(" ");

// Where the caret is, from the top left of the text area: a copy of the text is laid out as the text area does it.
function caret(area) {
  const style = getComputedStyle(area);
  const copy = document.createElement("div");
  for (const name of COPIED) copy.style.setProperty(name, style.getPropertyValue(name));
  Object.assign(copy.style, { position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap", overflowWrap: "break-word", width: `${area.clientWidth}px` });
  const end = document.createElement("span");
  end.textContent = "|";
  copy.append(area.value.slice(0, area.selectionStart), end);
  document.body.append(copy);
  const at = { left: end.offsetLeft, top: end.offsetTop + end.offsetHeight - area.scrollTop };
  copy.remove();
  return at;
}

function complete(form) {
  const area = form.querySelector("textarea[name=text]");
  const list = document.createElement("ul");
  Object.assign(list, { className: "offers", id: "link-offers", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Pages to link to");
  area.after(list);
  let offers = [];
  let at = 0;
  let timer = 0;
  let asking = null;

  function close() {
    clearTimeout(timer);
    asking?.abort();
    if (list.hidden) return;
    list.hidden = true;
    for (const name of ["role", "aria-expanded", "aria-controls", "aria-autocomplete", "aria-activedescendant"]) area.removeAttribute(name);
  }

  function mark(place) {
    at = (place + offers.length) % offers.length;
    [...list.children].forEach((each, i) => {
      each.setAttribute("aria-selected", String(i === at));
      if (i === at) each.scrollIntoView({ block: "nearest" });
    });
    area.setAttribute("aria-activedescendant", `offer-${at}`);
  }

  function open() {
    list.replaceChildren(
      ...offers.map((each, i) => {
        const option = Object.assign(document.createElement("li"), { id: `offer-${i}`, textContent: each.title });
        option.setAttribute("role", "option");
        option.append(Object.assign(document.createElement("small"), { textContent: [each.address, each.type].filter(Boolean).join(" · ") }));
        option.addEventListener("mousedown", (event) => {
          event.preventDefault(); // the text keeps the focus
          insert(i);
        });
        return option;
      }),
    );
    // A text area is a combobox only while it offers something.
    Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": list.id, "aria-autocomplete": "list" }).forEach(([name, value]) => area.setAttribute(name, value));
    list.hidden = false;
    const place = caret(area);
    list.style.top = `${area.offsetTop + Math.min(Math.max(place.top, 0), area.clientHeight)}px`;
    list.style.left = `${Math.max(0, Math.min(place.left, area.offsetWidth - list.offsetWidth))}px`;
    mark(0);
  }

  function insert(place) {
    const typed = OPENED.exec(area.value.slice(0, area.selectionStart));
    if (!typed) return close();
    const end = area.selectionStart + (area.value.startsWith("]]", area.selectionStart) ? 2 : 0);
    area.setSelectionRange(typed.index, end);
    // Unlike setRangeText, this can be undone with Ctrl Z.
    if (!document.execCommand("insertText", false, offers[place].insert)) {
      area.setRangeText(offers[place].insert, typed.index, end, "end");
      area.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
    close();
  }

  async function look() {
    const typed = OPENED.exec(area.value.slice(0, area.selectionStart));
    if (!typed) return close();
    asking?.abort();
    const mine = (asking = new AbortController());
    try {
      const answer = await fetch(`${form.dataset.links}?${new URLSearchParams({ q: typed[1] })}`, { signal: mine.signal });
      offers = answer.ok ? await answer.json() : [];
      if (offers.length && document.activeElement === area) open();
      else close();
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  }

  area.addEventListener("input", () => {
    clearTimeout(timer);
    if (OPENED.test(area.value.slice(0, area.selectionStart))) timer = setTimeout(look, WAIT);
    else close();
  });
  area.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") mark(at + (event.key === "ArrowDown" ? 1 : -1));
    else if (event.key === "Enter" || event.key === "Tab") insert(at);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation(); // the first Esc closes the list, the next one leaves the field
  });
  area.addEventListener("blur", close);
}

const start = () => document.querySelectorAll("form[data-links]").forEach(complete);
start();
document.addEventListener("replaced", start);
