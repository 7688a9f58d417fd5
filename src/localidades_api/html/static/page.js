// What a page does besides: everything here only adds to what works without it.

export const system = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

function followTheme() {
  const button = /** @type {HTMLElement} */ (document.getElementById("theme"));
  const root = document.documentElement;
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // It holds for this page then.
    }
    show();
    document.dispatchEvent(new Event("themechange"));
  });
  system.addEventListener("change", show);
  addEventListener("storage", ({ key, newValue }) => { // another tab has changed it
    if (key !== "theme" || (newValue !== "light" && newValue !== "dark")) return;
    root.dataset.theme = newValue;
    show();
    document.dispatchEvent(new Event("themechange"));
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
  const spoken = document.createElement("p");
  spoken.className = "visually-hidden";
  spoken.setAttribute("aria-live", "polite");
  document.body.append(spoken);
  for (const element of document.querySelectorAll("[data-copy]")) {
    const isCode = element.tagName === "CODE"; // whose text may change
    const text = () => element.querySelector("a")?.href ?? element.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.setAttribute("aria-label", isCode ? sayCopy : `${sayCopy} ${text()}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text());
      button.classList.add("done");
      spoken.textContent = sayCopied;
      setTimeout(() => {
        button.classList.remove("done");
        spoken.textContent = "";
      }, 2000);
    });
    if (isCode) element.after(" ", button);
    else element.append(button);
  }
}

// Where the pages of each kind of place are, from the list of localities.
const FOLDERS = { localidad: "", municipio: "../municipios/", estado: "../estados/" };

// The form knows the release and the language; the address of a problem may name a release that there is not.
function valuesOf(form, names) {
  const data = new FormData(form);
  return new URLSearchParams(names.filter((name) => data.get(name)).map((name) => [name, data.get(name)]));
}

// Suggests places while somebody types; the script for it is loaded when the field gets the focus. A page may do something
// else with the chosen place, if it takes the event `choose`.
export function offerSuggestions(input) {
  const list = document.createElement("ul");
  list.id = `${input.id}-suggestions`;
  list.className = "suggestions";
  list.setAttribute("aria-label", /** @type {Element} */ (document.querySelector(`label[for="${input.id}"]`)).textContent);
  const status = document.createElement("p");
  status.className = "suggestions none";
  status.setAttribute("role", "status"); // there before it says anything, or a screen reader may miss it
  input.after(list, status);
  list.hidden = true;
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-expanded", "false");
  if (document.activeElement === input) suggestPlaces(input, list, status);
  else input.addEventListener("focus", () => suggestPlaces(input, list, status), { once: true });
}

async function suggestPlaces(input, list, status) {
  const before = input.value;
  const { Combobox, read } = await import("./localidad-field.js");
  const { suggest, kinds = "", none } = input.dataset;
  const combobox = new Combobox(input, list, status, {
    pause: 0,
    choosingKeys: ["Enter"],
    async ask(text, signal) {
      const query = valuesOf(input.form, ["release", "estado_id", "municipio_id"]);
      query.set("q", text.slice(0, 100));
      if (kinds) query.set("kind", kinds);
      query.set("limit", "8");
      query.set("format", "json");
      return (await read(`${suggest}suggest/?${query}`, signal)).results;
    },
    label: (place) => [place.label, input.dataset[place.kind]].filter(Boolean).join(" · "),
    announce: (count, error) => (count || error ? "" : none),
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

// A cascading select: the municipios of the estado that was chosen, all of them.
function cascade(select) {
  const parent = /** @type {HTMLSelectElement} */ (document.getElementById(select.dataset.of));
  parent.addEventListener("change", async () => {
    const all = select.options[0];
    select.replaceChildren(all);
    const estado = parent.value;
    if (!estado) return;
    const wanted = new URLSearchParams({ estado_id: estado, page_size: "1000", format: "json" });
    const release = new URLSearchParams(location.search).get("release");
    if (release) wanted.set("release", release);
    const answer = await fetch(`${select.dataset.from}?${wanted}`).catch(() => null);
    const municipios = answer?.ok ? (await answer.json()).results : [];
    if (parent.value !== estado) return; // another one was chosen meanwhile
    all.textContent = parent.options[0].textContent;
    for (const { id, nombre } of municipios) select.add(new Option(nombre, id));
  });
}

followTheme();
openMenu();
offerCopies();
for (const input of document.querySelectorAll("input[data-suggest]")) offerSuggestions(input);
for (const select of document.querySelectorAll("select[data-of]")) cascade(select);
