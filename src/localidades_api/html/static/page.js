// What pages share. Everything here only adds to what works without it.

const system = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Partial<HTMLElementTagNameMap[Name]>} properties
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, properties, ...children) {
  const made = document.createElement(name);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

// Returns the records of a list; null if the service doesn't answer.
export async function list(resource, query) {
  const answer = await fetch(`${resource}?${new URLSearchParams({ ...query, format: "json" })}`).catch(() => null);
  return answer?.ok ? (await answer.json()).results : null;
}

function followTheme() {
  const button = /** @type {HTMLElement} */ (document.getElementById("theme"));
  const root = document.documentElement;
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  const change = () => {
    show();
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // It holds for this page then.
    }
    change();
  });
  system.addEventListener("change", change);
  addEventListener("storage", ({ key, newValue }) => { // another tab has changed it
    if (key !== "theme" || (newValue !== "light" && newValue !== "dark")) return;
    root.dataset.theme = newValue;
    change();
  });
  show();
}

// On a telephone the links of the site are behind a button; without scripts they stand there.
function openMenu() {
  const button = /** @type {HTMLElement} */ (document.getElementById("menu"));
  button.addEventListener("click", () => {
    button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") === "false"));
  });
}

function offerCopies() {
  for (const code of document.querySelectorAll("code[data-copy]:not(:empty)")) {
    const text = /** @type {Text} */ (code.firstChild);
    text.data = text.data.replace("http://127.0.0.1:8000", location.origin);
  }
  if (!navigator.clipboard) return;
  const { sayCopy = "", sayCopied = "" } = /** @type {HTMLElement} */ (document.getElementById("main")).dataset;
  const spoken = element("p", { className: "visually-hidden", ariaLive: "polite" });
  document.body.append(spoken);
  for (const copied of document.querySelectorAll("[data-copy]")) {
    const isCode = copied.tagName === "CODE"; // whose text may change
    const text = () => copied.querySelector("a")?.href ?? copied.textContent;
    const button = element("button", { type: "button", className: "copy", ariaLabel: isCode ? sayCopy : `${sayCopy} ${text()}` });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text());
      button.classList.add("done");
      spoken.textContent = sayCopied;
      setTimeout(() => {
        button.classList.remove("done");
        spoken.textContent = "";
      }, 2000);
    });
    if (isCode) copied.after(" ", button);
    else copied.append(button);
  }
}

// Where the pages of each kind of place are, from the list of localities.
export const FOLDERS = { localidad: "", municipio: "../municipios/", estado: "../estados/" };

// The form knows the release and the language; the address of a problem may name a release that there is not.
function valuesOf(form, names) {
  const data = new FormData(form);
  return new URLSearchParams(names.filter((name) => data.get(name)).map((name) => [name, data.get(name)]));
}

const MOST = 8; // suggestions

// Suggests places while somebody types; the script for it is loaded when the field gets the focus. A page may do something
// else with the chosen place, if it takes the event `choose`; `describe` returns what an option says besides its label.
/** @param {(place: any) => string[]} describe */
export function offerSuggestions(input, describe = () => []) {
  const label = /** @type {Element} */ (document.querySelector(`label[for="${input.id}"]`));
  const options = element("ul", {
    id: `${input.id}-suggestions`, className: "suggestions", ariaLabel: label.textContent, hidden: true,
  });
  // It is there before it says anything, or a screen reader may miss it.
  const status = element("p", { className: "suggestions none", role: "status" });
  input.after(options, status);
  Object.assign(input, { role: "combobox", ariaExpanded: "false" });
  const wait = () => input.addEventListener("focus", start, { once: true });
  const start = () => suggestPlaces(input, options, status, describe).catch(() => { // the script did not come: with the next focus
    status.textContent = input.dataset.failed ?? "";
    wait();
  });
  if (document.activeElement === input) start();
  else wait();
}

async function suggestPlaces(input, options, status, describe) {
  const before = input.value;
  const { Combobox, read } = await import("./localidad-field.js");
  const { suggest, kinds = "", none, failed = "", near } = input.dataset;
  const combobox = new Combobox(input, options, status, {
    pause: 0,
    choosingKeys: ["Enter"],
    async ask(text, signal) {
      const query = valuesOf(input.form, ["release", "estado_id", "municipio_id"]);
      query.set("q", text.slice(0, 100));
      if (kinds) query.set("kind", kinds);
      query.set("limit", String(MOST));
      query.set("format", "json");
      const found = new Map();
      for (const area of [...(near ? near.split(",") : []), ""]) { // the nearest places come first
        if (found.size >= MOST) break;
        const { results } = await read(`${suggest}suggest/?${query}&${area}`.replace(/&$/, ""), signal);
        for (const place of results) found.set(place.id, place);
      }
      return [...found.values()].slice(0, MOST);
    },
    label: (place) => [place.label, input.dataset[place.kind], ...describe(place)].filter(Boolean).join(" · "),
    announce: (count, error) => (error ? failed : count ? "" : none),
    choose(place) {
      if (!input.dispatchEvent(new CustomEvent("choose", { detail: place, cancelable: true }))) {
        input.value = place.label;
        return;
      }
      const query = valuesOf(input.form, ["release", "lang"]).toString();
      location.href = `${suggest}${FOLDERS[place.kind]}${place.id}/${query && `?${query}`}`;
    },
  });
  if (input.value !== before && document.activeElement === input) combobox.ask(); // letters that were faster than the script
}

// Of a cascading select.
const parentOf = (select) => /** @type {HTMLSelectElement} */ (document.getElementById(select.dataset.of));

// Offers all municipios of the estado that was chosen.
export async function offerMunicipios(select) {
  const [all, estado] = [select.options[0], parentOf(select).value];
  select.replaceChildren(all);
  if (!estado) return;
  const release = new URLSearchParams(location.search).get("release");
  const municipios = await list(select.dataset.from, { estado_id: estado, page_size: "1000", ...(release && { release }) }) ?? [];
  if (parentOf(select).value !== estado || select.length > 1) return; // another one was chosen meanwhile
  all.textContent = parentOf(select).options[0].textContent;
  for (const { id, nombre } of municipios) select.add(new Option(nombre, id));
}

followTheme();
openMenu();
offerCopies();
for (const input of document.querySelectorAll("input[data-suggest]")) offerSuggestions(input);
for (const select of document.querySelectorAll("select[data-of]")) {
  parentOf(select).addEventListener("change", () => offerMunicipios(select));
}
