// The answers, and the choices of the person where several places are possible.
import { sentenceOf } from "./match_sentences.js";

const STEP = 100; // rows drawn at once: a browser freezes over ten thousand
const NONE = "none"; // the choice of none of the candidates

const byId = (id) => document.getElementById(id);
const textsOf = (id) =>
  Object.fromEntries([...byId(id).content.children].map((one) => [one.className, one.textContent]));
export const words = textsOf("words");
const faultNames = textsOf("faults");
export const count = (number) => number.toLocaleString("en");
const alike = (one, other) => one.localeCompare(other, "es", { sensitivity: "base" }) === 0;
const isCertain = ({ outcome }) => outcome === "exact" || outcome === "sure";
// Rows with the same candidates and the same faults ask the same question.
const questionOf = ({ outcome, candidates }) => JSON.stringify([outcome, candidates]);

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export class Answers {
  constructor(address, detail) {
    this.address = address; // of the localities
    this.detail = detail; // the query of a locality's page
    this.choices = new Map(); // the key chosen for each question; kept when rows are matched again
    this.isSaved = true;
  }

  // `headers` are those of the columns that tell the place.
  show(answers, headers) {
    this.headers = headers;
    this.answers = answers.map((answer, index) => ({ ...answer, number: index + 1 }));
    this.questions = new Map();
    for (const answer of this.answers.filter(({ candidates }) => candidates.length)) {
      const key = questionOf(answer);
      const question = this.questions.get(key) ?? { key, answer, rows: 0 };
      question.rows += 1;
      this.questions.set(key, question);
    }
    const asked = [...this.questions.values()];
    const isOpen = ({ answer }) => answer.outcome === "ambiguous";
    const [open, unlikely] = [asked.filter(isOpen), asked.filter((one) => !isOpen(one))];
    this.showTotals();
    byId("result").hidden = false;
    drawInSteps(byId("decide"), [...open, ...unlikely], (one) => this.drawQuestion(one));
    const unfound = this.answers.filter((one) => !isCertain(one) && !one.candidates.length);
    drawInSteps(byId("unfound"), unfound, (one) => this.drawUnfound(one));
    drawInSteps(byId("found"), this.answers.filter(isCertain), (one) => this.drawFound(one));
    this.showDecided();
  }

  showTotals() {
    const amount = (outcome) => count(this.answers.filter((one) => one.outcome === outcome).length);
    byId("totals").replaceChildren(...["exact", "sure", "ambiguous", "none", "problem"].map((outcome) =>
      element("li", {}, element("strong", {}, amount(outcome)), words[outcome])));
  }

  showDecided() {
    const decided = [...this.questions.keys()].filter((key) => this.choices.has(key)).length;
    byId("decided").textContent = this.questions.size
      ? `${words.decided}: ${count(decided)} ${words.of} ${count(this.questions.size)}`
      : "";
  }

  drawQuestion({ key, answer, rows }) {
    const choice = (value, ...content) => {
      const input = element("input", { type: "radio", name: `row-${answer.number}`, value });
      input.checked = this.choices.get(key) === value;
      input.addEventListener("change", () => this.choose(key, value));
      return element("label", {}, input, element("span", {}, ...content));
    };
    const candidates = answer.candidates.map((one) => element("div", { className: "choice" },
      choice(one.cvegeo, element("strong", {}, one.label), ` · ${words.score} ${one.score}`,
        ...drawFaults(one)),
      this.link(one)));
    const others = rows > 1 ? ` (${words.appliesTo} ${count(rows)} ${words.rows})` : "";
    const said = element("strong", {}, this.describe(answer));
    return element("fieldset", { className: "question" },
      element("legend", {}, `${words.row} ${count(answer.number)}: `, said, others),
      ...candidates, element("div", { className: "choice" }, choice(NONE, words.noneOfThese)));
  }

  drawRow(answer, ...cells) {
    return element("tr", {}, element("td", { className: "number" }, count(answer.number)),
      element("td", { className: "text" }, this.describe(answer)), ...cells);
  }

  drawUnfound(answer) {
    return this.drawRow(answer, element("td", { className: "text" }, ...reasonOf(answer)));
  }

  drawFound(answer) {
    return this.drawRow(answer, element("td", { className: "text" }, answer.label),
      element("td", {}, this.link(answer)),
      element("td", { className: "text" }, ...drawFaults(answer)));
  }

  describe({ sent }) {
    const cells = this.headers.map((header) => sent[header]).filter(Boolean);
    return (cells.length ? cells : Object.values(sent).filter(Boolean)).join(", ").slice(0, 200);
  }

  link({ id, cvegeo }) {
    return element("a", { href: `${this.address}${id}/?${this.detail}`, target: "_blank", rel: "noopener" }, cvegeo);
  }

  choose(key, value) {
    this.choices.set(key, value);
    this.isSaved = false;
    this.showDecided();
  }

  // Returns the cells of a row's answer that a choice changes; none if nobody has chosen.
  changesOf(index) {
    const key = questionOf(this.answers[index]);
    const value = this.choices.get(key);
    if (value === undefined) return {};
    const place = this.answers[index].candidates.find(({ cvegeo }) => cvegeo === value);
    const { cvegeo = "", label = "", score = "" } = place ?? {};
    return { outcome: place ? "chosen" : "none", cvegeo, label, score: String(score), margin: "", faults: "" };
  }
}

function drawInSteps(section, items, draw) {
  const [list, more] = [".list", ".more"].map((one) => section.querySelector(one));
  let drawn = 0;
  const step = () => {
    const next = items.slice(drawn, drawn + STEP).map(draw);
    drawn += next.length;
    list.append(...next);
    more.hidden = drawn === items.length;
    more.textContent = `${words.more} (${count(items.length - drawn)})`;
    return next[0];
  };
  list.replaceChildren();
  section.hidden = items.length === 0;
  more.onclick = () => step().querySelector("input, a")?.focus();
  step();
}

function reasonOf({ problem, withdrawn }) {
  if (problem) return sentenceOf(problem);
  return [withdrawn ? `${words.withdrawn} ${withdrawn}.` : words.unlike];
}

// What only one side has is told at once: three words that the row has besides are one line.
function drawFaults({ faults }) {
  const lines = new Map();
  for (const { code, given, found } of faults) {
    const key = given && found ? JSON.stringify([code, given, found]) : `${code} ${given ? "given" : "found"}`;
    const line = lines.get(key) ?? { code, given: [], found: [] };
    if (given) line.given.push(given);
    if (found) line.found.push(found);
    lines.set(key, line);
  }
  return [...lines.values()].map(({ code, given, found }) =>
    element("span", { className: "fault" }, `${faultNames[code] ?? code}: `, ...partsOf(code, given, found)));
}

function partsOf(code, given, found) {
  const says = (word, texts) => [`${word} `, ...texts.flatMap((text, at) => [at ? ", " : "", element("q", {}, text)])];
  if (code === "distance") return given;
  if (code === "municipio" && alike(given[0], found[0] ?? "")) return says(words.elsewhere, found);
  if (given.length && found.length) return [...says(words.given, given), ", ", ...says(words.found, found)];
  return given.length ? says(words.onlyGiven, given) : says(words.onlyFound, found);
}
