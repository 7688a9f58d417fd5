// Before anything is drawn: that there are scripts, and the theme that was chosen; else the system's.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // A browser that keeps nothing follows the system.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
