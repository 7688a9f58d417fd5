// The sentences of the service in the language of the page; the service has them in English.
import { byId } from "./match_words.js";

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
