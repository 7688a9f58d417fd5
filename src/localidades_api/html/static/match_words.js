// The words of the page, in its language.

export const byId = (id) => document.getElementById(id);

export const textsOf = (id) =>
  Object.fromEntries([...byId(id).content.children].map((one) => [one.className, one.textContent]));

export const words = textsOf("words");
const numbers = new Intl.NumberFormat(document.documentElement.lang === "es" ? "es-MX" : "en");
export const count = (number) => numbers.format(number);

// Returns words with values in place of their names.
export const say = (word, values) => words[word].replace(/\{(\w+)\}/g, (_, name) => values[name]);

// Returns a number of things: `one` is the word for a single thing, `several` for more.
export const amount = (number, one, several) => say(number === 1 ? one : several, { count: count(number) });

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
