// The elements of the page, its words, and the sentences of the service in its language; the service has them in English.

/**
 * @typedef {{
 *   match: HTMLFormElement & { dataset: Record<"resource" | "detail" | "fields", string> },
 *   file: HTMLInputElement & { files: FileList }, rows: HTMLTextAreaElement, send: HTMLButtonElement,
 *   meter: HTMLProgressElement, sheet: HTMLSelectElement, "header-row": HTMLInputElement, kind: HTMLSelectElement,
 *   headless: HTMLInputElement, "of-estado": HTMLSelectElement, "of-municipio": HTMLSelectElement,
 *   sure: HTMLInputElement, bound: HTMLInputElement, order: HTMLSelectElement, difference: HTMLSelectElement,
 *   accept: HTMLButtonElement, copy: HTMLButtonElement, undo: HTMLButtonElement,
 *   decisions: HTMLInputElement & { files: FileList }, open: HTMLButtonElement, placed: HTMLDetailsElement,
 *   workbook: HTMLButtonElement, csv: HTMLButtonElement, roles: HTMLTemplateElement, words: HTMLTemplateElement, outcomes: HTMLTemplateElement,
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

const template = byId("sentences");
const or = template.dataset.or;
const known = [...template.content.children].map((pair) => {
  const [english, own] = [...pair.children].map((one) => one.textContent);
  const parts = english.split(/\{(\w+)\}/).map((part, at) => (at % 2 ? `(?<${part}>.+)` : escape(part)));
  return { pattern: new RegExp(`^${parts.join("")}$`, "s"), own };
});

function escape(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

// Returns a sentence as nodes: its words between backticks are code.
export function sentenceOf(english) {
  return translate(english).split("`").map((part, at) => {
    if (at % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}

function translate(sentence) {
  for (const { pattern, own } of known) {
    const found = sentence.match(pattern);
    if (found) return own.replace(/\{(\w+)\}/g, (_, name) => found.groups[name].replaceAll(", or ", or));
  }
  const sentences = sentence.split(/(?<=\.) (?=[A-Z`])/); // a row may have several
  return sentences.length > 1 ? sentences.map(translate).join(" ") : sentence;
}
