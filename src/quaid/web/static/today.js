// Forms that act in place: the parts of the page are replaced by their new state, without a reload.
// Enter in the box adds the note; Shift Enter starts a new line.

const box = document.getElementById("jot");
box?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  box.form.requestSubmit();
});

function place(form, made) {
  const part = form.closest("[data-part]") ?? document.getElementById("due");
  for (const old of document.querySelectorAll("[data-part]")) {
    const isOpen = old.querySelector("details")?.open;
    const fresh = made.getElementById(old.id);
    if (!fresh) continue;
    if (isOpen) fresh.querySelector("details")?.setAttribute("open", "");
    old.replaceWith(document.adoptNode(fresh));
  }
  for (const old of document.querySelectorAll(".flash-line")) old.remove();
  const home = document.getElementById(part.id).querySelector(".card-head");
  const flash = made.querySelector(".flash-line");
  if (flash) home.after(document.adoptNode(flash));
  const next = flash?.querySelector("button") ?? home.parentElement.querySelector("a, button, summary");
  next?.focus({ preventScroll: true });
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-in-place], .undo") || event.defaultPrevented) return;
  event.preventDefault();
  const button = event.submitter;
  button?.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok || !answer.url.endsWith("/")) throw new Error(answer.statusText);
    // The server has escaped every value; a parsed document runs nothing while it is put in place.
    place(form, new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    form.submit(); // the browser then shows the answer, or that there is none
  }
});
