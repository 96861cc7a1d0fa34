/** Runs before anything is painted: the chosen theme, and the fact that there is a script at all. */

const root = document.documentElement;
root.classList.add("js");
try {
  const chosen = window.localStorage.getItem("lockstep:theme");
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
} catch {
  // Storage is forbidden: the system's theme it is.
}

export {};
