// What a page does besides: everything here only adds to what works without it.

const system = matchMedia("(prefers-color-scheme: dark)");

function followTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
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
    if (key !== "theme" || !["light", "dark"].includes(newValue)) return;
    root.dataset.theme = newValue;
    show();
    document.dispatchEvent(new Event("themechange"));
  });
  show();
}

// On a telephone the links of the site are behind a button; without scripts they stand there.
function openMenu() {
  const button = document.getElementById("menu");
  button.addEventListener("click", () => {
    button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") === "false"));
  });
}

function offerCopies() {
  for (const command of document.querySelectorAll("code[data-copy]")) {
    command.textContent = command.textContent.replace("http://127.0.0.1:8000", location.origin);
  }
  if (!navigator.clipboard) return;
  const { sayCopy, sayCopied } = document.getElementById("main").dataset;
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

// A combobox with a list (WAI-ARIA): arrows choose, Enter goes to the place, Escape closes.
export class Suggestions {
  constructor(input) {
    this.input = input;
    this.places = [];
    this.chosen = -1;
    this.list = document.createElement("ul");
    this.list.id = `${input.id}-suggestions`;
    this.list.className = "suggestions";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", document.querySelector(`label[for="${input.id}"]`).textContent);
    this.list.hidden = true;
    this.told = document.createElement("p"); // there before it says anything, for else a screen reader may miss it
    this.told.className = "suggestions none";
    this.told.setAttribute("role", "status");
    input.after(this.list, this.told);
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"],
                                 ["aria-controls", this.list.id]]) input.setAttribute(name, value);
    input.addEventListener("input", () => this.ask());
    input.addEventListener("keydown", (event) => this.press(event));
    input.addEventListener("blur", () => this.close()); // after the mousedown on an option
  }

  // The form knows the release and the language; the address of a problem may name a release that there is not.
  parameters() {
    const form = new FormData(this.input.form);
    const kept = new URLSearchParams();
    for (const name of ["release", "lang"]) if (form.get(name)) kept.set(name, form.get(name));
    const place = new URLSearchParams(kept);
    place.delete("lang");
    for (const name of ["estado_id", "municipio_id"]) if (form.get(name)) place.set(name, form.get(name));
    return { kept, place };
  }

  async ask() {
    const typed = this.input.value.trim();
    this.stopAsking();
    if (!typed) return this.close();
    this.asked = new AbortController();
    const { place } = this.parameters();
    place.set("q", typed.slice(0, 100));
    if (this.input.dataset.kinds) place.set("kind", this.input.dataset.kinds);
    place.set("limit", "8");
    place.set("format", "json");
    try {
      const answer = await fetch(`${this.input.dataset.suggest}suggest/?${place}`, { signal: this.asked.signal });
      if (!answer.ok) return this.close();
      const { results } = await answer.json();
      this.show(results, results.length ? "" : this.input.dataset.none);
    } catch (error) {
      if (error.name !== "AbortError") this.close();
    }
  }

  show(places, told = "") {
    if (this.told.textContent !== told) this.told.textContent = told; // the same again would be read out again
    this.places = places;
    this.chosen = -1;
    this.input.removeAttribute("aria-activedescendant");
    this.list.replaceChildren(...places.map((place, index) => {
      const option = document.createElement("li");
      option.id = `${this.list.id}-${index}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.textContent = [place.label, this.input.dataset[place.kind]].filter(Boolean).join(" · ");
      option.addEventListener("mousedown", () => this.go(place));
      return option;
    }));
    this.list.hidden = places.length === 0;
    this.input.setAttribute("aria-expanded", String(places.length > 0));
  }

  // What is still on its way would take back what was chosen, or open what was closed.
  stopAsking() {
    this.asked?.abort();
  }

  close() {
    this.stopAsking();
    this.show([]);
  }

  press(event) {
    if (event.key === "Escape" && (!this.list.hidden || this.told.textContent)) {
      event.preventDefault(); // a search field would lose what was typed
      this.close();
    }
    if (event.key === "Enter" && this.chosen >= 0) {
      event.preventDefault();
      this.go(this.places[this.chosen]);
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.places.length) return;
    event.preventDefault();
    this.stopAsking();
    this.chosen = (this.chosen + step + this.places.length) % this.places.length;
    for (const [index, option] of [...this.list.children].entries()) {
      option.setAttribute("aria-selected", String(index === this.chosen));
    }
    this.input.setAttribute("aria-activedescendant", this.list.children[this.chosen].id);
  }

  // A page may do something else with the place, if it takes the event `choose`.
  go(place) {
    const chosen = new CustomEvent("choose", { detail: place, cancelable: true });
    if (!this.input.dispatchEvent(chosen)) {
      this.input.value = place.label;
      this.close();
      return;
    }
    const query = this.parameters().kept.toString();
    location.href = `${this.input.dataset.suggest}${FOLDERS[place.kind]}${place.id}/${query && `?${query}`}`;
  }
}

// A cascading select: the municipios of the estado that was chosen, all of them.
function cascade(select) {
  const parent = document.getElementById(select.dataset.of);
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
for (const input of document.querySelectorAll("input[data-suggest]")) new Suggestions(input);
for (const select of document.querySelectorAll("select[data-of]")) cascade(select);
