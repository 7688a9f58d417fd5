// Swagger UI in the frame of the site: it follows the theme of the page.
import { isDark } from "./page.js";

const followTheme = () => document.documentElement.classList.toggle("dark-mode", isDark());
followTheme();
document.addEventListener("themechange", followTheme);

const place = /** @type {HTMLElement} */ (document.getElementById("swagger-ui"));

// Swagger UI speaks English only: the page has its most frequent words in another language.
const words = new Map(Object.entries(JSON.parse(place.dataset.words ?? "{}")));
const say = (word) => words.get(word) ?? word;

function translate() {
  const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = /** @type {Text} */ (texts.currentNode);
    const word = text.data.trim();
    if (words.has(word) && !text.parentElement?.closest("pre, .json-schema-2020-12")) {
      text.data = text.data.replace(word, say(word));
    }
  }
}

// Swagger UI leaves controls and regions without a name of their own, and what scrolls out of a keyboard's reach.
const NAMES = {
  "tr[data-param-name] select": (select) => select.closest("tr").dataset.paramName,
  "textarea.body-param__text": () => say("Request body"),
  ".copy-to-clipboard button": () => say("Copy"),
  "table[role=region]": (table) => `${say("Responses")}: ${table.closest(".opblock").querySelector(".opblock-summary").innerText}`,
};

function mend() {
  for (const [selector, name] of Object.entries(NAMES)) {
    for (const element of place.querySelectorAll(`${selector}:not([aria-label])`)) {
      element.setAttribute("aria-label", name(element));
    }
  }
  for (const element of place.querySelectorAll("pre")) if (!element.hasAttribute("tabindex")) element.tabIndex = 0;
  // Buttons open operations; the links around their names lead nowhere, which search engines hold against the page.
  for (const element of place.querySelectorAll("a:not([href], [role])")) element.setAttribute("role", "none");
  if (words.size) translate();
}

// To resolve any part, Swagger UI reads the whole document, which takes half a second, several on a telephone. It begins
// with security schemes even if there are none: with this plugin it waits until somebody opens an operation.
const resolveWhatThereIs = {
  statePlugins: {
    spec: {
      wrapActions: {
        requestResolvedSubtree: (resolve, { specSelectors }) => (path) => {
          if (specSelectors.specJson().hasIn(path)) resolve(path);
        },
      },
    },
  },
};

new MutationObserver(mend).observe(place, { childList: true, characterData: true, subtree: true });
SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  defaultModelsExpandDepth: -1, // the reference has the schemas
  syntaxHighlight: { activated: false }, // its colours lack contrast
  validatorUrl: null,
  plugins: [resolveWhatThereIs],
});
