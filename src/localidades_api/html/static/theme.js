// The theme that was chosen, before anything is drawn; else the system's.
"use strict";
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
