/** Runs before the first paint: applies the chosen theme, and marks the page as having scripts. */

const root = document.documentElement;
root.classList.add("js");
try {
  const chosen = window.localStorage.getItem("lockstep:theme");
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
} catch {
  // Storage is denied: use the system's theme.
}

export {};
