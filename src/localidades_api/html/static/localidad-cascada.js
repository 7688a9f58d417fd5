// <localidad-cascada>: estado, municipio and localidad, each chosen within the one before. A form gets a key for each of
// them. docs/guides/field.md describes it.
import {
  FormField, addressOf, adopt, create, explain, keyOf, languageOf, read, reflect, styleSheet,
} from "./localidad-field.js";

const LEVELS = ["estado", "municipio", "localidad"];
const DIGITS = { estado: 2, municipio: 5, localidad: 9 };
const MANY = 1000; // records a page, more than any estado has municipios

const WORDS = {
  en: {
    estado: "Estado", municipio: "Municipio", localidad: "Locality",
    choose: { estado: "Choose an estado.", municipio: "Choose a municipio." },
  },
  es: {
    estado: "Estado", municipio: "Municipio", localidad: "Localidad",
    choose: { estado: "Elija un estado.", municipio: "Elija un municipio." },
  },
};

const STYLES = styleSheet(`
:host { display: flex; flex-wrap: wrap; gap: .75em 1em; align-items: end; }
:host([hidden]) { display: none; }
div { flex: 1 1 14rem; min-inline-size: 0; }
label { display: block; margin-block-end: .25em; }
select { box-sizing: border-box; inline-size: 100%; min-block-size: 2.4em; padding: .45em .6em; font: inherit; color: FieldText; background: Field;
  border: 1px solid color-mix(in srgb, FieldText 60%, Field); border-radius: .3em; }
select:disabled { color: GrayText; cursor: not-allowed; }
localidad-field { inline-size: 100%; }
p { flex-basis: 100%; margin: 0; }
p:empty { block-size: 0; margin-block-start: -.75em; }
`);

const TEXTS = ["release", "service"];
const FLAGS = ["required", "disabled"];

/** @typedef {import("./localidad-field.js").Reflected} Reflected */

export class LocalidadCascada extends /** @type {new () => FormField & Reflected} */ (/** @type {unknown} */ (FormField)) {
  static observedAttributes = ["value", "required", ...TEXTS];

  #controls = {
    estado: create("select", { id: "estado", part: "select" }),
    municipio: create("select", { id: "municipio", part: "select" }),
    localidad: create("localidad-field", { id: "localidad", part: "field", exportparts: "input, list, option, active, message" }),
  };
  #labels = {};
  #status = create("p", { part: "message", role: "status" });
  #keys = { estado: "", municipio: "", localidad: "" };
  #requests = { estado: new AbortController(), municipio: new AbortController() };
  #isDisabled = false;
  #isReady = false;
  #isWrong = false; // the key that was given is none of the catalogue

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    root.adoptedStyleSheets = [STYLES];
    for (const level of LEVELS) {
      const control = this.#controls[level];
      this.#labels[level] = create("label", { part: "label", for: level });
      root.append(create("div", {}, this.#labels[level], control));
      // `input` passes the shadow root, so the keys have to change before the page sees it.
      control.addEventListener("input", () => this.#choose(level, control.value));
      control.addEventListener("change", () => this.dispatchEvent(new Event("change", { bubbles: true })));
    }
    this.#controls.localidad.addEventListener("unknown", () => this.#update());
    for (const level of ["estado", "municipio"]) {
      this.#controls[level].addEventListener("focus", () => {
        if (this.#status.textContent) this.#offer(level); // which failed
      });
    }
    root.append(this.#status);
  }

  connectedCallback() {
    this.#isReady = true;
    adopt(this, ["value", ...TEXTS, ...FLAGS]);
    const words = WORDS[languageOf(this)];
    for (const level of LEVELS) this.#labels[level].textContent = words[level];
    this.#controls.localidad.lang = languageOf(this);
    this.#controls.localidad.setAttribute("aria-label", words.localidad);
    this.#start();
  }

  disconnectedCallback() {
    this.#isReady = false;
    for (const request of Object.values(this.#requests)) request.abort();
  }

  attributeChangedCallback(name, _, after) {
    if (name === "value") this.value = after;
    else if (name !== "required" && this.#isReady) this.#start();
    else this.#update();
  }

  formResetCallback() {
    this.#take(this.getAttribute("value"));
  }

  formDisabledCallback(isDisabled) {
    this.#isDisabled = isDisabled;
    this.#update();
  }

  formStateRestoreCallback(state) {
    this.value = state;
  }

  // The longest key that is chosen: of nine digits, five or two.
  get value() {
    const { estado, municipio, localidad } = this.#keys;
    return localidad || municipio || estado;
  }

  // Frameworks set the key that it has after each letter, which must stay.
  set value(given) {
    const text = String(given ?? "");
    if (keyOf(text) !== this.value || (text && !this.value)) this.#take(text);
  }

  get place() { return this.#controls.localidad.place; }

  #take(given) {
    const key = keyOf(given);
    this.#isWrong = !key && Boolean(given?.trim());
    for (const level of LEVELS) this.#keys[level] = key.length >= DIGITS[level] ? key.slice(0, DIGITS[level]) : "";
    if (this.#isReady) this.#start();
    else this.#update();
  }

  #start() {
    for (const name of TEXTS) this.#controls.localidad[name] = this.getAttribute(name);
    this.#fill();
    this.#offer("estado");
    this.#offer("municipio");
  }

  #choose(level, key) {
    this.#isWrong = false;
    for (const other of LEVELS.slice(LEVELS.indexOf(level))) this.#keys[other] = "";
    this.#keys[level] = key;
    if (level !== "localidad") this.#fill();
    if (level === "estado") this.#offer("municipio");
    this.#update();
  }

  #fill() {
    const { localidad } = this.#controls;
    localidad.formResetCallback(); // takes back what was typed too, for which `value` would not do
    localidad.municipio = this.#keys.municipio || null;
    if (this.#keys.localidad) localidad.value = this.#keys.localidad;
  }

  // Fills a list; the last one that was asked for remains.
  async #offer(level) {
    const select = this.#controls[level];
    this.#requests[level].abort();
    const { signal } = (this.#requests[level] = new AbortController());
    select.replaceChildren(new Option("—", ""));
    this.#update();
    if (level === "municipio" && !this.#keys.estado) return;
    const query = level === "municipio" ? { estado_id: this.#keys.estado, page_size: MANY } : {};
    try {
      const { results } = await read(addressOf(this, `${level}s/`, query), signal);
      if (signal.aborted) return;
      results.sort((one, other) => one.nombre.localeCompare(other.nombre, "es"));
      for (const { id, nombre } of results) select.add(new Option(nombre, String(id).padStart(DIGITS[level], "0")));
      select.value = this.#keys[level];
      this.#status.textContent = "";
      if (select.selectedIndex < 0) this.#reject(level);
    } catch (error) {
      if (!signal.aborted) this.#status.textContent = explain(error, languageOf(this));
    }
  }

  // A list has no such key, so that nobody would see what the form sends.
  #reject(level) {
    this.#choose(level, "");
    this.#controls[level].value = "";
    this.#isWrong = true;
    this.#update();
  }

  #update() {
    const { estado, municipio, localidad } = this.#controls;
    estado.disabled = this.#isDisabled;
    municipio.disabled = this.#isDisabled || !this.#keys.estado;
    localidad.disabled = this.#isDisabled || !this.#keys.municipio;
    localidad.required = this.required;
    const data = new FormData();
    for (const level of LEVELS) {
      const name = this.getAttribute(`name-${level}`) ?? level;
      if (name) data.set(name, this.#keys[level]);
    }
    FormField.setValue(this, data, this.value);
    const missing = (this.required || this.#isWrong) && ["estado", "municipio"].find((level) => !this.#keys[level]);
    if (missing) {
      const flags = { valueMissing: this.required, badInput: this.#isWrong };
      FormField.setFault(this, flags, WORDS[languageOf(this)].choose[missing], this.#controls[missing]);
    } else {
      const { badInput, valueMissing } = localidad.validity;
      FormField.setFault(this, { badInput, valueMissing }, localidad.validationMessage, localidad.shadowRoot.querySelector("input"));
    }
  }
}

reflect(LocalidadCascada, TEXTS, FLAGS);
globalThis.customElements?.define("localidad-cascada", LocalidadCascada);
