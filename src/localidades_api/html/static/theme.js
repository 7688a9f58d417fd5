// Before anything is drawn: what scripts will add, so that there is room for it, and the theme that was chosen.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  if (navigator.clipboard) root.classList.add("copying"); // where the address is https or the machine's own
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
})();
