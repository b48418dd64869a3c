// Keeps what is typed in a form in this browser until it is saved, and saves forms without leaving the page.
// It serves every POST form with a text area, and forms with data-draft. Without this script they are plain forms.

const MEMORY = document.querySelector("meta[name=memory]")?.content ?? "";
const ROOM = "draft:";
const MINE = `${ROOM}${MEMORY}:`;
const KEPT_DAYS = 30;
const PAUSE = 300; // milliseconds after the last key before the text is stored
const RETRY = 3000;
const PATIENCE = 30000;
const TAKEOVER = 700; // a tab that was closed or reloaded releases its draft within this time
const NEVER_KEPT = ["csrf_token", "id", "path"];

const token = () => document.querySelector("meta[name=csrf]").content;
const keyOf = (form) =>
  form.dataset.draft || new URL(form.getAttribute("action") || location.href, location.href).pathname + (form.elements.id ? `#${form.elements.id.value}` : "");

function clock(at) {
  const then = new Date(at);
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  if (then.toDateString() === new Date().toDateString()) return time;
  return `${then.toLocaleDateString([], { day: "numeric", month: "long" })}, ${time}`;
}

function element(name, values = {}, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

// The store

function stored(prefix = MINE) {
  const found = [];
  try {
    for (let i = localStorage.length - 1; i >= 0; i--) {
      const key = localStorage.key(i);
      if (!key.startsWith(prefix)) continue;
      try {
        found.push({ ...JSON.parse(localStorage.getItem(key)), key });
      } catch {
        localStorage.removeItem(key);
      }
    }
  } catch {
    return []; // this browser stores nothing
  }
  return found.sort((one, other) => other.at - one.at);
}

function keep(key, draft) {
  for (const fields of [draft.fields, { ...draft.fields, base: "" }]) {
    try {
      localStorage.setItem(key, JSON.stringify({ ...draft, fields }));
      return true;
    } catch {
      // Full: try again without the text that the edit started from.
    }
  }
  return false;
}

function forget(key) {
  try {
    localStorage.removeItem(key);
  } catch {
    // Nothing is stored then.
  }
}

for (const draft of stored(ROOM)) if (!(draft.at > Date.now() - KEPT_DAYS * 86400000)) forget(draft.key);

// A page holds a lock for the draft that it edits, so that another tab does not take the text.
async function take(key, patience = TAKEOVER) {
  if (!navigator.locks) return true;
  return new Promise((done) => {
    navigator.locks
      .request(key, { signal: AbortSignal.timeout(patience) }, () => {
        done(true);
        return new Promise(() => {});
      })
      .catch(() => done(false));
  });
}

async function heldKeys() {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  return new Set(held.map((each) => each.name));
}

// One form

function fieldsOf(form) {
  const fields = {};
  for (const each of form.elements) {
    const isText = each instanceof HTMLTextAreaElement || each instanceof HTMLInputElement || each instanceof HTMLSelectElement;
    if (!isText || !each.name || each.readOnly || each.type === "submit" || NEVER_KEPT.includes(each.name)) continue;
    if (each.type === "radio") {
      if (each.checked) fields[each.name] = each.value;
    } else fields[each.name] = each.type === "checkbox" ? each.checked : each.value;
  }
  return fields;
}

function fill(form, fields) {
  for (const [name, value] of Object.entries(fields)) {
    const field = form.elements.namedItem(name);
    if (!field) {
      if (name === "base") form.append(element("input", { type: "hidden", name, value }));
    } else if (field.type === "checkbox") field.checked = value;
    else field.value = value;
  }
}

const typed = (fields) => JSON.stringify({ ...fields, version: "", base: "" });

class Draft {
  constructor(form, id, isUnsaved) {
    this.form = form;
    this.path = keyOf(form);
    this.id = id;
    this.first = fieldsOf(form);
    this.isUnsaved = isUnsaved || "unsaved" in form.dataset;
    this.state = form.querySelector("[data-state]");
    if (!this.state) form.append((this.state = element("p", { className: "save-state" })));
    this.state.setAttribute("role", "status");
    this.timer = this.waiting = 0;
    form.autocomplete = "off"; // the browser does not restore fields by itself: their version would be another one
    form.addEventListener("input", () => this.typing());
    form.addEventListener("change", () => this.typing());
    form.addEventListener("submit", (event) => this.submitted(event));
  }

  get key() {
    return `${MINE}${this.path}:${this.form.elements.version?.value ?? ""}:${this.id}`;
  }

  get isChanged() {
    return this.isUnsaved || typed(fieldsOf(this.form)) !== typed(this.first);
  }

  async restore() {
    const drafts = stored().filter((each) => each.path === this.path);
    let isElsewhere = false;
    for (const draft of drafts) {
      if (typed(draft.fields) === typed(this.first)) {
        if (!(await heldKeys()).has(lockOf(draft.id))) forget(draft.key); // it was saved in the end
        continue;
      }
      if (!(await take(lockOf(draft.id)))) {
        isElsewhere = true;
        continue;
      }
      if (this.isChanged) break; // the typing was faster; the draft stays for the next visit
      this.id = draft.id;
      this.isMoved = draft.fields.version !== undefined && draft.fields.version !== this.first.version;
      fill(this.form, draft.fields);
      this.isUnsaved = true;
      this.form.closest("details")?.setAttribute("open", "");
      this.announce(draft, drafts.length - 1);
      this.form.dispatchEvent(new Event("restored"));
      return this.show("kept");
    }
    if (isElsewhere) this.form.before(element("p", { className: "restored" }, "This text is also being edited in another tab. Whatever you save here is merged with it, or both are shown."));
    take(lockOf(this.id), PATIENCE);
  }

  announce(draft, others) {
    const discard = element("button", { type: "button", className: "button small", textContent: "Discard" });
    const words = [`Your unsaved text from ${clock(draft.at)} was restored.`];
    if (this.isMoved) words.push("The saved text has changed since then: saving merges both, or shows both.");
    if (others > 0) words.push(others > 1 ? `${others} more are kept.` : "One more is kept.");
    const notice = element("p", { className: "restored", role: "status" }, words.join(" "), " ", discard);
    notice.dataset.restored = "";
    discard.addEventListener("click", () => {
      this.drop();
      fill(this.form, this.first);
      this.isUnsaved = false;
      notice.remove();
      this.show("");
      this.form.dispatchEvent(new Event("restored"));
      this.form.querySelector("textarea, input:not([type=hidden])")?.focus();
    });
    this.notice = notice;
    this.form.before(notice);
  }

  typing() {
    clearTimeout(this.timer);
    if (!this.waiting && !this.isSending) this.show(this.isChanged ? "kept" : "");
    this.timer = setTimeout(() => this.store(), PAUSE);
  }

  store() {
    clearTimeout(this.timer);
    if (!this.isChanged) return this.drop();
    const key = this.key;
    if (this.last && this.last !== key) forget(this.last);
    this.last = key;
    const title = this.form.dataset.title || document.title.replace(/ · Quaid$/, "");
    const url = location.pathname + location.search;
    this.isKept = keep(key, { path: this.path, url, title, at: Date.now(), id: this.id, fields: fieldsOf(this.form) });
    if (!this.isKept && !this.waiting) this.show("full");
  }

  drop() {
    clearTimeout(this.timer);
    for (const each of stored()) if (each.path === this.path && each.id === this.id) forget(each.key);
    this.last = "";
  }

  // What the line below the form says

  show(name, more = "") {
    const texts = {
      "": "",
      kept: "Not saved yet. Your text is kept in this browser.",
      full: "Not saved yet. This browser cannot keep a copy: save before you leave.",
      saving: "Saving …",
      saved: `Saved at ${clock(Date.now())}.`,
      gone: "Not saved: the server does not answer. Your text is kept in this browser.",
      other: "Not saved: another memory answers at this address. Your text is kept in this browser.",
      login: "Not saved: you are no longer logged in. Your text is kept in this browser.",
      refused: "Not saved:",
    };
    this.form.dataset.saving = name;
    this.state.replaceChildren([texts[name], more].filter(Boolean).join(" "));
    this.state.classList.toggle("bad", ["gone", "other", "login", "refused", "full"].includes(name));
    if (name === "login") {
      const next = encodeURIComponent(location.pathname + location.search);
      this.state.append(" ", element("a", { href: `/login?next=${next}`, textContent: "Log in" }), ", and it is saved here.");
    }
  }

  // Saving

  submitted(event) {
    if (event.defaultPrevented) return void (this.form.stays = false);
    event.preventDefault();
    this.save({ submitter: event.submitter, stay: Boolean(this.form.stays) });
  }

  async save(how) {
    if (this.isSending) return void (this.again = how);
    this.isSending = true;
    this.again = null;
    this.store();
    this.show("saving");
    try {
      await this.send(how);
    } catch {
      this.wait(how, "gone");
    } finally {
      this.isSending = false;
      this.form.stays = false;
    }
    if (this.again) this.save(this.again);
  }

  async post(how) {
    const sent = fieldsOf(this.form);
    const body = new URLSearchParams(new FormData(this.form, how.submitter ?? undefined));
    body.set("csrf_token", token());
    const answer = await fetch(how.submitter?.getAttribute("formaction") || this.form.getAttribute("action") || location.href, {
      method: "POST",
      headers: { "X-CSRF-Token": token(), "X-Quaid-Save": how.stay ? "stay" : "leave" },
      body,
      signal: AbortSignal.timeout(PATIENCE),
    });
    return { answer, sent, text: await answer.text() };
  }

  async send(how) {
    let { answer, sent, text } = await this.post(how);
    if (answer.status === 401 || answer.status === 403) {
      // The session may be a new one: get its token and try once more.
      if (!(await renewToken())) return this.wait(how, "login");
      ({ answer, sent, text } = await this.post(how));
      if (answer.status === 401) return this.wait(how, "login");
    }
    this.stopWaiting();
    if (answer.headers.get("content-type")?.startsWith("application/json") && answer.ok) return this.done(JSON.parse(text), sent, how);
    this.refuse(answer, text);
  }

  done(saved, sent, how) {
    this.notice?.remove();
    if (how.stay && saved.version !== undefined) {
      this.isUnsaved = false;
      this.drop();
      this.adopt(saved, sent);
      this.show(this.isChanged ? "kept" : "saved", saved.message === "Saved." ? "" : saved.message);
      this.store();
      return this.form.dispatchEvent(new CustomEvent("saved", { detail: saved }));
    }
    this.isUnsaved = false;
    this.drop();
    this.first = fieldsOf(this.form);
    const to = new URL(saved.location, location.href);
    if (to.pathname + to.search !== location.pathname + location.search) return location.assign(to);
    history.replaceState(null, "", to);
    location.reload();
  }

  // After a save that stays: go on from what is stored now.
  adopt(saved, sent) {
    const isSame = saved.text === null || saved.text === undefined;
    const isTyping = typed(fieldsOf(this.form)) !== typed(sent);
    if (isSame) fill(this.form, { version: String(saved.version), base: saved.base ?? sent.text });
    else if (!isTyping) fill(this.form, { version: String(saved.version), base: saved.text, text: saved.text });
    else fill(this.form, { base: sent.text }); // the version stays the old one: the next save merges again
    this.first = isTyping ? { ...sent, version: this.form.elements.version?.value } : fieldsOf(this.form);
  }

  // The server said no. If its page has the form again, with the problem above it, show that page.
  refuse(answer, text) {
    const made = new DOMParser().parseFromString(text, "text/html");
    const main = made.querySelector("main");
    const same = [...(main?.querySelectorAll("form") ?? [])].some((each) => each.method === "post" && keyOf(each) === this.path);
    if (!same) {
      const why = made.querySelector("main .lede, main .card p:not(.code), main p")?.textContent.trim();
      return this.show("refused", why || `the server answered ${answer.status}.`);
    }
    this.drop();
    document.querySelector("main").replaceWith(document.adoptNode(main));
    start({ [this.path]: this.id });
    document.dispatchEvent(new Event("replaced"));
    const alert = main.querySelector("[role=alert]:not([hidden])");
    alert?.setAttribute("tabindex", "-1");
    alert?.focus();
  }

  // Try again by itself only if the form names a version: then nothing can be saved twice or over a newer text.
  wait(how, why) {
    this.store();
    this.show(why, why === "gone" && this.form.elements.version ? "Trying again." : "");
    if (!this.form.elements.version || this.waiting) return;
    const look = async () => {
      if (this.isSending) return;
      const health = await fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(RETRY) }).catch(() => null);
      if (!health?.ok) return;
      if (!(await health.text()).includes(MEMORY)) return this.show("other");
      if (this.form.dataset.saving === "login" && !(await renewToken())) return;
      this.save(how);
    };
    this.waiting = setInterval(look, RETRY);
    this.look = look;
    for (const name of ["online", "focus"]) addEventListener(name, look);
  }

  stopWaiting() {
    clearInterval(this.waiting);
    this.waiting = 0;
    for (const name of ["online", "focus"]) removeEventListener(name, this.look);
  }
}

const lockOf = (id) => `${MINE}${id}`;

async function renewToken() {
  const answer = await fetch("/search", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) }).catch(() => null);
  if (!answer?.ok) return false;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = made.querySelector("meta[name=csrf]")?.content;
  if (!fresh || made.querySelector("meta[name=memory]")?.content !== MEMORY) return false;
  document.querySelector("meta[name=csrf]").content = fresh;
  for (const each of document.querySelectorAll("input[name=csrf_token]")) each.value = fresh;
  return true;
}

// The whole page

let drafts = [];



function start(ids = {}) {
  for (const each of drafts) {
    each.stopWaiting();
    clearTimeout(each.timer);
  }
  const forms = [...document.querySelectorAll("form[method=post]")].filter((form) => "draft" in form.dataset || form.querySelector("textarea[name]"));
  drafts = forms.map((form) => new Draft(form, ids[keyOf(form)] ?? newId(), keyOf(form) in ids));
  for (const each of drafts) {
    if (each.isUnsaved) {
      each.store();
      each.show("kept");
      take(lockOf(each.id), PATIENCE);
    } else each.restore();
  }
  list();
}

const newId = () => crypto.getRandomValues(new Uint32Array(2)).join("-");

// Texts that were left on other pages: shown on the first page and on the page that they belong to.
async function list() {
  document.querySelector("[data-kept]")?.remove();
  const here = location.pathname;
  const open = new Set(drafts.map((each) => each.path));
  const held = await heldKeys();
  const others = stored().filter((each) => !open.has(each.path) && !held.has(lockOf(each.id)) && (here === "/" || each.url.split("?")[0].startsWith(`${here}/`) || each.url.split("?")[0] === here));
  if (!others.length) return;
  const rows = others.map((each) => {
    const discard = element("button", { type: "button", className: "button small", textContent: "Discard" });
    discard.setAttribute("aria-label", `Discard the unsaved text of ${each.title}`);
    const row = element("li", {}, element("a", { href: each.url, textContent: each.title }), ` from ${clock(each.at)} `, discard);
    discard.addEventListener("click", () => {
      forget(each.key);
      row.remove();
      list();
    });
    return row;
  });
  const box = element("section", { className: "restored" }, element("h2", { textContent: "Not saved yet, kept in this browser" }), element("ul", {}, ...rows));
  box.dataset.kept = "";
  document.querySelector("main").prepend(box);
}

const storeAll = () => drafts.forEach((each) => !each.isSending && each.store());
addEventListener("pagehide", storeAll);
document.addEventListener("visibilitychange", () => document.hidden && storeAll());
addEventListener("pageshow", (event) => event.persisted && !drafts.some((each) => each.isChanged) && location.reload());
addEventListener("beforeunload", (event) => {
  storeAll();
  if (drafts.some((each) => each.isChanged && each.isKept === false)) event.preventDefault();
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[action='/logout'], [data-logout]")) return;
  storeAll();
  const kept = stored();
  if (!kept.length) return;
  const names = kept.slice(0, 5).map((each) => `${each.title} (${clock(each.at)})`).join("\n");
  const count = kept.length === 1 ? "one unsaved text" : `${kept.length} unsaved texts`;
  if (!confirm(`This browser keeps ${count}:\n${names}\n\nLogging out deletes ${kept.length === 1 ? "it" : "them"}. Log out?`)) return event.preventDefault();
  drafts.forEach((each) => each.drop());
  drafts = [];
  kept.forEach((each) => forget(each.key));
});
start();
