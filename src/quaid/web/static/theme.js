// Runs before the first paint: marks that scripts are available, and applies the chosen theme.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Without local storage, the theme follows the system.
  }
})();
