// <localidad-field name="localidad">: a field of a form in which people type a place and choose it from a list. The form
// sends its official key. No dependencies and no build; docs/guides/field.md describes it.

const PAUSE = 150; // milliseconds after a letter
const MAX_WAIT = 10; // seconds, whatever Retry-After says
const LIMIT = 8; // suggestions
const DIGITS = [2, 5, 9]; // of the keys of estados, municipios and localities

const WORDS = {
  en: {
    found: (count) => (count === 1 ? "1 place" : `${count} places`),
    none: "No results.",
    offline: "The catalogue can't be reached.",
    refused: "The catalogue can't answer right now. Try again later.",
    required: "Type a place and choose it from the list.",
    unchosen: "Choose a place from the list.",
    unknown: "The catalogue has no such key. Choose a place from the list.",
    list: "Places",
  },
  es: {
    found: (count) => (count === 1 ? "1 lugar" : `${count} lugares`),
    none: "Sin resultados.",
    offline: "No hay conexión con el catálogo.",
    refused: "El catálogo no puede responder en este momento. Intente más tarde.",
    required: "Escriba un lugar y elíjalo de la lista.",
    unchosen: "Elija un lugar de la lista.",
    unknown: "El catálogo no tiene esa clave. Elija un lugar de la lista.",
    list: "Lugares",
  },
};

// The language of an element: its own, that of what surrounds it, or else the reader's.
export function languageOf(element) {
  let found = element;
  while (found && !found.lang) found = found.parentElement ?? found.getRootNode().host;
  return /^es\b/i.test(found?.lang || navigator.language) ? "es" : "en";
}

// Returns the key that a text or a number is: an id lacks the zero in front. Anything else is no key, "".
export function keyOf(given) {
  const text = String(given ?? "").trim();
  const digits = DIGITS.find((one) => one === text.length || one === text.length + 1);
  return digits && /^[0-9]+$/.test(text) ? text.padStart(digits, "0") : "";
}

export function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function wait(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
  });
}

// The service refuses a request: it is too busy, or the request is wrong.
class Refusal extends Error {}

// Returns what the API answers; a service that is busy or starting says when to ask once more.
export async function read(address, signal) {
  for (let isSecond = false; ; isSecond = true) {
    const answer = await fetch(address, { signal });
    if (answer.ok) return answer.json();
    const seconds = answer.status === 503 && Number(answer.headers.get("Retry-After"));
    if (!seconds || isSecond) throw new Refusal(`${answer.status} ${address}`);
    await wait(Math.min(seconds, MAX_WAIT) * 1000, signal);
  }
}

// What to tell people about a request that failed.
export function explain(error, language) {
  return WORDS[language][error instanceof Refusal ? "refused" : "offline"];
}

// A text field with a list of suggestions: an editable combobox (ARIA 1.2) that keeps the focus. A list that is a popover
// lies over everything else.
// `ask` resolves to the places for a text, `pause` milliseconds after a letter; `choose` takes the one that a click or one
// of `choosingKeys` chooses. `label` is the text of an option, and `announce` that of the status for a number of places or
// an error.
export class Combobox {
  #input;
  #list;
  #status;
  #callbacks;
  #places = [];
  #active = -1; // the option that Enter chooses
  #request = new AbortController();
  #open = new AbortController(); // until the list closes

  constructor(input, list, status, callbacks) {
    [this.#input, this.#list, this.#status, this.#callbacks] = [input, list, status, callbacks];
    const roles = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
    for (const [name, value] of Object.entries(roles)) input.setAttribute(name, value);
    list.setAttribute("role", "listbox");
    list.hidden = true;
    status.setAttribute("role", "status"); // there before it says anything, or a screen reader may miss it
    input.addEventListener("input", () => this.ask(callbacks.pause));
    input.addEventListener("keydown", (event) => this.#press(event));
    input.addEventListener("blur", () => this.close());
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays in the field
    list.addEventListener("click", ({ target }) => {
      const index = [...list.children].indexOf(target.closest("[role=option]"));
      if (index >= 0) this.#choose(index);
    });
  }
  // A late answer would take back what was chosen, or open what was closed.
  close() {
    this.#request.abort();
    this.#show([], "");
  }

  async ask(pause = 0) {
    const text = this.#input.value.trim();
    this.#request.abort();
    this.#activate(-1);
    if (!text || this.#input.readOnly) return this.close();
    const { signal } = (this.#request = new AbortController());
    try {
      await wait(pause, signal);
      const places = await this.#callbacks.ask(text, signal);
      if (!signal.aborted) this.#show(places, this.#callbacks.announce(places.length));
    } catch (error) {
      if (!signal.aborted) this.#show([], this.#callbacks.announce(0, error));
    }
  }

  #show(places, said) {
    this.#places = places;
    this.#active = -1;
    this.#input.removeAttribute("aria-activedescendant");
    this.#list.replaceChildren(...places.map((place, index) =>
      create("li", { id: `${this.#list.id}-${index}`, role: "option", part: "option", "aria-selected": "false" },
        this.#callbacks.label(place))));
    this.#list.hidden = !places.length;
    this.#float(places.length > 0);
    this.#input.setAttribute("aria-expanded", String(places.length > 0));
    this.#status.classList.toggle("spoken", places.length > 0);
    if (this.#status.textContent !== said) this.#status.textContent = said; // the same again would be read out again
  }

  #float(isOpen) {
    this.#open.abort();
    if (!this.#list.popover || !this.#list.isConnected) return;
    this.#list.togglePopover(isOpen);
    if (!isOpen) return;
    this.#open = new AbortController();
    for (const moved of ["scroll", "resize"]) {
      for (const target of [window, visualViewport]) {
        target?.addEventListener(moved, () => this.#place(), { capture: true, signal: this.#open.signal });
      }
    }
    this.#place();
  }

  // Below the field; above it if there is more room and the list needs it. A keyboard on the screen takes room away.
  #place() {
    const { left, top, bottom, width } = this.#input.getBoundingClientRect();
    const { offsetTop, height } = visualViewport ?? { offsetTop: 0, height: innerHeight };
    const [above, below] = [top - offsetTop, offsetTop + height - bottom];
    const set = (name, pixels) => this.#list.style.setProperty(`--${name}`, pixels === null ? "auto" : `${pixels}px`);
    set("room", 1e4);
    const opensUp = above > below && this.#list.offsetHeight > below;
    set("room", Math.max(opensUp ? above : below, 0));
    set("left", left);
    set("width", width);
    set("top", opensUp ? null : bottom);
    set("bottom", opensUp ? document.documentElement.clientHeight - top : null);
  }

  #activate(index) {
    this.#active = index;
    for (const [other, option] of [...this.#list.children].entries()) {
      option.setAttribute("aria-selected", String(other === index));
      option.setAttribute("part", other === index ? "option active" : "option");
    }
    const option = this.#list.children[index];
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#input.setAttribute("aria-activedescendant", option.id);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  #choose(index) {
    const place = this.#places[index];
    this.close();
    this.#callbacks.choose(place);
  }

  #press(event) {
    const { key } = event;
    const count = this.#places.length;
    if (event.isComposing) return;
    if (key === "Escape") {
      if (count || this.#status.textContent) event.preventDefault(); // a search field would lose its text
      this.close();
    } else if (key === "ArrowDown" && !count) {
      event.preventDefault();
      this.ask();
    } else if (count && (key === "ArrowDown" || key === "ArrowUp")) {
      event.preventDefault();
      this.#request.abort();
      const step = key === "ArrowDown" ? 1 : -1;
      this.#activate(this.#active < 0 && step < 0 ? count - 1 : (this.#active + step + count) % count);
    } else if (this.#active >= 0 && (key === "Home" || key === "End")) {
      event.preventDefault();
      this.#activate(key === "Home" ? 0 : count - 1);
    } else if (this.#active >= 0 && this.#callbacks.choosingKeys.includes(key)) {
      if (key !== "Tab") event.preventDefault(); // which goes on to the next field
      this.#choose(this.#active);
    }
  }
}

// A style sheet, which is allowed under any Content-Security-Policy. A server that imports this file has none.
export function styleSheet(text) {
  const sheet = globalThis.CSSStyleSheet && new CSSStyleSheet();
  sheet?.replaceSync(text);
  return sheet;
}

const STYLES = styleSheet(`
:host { display: inline-block; position: relative; inline-size: 22rem; max-inline-size: 100%; }
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
label { display: block; margin-block-end: .25em; }
.box { position: relative; }
input { inline-size: 100%; min-block-size: 2.4em; padding: .45em .6em; font: inherit; color: FieldText; background: Field;
  border: 1px solid color-mix(in srgb, FieldText 60%, Field); border-radius: .3em; }
input:disabled { color: GrayText; cursor: not-allowed; }
ul, p:not(.spoken, :empty) { position: absolute; z-index: 1000; inset-inline: 0; inset-block-start: 100%; margin: .2em 0 0;
  padding: .25em 0; list-style: none; background: Canvas; color: CanvasText;
  border: 1px solid color-mix(in srgb, CanvasText 60%, Canvas); border-radius: .3em;
  box-shadow: 0 .25em 1em rgb(0 0 0 / 25%); }
ul { max-block-size: 20em; overflow-y: auto; overscroll-behavior: contain; }
ul:popover-open { position: fixed; inset: var(--top) auto var(--bottom) var(--left); inline-size: var(--width); margin: 0;
  max-block-size: min(20em, var(--room)); }
li { padding: .4em .6em; cursor: pointer; }
li:hover { background: color-mix(in srgb, CanvasText 12%, Canvas); }
li[aria-selected="true"] { background: CanvasText; color: Canvas; }
p:not(.spoken, :empty) { padding: .4em .6em; pointer-events: none; }
.spoken, p:empty { position: absolute; inline-size: 1px; block-size: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); }
@media (pointer: coarse) { li { padding-block: .75em; } }
`);

// An address below /api/census/, of the service that `element` names or else of the one that this file is from.
export function addressOf(element, path, query) {
  const own = new URL("../", import.meta.url);
  const service = element.getAttribute("service");
  const root = service ? new URL(`${service.replace(/\/+$/, "")}/`, document.baseURI) : own;
  const address = new URL(`api/census/${path}`, root);
  const release = element.getAttribute("release");
  for (const [name, value] of Object.entries({ ...query, ...(release && { release }), format: "json" })) {
    if (value) address.searchParams.set(name, value);
  }
  return address;
}

// Adds a property for each attribute, which frameworks set.
export function reflect(element, texts, flags) {
  for (const name of texts) {
    Object.defineProperty(element.prototype, name, {
      get() { return this.getAttribute(name) ?? ""; },
      set(value) { if (value == null) this.removeAttribute(name); else this.setAttribute(name, value); },
    });
  }
  for (const name of flags) {
    Object.defineProperty(element.prototype, name, {
      get() { return this.hasAttribute(name); }, // whose case doesn't matter
      set(value) { this.toggleAttribute(name, Boolean(value)); },
    });
  }
}

// Properties that were set before the element was defined hide its own.
export function adopt(element, names) {
  for (const name of names) {
    if (!Object.hasOwn(element, name)) continue;
    const value = element[name];
    delete element[name];
    element[name] = value;
  }
}

// Implicit submission, as Enter in an <input> does it.
function submit(form) {
  const button = [...(form?.elements ?? [])].find(({ type }) => type === "submit" || type === "image");
  if (!button) form?.requestSubmit();
  else if (!button.disabled) form.requestSubmit(button);
}

const TEXTS = ["name", "kind", "estado", "municipio", "release", "placeholder", "label", "service"];
const FLAGS = ["required", "disabled", "readOnly"];

// A field of a form, with the members of an <input> about its form and its validity; on a server, which renders pages
// without a DOM, it extends anything.
export class FormField extends /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? Object) {
  static formAssociated = true;

  #internals = this.attachInternals();
  #custom = ""; // the error of `setCustomValidity`, which comes first
  #fault = [{}, ""];

  static setValue(field, value, state) {
    field.#internals.setFormValue(value, state);
  }

  // Says what is wrong with a field, or that nothing is.
  static setFault(field, flags, error, anchor) {
    field.#fault = [flags, error, anchor];
    const message = field.#custom || error;
    field.#internals.setValidity(message ? { ...flags, customError: field.#custom !== "" } : {}, message, anchor);
  }

  get form() { return this.#internals.form; }
  get type() { return this.localName; }
  get labels() { return this.#internals.labels; }
  get validity() { return this.#internals.validity; }
  get validationMessage() { return this.#internals.validationMessage; }
  get willValidate() { return this.#internals.willValidate; }
  checkValidity() { return this.#internals.checkValidity(); }
  reportValidity() { return this.#internals.reportValidity(); }
  setCustomValidity(error) {
    this.#custom = String(error);
    FormField.setFault(this, ...this.#fault);
  }
}

/**
 * What `reflect` adds to a field.
 * @typedef {{ required: boolean, disabled: boolean, release: string, service: string }} Reflected
 * @typedef {Record<"name" | "kind" | "estado" | "municipio" | "placeholder" | "label", string>} FieldTexts
 * @typedef {Reflected & FieldTexts & { readOnly: boolean }} ReflectedField
 */

export class LocalidadField extends /** @type {new () => FormField & ReflectedField} */ (/** @type {unknown} */ (FormField)) {
  static observedAttributes = [
    "value", "label", "aria-label", "aria-labelledby", "aria-describedby", "aria-invalid", "placeholder", "estado",
    "municipio", "required", "readonly",
  ];

  #input = create("input", { id: "input", part: "input", type: "text", maxlength: "100", autocomplete: "off", spellcheck: "false" });
  #label = create("label", { part: "label", for: "input" });
  #list = create("ul", { id: "list", part: "list", popover: "manual" });
  #status = create("p", { part: "message" });
  #combobox;
  #value = "";
  /** @type {import("../../../../npm/localidad-field.js").LocalidadPlace | null} */ #place = null;
  #unknown = ""; // the key that the catalogue lacks
  #committed = ""; // the key of the last `change`
  #lookup = new AbortController();
  #isReady = false; // its attributes are set

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    root.adoptedStyleSheets = [STYLES];
    root.append(this.#label, create("div", { class: "box" }, this.#input, this.#list, this.#status));
    // Before the combobox: what is typed takes back the key at once, whenever its suggestions come.
    this.#input.addEventListener("input", () => { this.#lookup.abort(); this.#set("", null); });
    this.#combobox = new Combobox(this.#input, this.#list, this.#status, {
      pause: PAUSE,
      choosingKeys: ["Enter", "Tab"],
      ask: (text, signal) => this.#suggest(text, signal),
      choose: (place) => this.#choose(place),
      label: (place) => this.#labelOf(place),
      announce: (count, error) => (error ? explain(error, this.#language) : count ? this.#words.found(count) : this.#words.none),
    });
    this.#input.addEventListener("focus", () => this.#describe());
    this.#input.addEventListener("blur", () => this.#settle());
    this.#input.addEventListener("keydown", async (event) => {
      if (event.key !== "Enter" || event.defaultPrevented || event.isComposing) return;
      event.preventDefault();
      await this.#settle();
      submit(this.form);
    });
  }

  connectedCallback() {
    this.#isReady = true;
    adopt(this, ["value", ...TEXTS, ...FLAGS]);
    this.#describe();
    this.#validate();
    if (this.#value && !this.#place) this.#find(this.#value);
  }

  disconnectedCallback() {
    this.#isReady = false;
    this.#lookup.abort();
    this.#combobox.close();
  }

  attributeChangedCallback(name, before, after) {
    if (name === "value") this.value = after;
    if (name === "estado" || name === "municipio") this.#move(after, name === "estado" ? 2 : 5);
    this.#describe();
    this.#validate();
  }

  formResetCallback() {
    this.#take(this.getAttribute("value"));
  }

  formDisabledCallback(isDisabled) {
    this.#input.disabled = isDisabled;
    if (isDisabled) this.#combobox.close();
  }

  formStateRestoreCallback(state, mode) {
    if (mode === "autocomplete") { this.value = state; return; }
    const { value, text } = JSON.parse(state);
    this.#lookup.abort();
    this.#committed = value;
    this.#input.value = text;
    this.#set(value, null);
  }

  get value() { return this.#value; }

  // Frameworks set the key that the field has after each letter, which must stay.
  set value(given) {
    const text = String(given ?? "");
    if (keyOf(text) !== this.#value || (text && !this.#value)) this.#take(text);
  }

  get place() { return this.#place; }
  get #language() { return languageOf(this); }
  get #words() { return WORDS[this.#language]; }

  #query(text, limit) {
    const { kind, estado, municipio } = this;
    return addressOf(this, "localidades/suggest/", { q: text, kind: kind.replace(/\s/g, ""), estado_id: estado, municipio_id: municipio, limit });
  }

  async #suggest(text, signal) {
    const { results } = await read(this.#query(text.slice(0, 100), LIMIT), signal);
    const place = results.find(({ cvegeo }) => cvegeo === text);
    if (place && !signal.aborted) this.#set(place.cvegeo, place, true); // the text follows when the field is left
    return results;
  }

  // Takes a key, whose name comes from the catalogue; what is none is shown, and has no key.
  #take(given) {
    const key = keyOf(given);
    this.#unknown = "";
    this.#combobox.close();
    this.#lookup.abort();
    this.#input.value = key || (given ?? "");
    this.#set(key, null);
    this.#committed = key;
    if (this.#isReady) this.#find(key);
  }

  // Finds the place of a whole key; without one, what the field holds stays as it is, and is invalid.
  async #find(key) {
    this.#lookup.abort();
    if (!key) return;
    const { signal } = (this.#lookup = new AbortController());
    try {
      const { results } = await read(this.#query(key, LIMIT), signal);
      if (signal.aborted) return;
      const place = results.find(({ cvegeo }) => cvegeo === key);
      if (place) {
        this.#input.value = place.label;
        this.#set(key, place, this.#value !== key);
      } else {
        this.#unknown = key;
        this.#validate();
        this.dispatchEvent(new Event("unknown")); // for a cascade, which is invalid too
      }
    } catch {
      // The key stays, as it was given.
    }
  }

  // The field is left, or its form submitted: a key that was typed whole is the place that it means.
  async #settle() {
    const text = this.#input.value.trim();
    this.#combobox.close();
    if (this.#place) this.#input.value = this.#place.label;
    else if (!this.#value) await this.#find(keyOf(text));
    this.#commit();
  }

  #choose(place) {
    this.#input.value = place.label;
    this.#set(place.cvegeo, place, true);
    this.#commit();
  }

  // Another estado or municipio: a place outside it is no longer chosen, and suggestions are of the one before.
  #move(area, digits) {
    if (!this.#isReady) return;
    this.#combobox.close();
    if (area && this.#value && !this.#value.startsWith(area.padStart(digits, "0"))) this.value = "";
  }

  // `isChosen` sends `input`, which the letters that take a key back send themselves.
  #set(value, place, isChosen = false) {
    const isNew = value !== this.#value;
    [this.#value, this.#place] = [value, place];
    FormField.setValue(this, value, JSON.stringify({ value, text: this.#input.value }));
    this.#validate();
    if (isChosen && isNew) this.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  }

  #commit() {
    if (this.#value === this.#committed) return;
    this.#committed = this.#value;
    this.dispatchEvent(new Event("change", { bubbles: true }));
  }

  #labelOf({ kind, label, otro_nombre: other }) {
    const named = other ? `${label} (${other})` : label;
    return this.kind.includes(",") && kind !== "localidad" ? `${named} · ${kind}` : named;
  }

  // The elements that an attribute names.
  #named(attribute) {
    const root = /** @type {Document | ShadowRoot} */ (this.getRootNode());
    const ids = (this.getAttribute(attribute) ?? "").split(/\s+/).filter(Boolean);
    return ids.flatMap((id) => root.getElementById?.(id) ?? []);
  }

  // The name of the field comes from attributes or from a <label> outside, which can't name what is in a shadow tree.
  #describe() {
    const textOf = (elements) => [...elements].map(({ textContent }) => textContent?.trim()).join(" ");
    const given = textOf(this.#named("aria-labelledby")) || this.getAttribute("aria-label");
    const name = given || (this.label ? "" : textOf(this.labels ?? []));
    this.#label.textContent = this.label;
    this.#label.hidden = !this.label;
    if (name) this.#input.setAttribute("aria-label", name);
    else this.#input.removeAttribute("aria-label");
    this.#input.placeholder = this.placeholder;
    this.#input.readOnly = this.readOnly;
    this.#input.setAttribute("aria-required", String(this.required));
    this.#input.setAttribute("aria-invalid", this.getAttribute("aria-invalid") ?? "false");
    this.#list.setAttribute("aria-label", name || this.label || this.#words.list);
    this.#input.ariaDescribedByElements = this.#named("aria-describedby");
  }

  #validate() {
    const isEmpty = !this.#input.value.trim();
    const isUnknown = this.#value !== "" && this.#value === this.#unknown && !this.#place;
    const badInput = isUnknown || (!this.#value && !isEmpty);
    const valueMissing = isEmpty && this.required && !this.#value;
    const { unknown, unchosen, required } = this.#words;
    const error = isUnknown ? unknown : badInput ? unchosen : valueMissing ? required : "";
    FormField.setFault(this, { badInput, valueMissing }, error, this.#input);
  }
}

reflect(LocalidadField, TEXTS, FLAGS);
globalThis.customElements?.define("localidad-field", LocalidadField);
