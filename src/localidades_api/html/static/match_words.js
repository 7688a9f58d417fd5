// The words of the page, in its language.

/**
 * @typedef {{
 *   match: HTMLFormElement & { dataset: Record<"resource" | "detail" | "fields", string> },
 *   file: HTMLInputElement & { files: FileList }, rows: HTMLTextAreaElement, send: HTMLButtonElement,
 *   meter: HTMLProgressElement, sheet: HTMLSelectElement, "header-row": HTMLInputElement, kind: HTMLSelectElement,
 *   headless: HTMLInputElement, "of-estado": HTMLSelectElement, "of-municipio": HTMLSelectElement, sure: HTMLInputElement, bound: HTMLInputElement, order: HTMLSelectElement, difference: HTMLSelectElement,
 *   accept: HTMLButtonElement, copy: HTMLButtonElement, undo: HTMLButtonElement, decisions: HTMLInputElement & { files: FileList }, open: HTMLButtonElement, placed: HTMLDetailsElement, workbook: HTMLButtonElement,
 *   csv: HTMLButtonElement, roles: HTMLTemplateElement, words: HTMLTemplateElement, outcomes: HTMLTemplateElement,
 *   faults: HTMLTemplateElement, example: HTMLTemplateElement, sentences: HTMLTemplateElement,
 * }} Elements what the page has, by id; any other is an HTMLElement
 */

/** @type {<Id extends string>(id: Id) => Id extends keyof Elements ? Elements[Id] : HTMLElement} */
export const byId = (id) => /** @type {any} */ (document.getElementById(id));

/** @param {"words" | "outcomes" | "faults"} id */
export const textsOf = (id) =>
  Object.fromEntries([...byId(id).content.children].map((one) => [one.className, one.textContent]));

export const words = textsOf("words");
const numbers = new Intl.NumberFormat(document.documentElement.lang === "es" ? "es-MX" : "en");
export const count = (number) => numbers.format(number);

// Returns a text without accents and capitals.
export const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

// Returns words with values in place of their names.
export const say = (word, values) => words[word].replace(/\{(\w+)\}/g, (_, name) => values[name]);

// Returns a number of things: `one` is the word for a single thing, `several` for more.
export const amount = (number, one, several) => say(number === 1 ? one : several, { count: count(number) });
