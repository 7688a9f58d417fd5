// The answers, and the choices of the person where several places are possible.
import { sentenceOf } from "./match_sentences.js";
import { Suggestions } from "./page.js";

const STEP = 100; // rows drawn at once: a browser freezes over ten thousand
const NONE = "none"; // the choice of none of the candidates

const byId = (id) => document.getElementById(id);
const textsOf = (id) =>
  Object.fromEntries([...byId(id).content.children].map((one) => [one.className, one.textContent]));
export const words = textsOf("words");
const faultNames = textsOf("faults");
const inFile = textsOf("outcomes"); // what a file says of a row; in English these are codes
export const count = (number) => number.toLocaleString("en");
const alike = (one, other) => one.localeCompare(other, "es", { sensitivity: "base" }) === 0;
const hasCandidates = ({ answer }) => answer.candidates.length > 0;
const others = (rows) => (rows > 1 ? ` (${words.appliesTo} ${count(rows)} ${words.rows})` : "");
const isCertain = ({ outcome }) => outcome === "exact" || outcome === "sure";

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
    this.offerSearch = new Map(); // shows the search of a question when its choice asks for one
    this.searched = new Map(); // the places that were searched for, by key
    this.isSaved = true;
  }

  // `headers` are those of the columns that tell the place, `release` the one that answered.
  show(answers, headers, release) {
    [this.headers, this.release] = [headers, release];
    this.answers = answers.map((answer, index) => ({ ...answer, number: index + 1 }));
    this.questions = new Map();
    for (const answer of this.answers.filter((one) => !isCertain(one))) {
      const key = this.keyOf(answer);
      const question = this.questions.get(key) ?? { key, answer, rows: 0 };
      question.rows += 1;
      this.questions.set(key, question);
      answer.key = question.key;
    }
    const asked = [...this.questions.values()];
    const isOpen = ({ answer }) => answer.outcome === "ambiguous";
    const [open, unlikely] = [asked.filter(isOpen), asked.filter((one) => !isOpen(one) && hasCandidates(one))];
    this.showTotals();
    byId("result").hidden = false;
    drawInSteps(byId("decide"), [...open, ...unlikely], (one) => this.drawQuestion(one), (drawn) => {
      this.offerSearches(drawn);
      this.describePlaces(drawn);
    });
    const unfound = asked.filter((one) => !hasCandidates(one));
    drawInSteps(byId("unfound"), unfound, (one) => this.drawUnfound(one), (drawn) => this.offerSearches(drawn));
    drawInSteps(byId("found"), this.answers.filter(isCertain), (one) => this.drawFound(one));
    this.showDecided();
  }

  // Rows with the same candidates and the same faults ask the same question; without candidates, those that say the same.
  keyOf({ outcome, candidates, sent }) {
    return JSON.stringify([outcome, candidates.length ? candidates : this.cellsOf(sent)]);
  }

  showTotals() {
    byId("totals").replaceChildren(...["exact", "sure", "ambiguous", "none", "problem"].map((outcome) => {
      const rows = this.answers.filter((one) => one.outcome === outcome).length;
      return element("li", {}, element("strong", {}, count(rows)), rows === 1 && inFile[outcome] !== outcome ? inFile[outcome] : words[outcome]);
    }));
    const shares = { certain: ["exact", "sure"], doubtful: ["ambiguous"], unknown: ["none", "problem"] };
    const parts = Object.entries(shares).map(([share, outcomes]) =>
      [share, this.answers.filter((one) => outcomes.includes(one.outcome)).length]);
    byId("shares").setAttribute("aria-label", parts.map(([share, rows]) => `${count(rows)} ${words[share]}`).join(", "));
    byId("shares").replaceChildren(...parts.filter(([, rows]) => rows).map(([share, rows]) => {
      const part = element("span", { className: share }, `${count(rows)} ${words[share]}`);
      part.style.flexGrow = rows;
      return part;
    }));
  }

  showDecided() {
    const asked = [...this.questions.values()].filter(hasCandidates);
    const decided = asked.filter(({ key }) => this.choices.has(key)).length;
    byId("decided").textContent = asked.length ? `${words.decided}: ${count(decided)} ${words.of} ${count(asked.length)}` : "";
  }

  drawQuestion({ key, answer, rows }) {
    const choice = (value, ...content) => {
      const input = element("input", { type: "radio", name: `row-${answer.number}`, value });
      input.checked = this.choices.get(key) === value;
      input.addEventListener("change", () => this.choose(key, value));
      return element("label", {}, input, element("span", {}, ...content));
    };
    const candidates = answer.candidates.map((one) => element("div", { className: "choice" },
      choice(one.cvegeo, element("strong", {}, one.label), placeholder(one), ...drawFaults(one)),
      this.link(one)));
    const said = element("strong", {}, this.describe(answer));
    return element("fieldset", { className: "question" },
      element("legend", {}, `${words.row} ${count(answer.number)}: `, said, others(rows)),
      ...candidates, element("div", { className: "choice" }, choice(NONE, words.noneOfThese)),
      this.drawSearch(key, answer));
  }

  // Who chooses none of the candidates, or has none, may search for the place.
  drawSearch(key, { number, candidates }) {
    const isAlone = !candidates.length;
    const id = `search-${number}`;
    const input = element("input", { id, type: "search", maxLength: 100, autocomplete: "off" });
    input.setAttribute("form", "match"); // which knows the release
    Object.assign(input.dataset, { suggest: this.address, none: words.noResults });
    const typing = element("div", { className: "typing" }, input);
    const label = element("label", { htmlFor: id, className: isAlone ? "visually-hidden" : "" }, words.search);
    const box = element("div", { className: "another" }, label, typing);
    if (isAlone) input.placeholder = words.search;
    input.value = this.searched.get(this.choices.get(key))?.label ?? "";
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
    input.addEventListener("choose", (event) => {
      event.preventDefault();
      const { cvegeo, label } = event.detail;
      this.searched.set(cvegeo, { cvegeo, label });
      this.choose(key, cvegeo);
    });
    input.addEventListener("input", () => { // it is no longer the place that was chosen
      if (this.searched.has(this.choices.get(key))) this.choose(key, isAlone ? undefined : NONE);
    });
    this.offerSearch.set(key, () => {
      box.hidden = !isAlone && !this.isElsewhere(key);
      if (!box.hidden && !input.role) new Suggestions(input);
    });
    return box;
  }

  // Shows the searches of questions that have been drawn.
  offerSearches(drawn) {
    for (const { key } of drawn) this.offerSearch.get(key)();
  }

  // Whether none of a question's candidates is chosen, or a place that was searched for.
  isElsewhere(key) {
    const value = this.choices.get(key);
    return value === NONE || this.searched.has(value);
  }

  // Says of the candidates how many live there; the answers have no room for that.
  async describePlaces(questions) {
    const keys = [...new Set(questions.flatMap(({ answer }) => answer.candidates.map(({ cvegeo }) => cvegeo)))];
    for (let at = 0; at < keys.length; at += STEP) {
      const asked = new URLSearchParams({ cvegeo: keys.slice(at, at + STEP).join(","), fields: "cvegeo,ambito,poblacion",
        page_size: STEP, format: "json", release: this.release });
      const answer = await fetch(`${this.address}?${asked}`).catch(() => null);
      for (const { cvegeo, ambito, poblacion } of answer?.ok ? (await answer.json()).results : []) {
        const people = poblacion === null ? words.noData : `${count(poblacion)} ${words.inhabitants}`;
        for (const one of byId("decide").querySelectorAll(`[data-of="${cvegeo}"]`)) {
          one.textContent = [words[ambito], people].filter(Boolean).join(" · ");
        }
      }
    }
  }

  drawRow(answer, rows, ...cells) {
    const row = element("tr", { role: "row" }, element("td", { className: "number" }, count(answer.number)),
      element("td", { className: "text" }, this.describe(answer), others(rows)), ...cells);
    for (const cell of row.children) cell.role = "cell";
    return row;
  }

  drawUnfound({ key, answer, rows }) {
    return this.drawRow(answer, rows, element("td", { className: "text" }, ...reasonOf(answer), this.drawSearch(key, answer)));
  }

  drawFound(answer) {
    return this.drawRow(answer, 1, element("td", { className: "text" }, answer.label),
      element("td", {}, this.link(answer)),
      element("td", { className: "text" }, ...drawFaults(answer)));
  }

  describe({ sent }) {
    return this.cellsOf(sent).join(", ").slice(0, 200);
  }

  // Returns the cells that tell the place, or all if there are none.
  cellsOf(sent) {
    const cells = this.headers.map((header) => sent[header]).filter(Boolean);
    return cells.length ? cells : Object.values(sent).filter(Boolean);
  }

  link({ id, cvegeo }) {
    return element("a", { href: `${this.address}${id}/?${this.detail}`, target: "_blank", rel: "noopener" }, cvegeo);
  }

  choose(key, value) {
    if (value === undefined) this.choices.delete(key);
    else this.choices.set(key, value);
    this.isSaved = false;
    this.offerSearch.get(key)();
    this.showDecided();
  }

  // Returns the cells of a row's answer that a choice changes; none if nobody has chosen.
  changesOf(index) {
    const { key, candidates, outcome } = this.answers[index];
    const value = this.choices.get(key);
    if (value === undefined) return {};
    const place = candidates.find(({ cvegeo }) => cvegeo === value) ?? this.searched.get(value);
    const { cvegeo = "", label = "", score = "" } = place ?? {};
    const solved = outcome === "problem" ? { problem: "" } : {};
    return { outcome: place ? inFile.chosen : inFile.none, cvegeo, label, score: String(score), margin: "", faults: "", ...solved };
  }
}

// Where it will be said how many live at a place.
function placeholder({ cvegeo }) {
  const place = element("span", { className: "fault" });
  place.dataset.of = cvegeo;
  return place;
}

// `after` is told what was drawn.
function drawInSteps(section, items, draw, after = () => {}) {
  const [list, more] = [".list", ".more"].map((one) => section.querySelector(one));
  let drawn = 0;
  const step = () => {
    const next = items.slice(drawn, drawn + STEP).map(draw);
    drawn += next.length;
    list.append(...next);
    after(items.slice(drawn - next.length, drawn));
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
