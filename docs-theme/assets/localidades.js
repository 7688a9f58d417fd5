// The theme lets a keyboard scroll code only where a mouse can hover: not on a telephone, nor in a narrow window of one.
function reachCode() {
  for (const code of document.querySelectorAll("pre > code:not([tabindex])")) {
    if (code.scrollWidth > code.clientWidth) code.setAttribute("tabindex", "0");
  }
}

new MutationObserver(reachCode).observe(document, { attributeFilter: ["tabindex"], childList: true, subtree: true });
addEventListener("resize", reachCode);
