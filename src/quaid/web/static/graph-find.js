// The field that finds a page in the graph: a list of titles while typing. Without a match, the form asks the server.

const MOST = 8;

export function findField(form, titles, onChoose) {
  const input = form.querySelector("input");
  const list = form.querySelector("[role=listbox]");
  const names = titles.map((title) => title.toLowerCase());
  let places = [];
  let at = 0;
  const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);

  function mark(place) {
    at = place;
    [...list.children].forEach((each, i) => each.setAttribute("aria-selected", String(i === at)));
    if (places.length) input.setAttribute("aria-activedescendant", `find-${at}`);
    else input.removeAttribute("aria-activedescendant");
  }

  function show(found) {
    places = found;
    list.hidden = !places.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    list.replaceChildren(...places.map((place, i) => Object.assign(document.createElement("li"), { role: "option", id: `find-${i}`, textContent: titles[place] })));
    mark(0);
  }

  /** The places of matching titles: those that begin with the words first, then words inside; nodes with many links first. */
  function matches(text) {
    if (!text) return [];
    const ranked = [[], [], []];
    for (let i = 0; i < names.length && ranked[0].length < MOST; i++) {
      const found = names[i].indexOf(text);
      if (found >= 0) ranked[found === 0 ? 0 : names[i][found - 1] === " " ? 1 : 2].push(i);
    }
    return ranked.flat().slice(0, MOST);
  }

  function choose(i) {
    input.value = titles[places[i]];
    const place = places[i];
    show([]);
    onChoose(place);
  }

  input.addEventListener("input", () => show(matches(input.value.trim().toLowerCase())));
  input.addEventListener("blur", () => setTimeout(() => show([]), 150));
  input.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way && places.length) mark((at + way + places.length) % places.length);
    else if (event.key === "Enter" && places.length) choose(at);
    else if (event.key === "Escape" && places.length) show([]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("pointerdown", (event) => {
    const place = [...list.children].indexOf(event.target.closest("li"));
    event.preventDefault();
    if (place >= 0) choose(place);
  });
}
