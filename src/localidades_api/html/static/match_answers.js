// The answers, and the choices of the person where several places are possible.
import { sentenceOf } from "./match_sentences.js";
import { amount, byId, count, say, textsOf, words } from "./match_words.js";
import { element, list, offerSuggestions } from "./page.js";

const STEP = 100; // rows drawn at once: a browser freezes over ten thousand
const NONE = "none"; // the choice of none of the candidates
const OUTCOMES = ["exact", "sure", "ambiguous", "none", "problem"];
// What stands below a table, in a row without a municipio or an estado.
const NOT_A_PLACE = /^(sub|gran )?total(es)?\b|^(fuentes?|notas?|source|elabor\p{L}+)[^:]{0,20}:/iu;
// The columns of a row's answer, before those of its place.
const COLUMNS = ["outcome", "cvegeo", "label", "score", "margin", "faults", "candidates", "withdrawn", "problem"];

const faultNames = textsOf("faults");
const inFile = textsOf("outcomes"); // what a file says of a row; in English these are codes
const alike = (one, other) => one.localeCompare(other, "es", { sensitivity: "base" }) === 0;
const hasCandidates = ({ answer }) => answer.candidates.length > 0;
const others = (rows) => (rows > 1 ? ` (${say("appliesTo", { count: count(rows) })})` : "");
const isCertain = ({ outcome }) => outcome === "exact" || outcome === "sure";

export class Answers {
  constructor(address, detail) {
    this.address = address; // of the localities
    this.detail = detail; // the query of a locality's page, with its `?`
    this.choices = new Map(); // the key chosen for each question; kept when rows are matched again
    this.accepted = new Map(); // those of them that were accepted all at once
    this.drawn = new Map(); // shows the choice of each question that is drawn
    this.searched = new Map(); // the places that were searched for, by key
    /** @type {any[]} */
    this.asked = []; // the questions that have candidates
    this.isSaved = true;
    byId("accept").addEventListener("click", () => this.acceptLikeliest());
    byId("undo").addEventListener("click", () => this.undoAccepted());
  }

  // `headers` are those of the columns that tell the place, `release` the one that answered, `fields` what the file says of
  // a place.
  show(answers, { headers, release, fields }) {
    this.headers = headers;
    this.release = release;
    this.fields = fields;
    this.answers = answers.map((answer) => ({ ...answer, number: answer.row }));
    for (const answer of this.answers) answer.isApart = this.hasNoPlace(answer);
    this.questions = new Map();
    for (const answer of this.answers.filter((one) => !isCertain(one) && !one.isApart)) {
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
    this.drawn.clear();
    this.asked = [...open, ...unlikely];
    drawInSteps(byId("decide"), this.asked, (one) => this.drawQuestion(one), (drawn) => {
      this.showChoices(drawn);
      this.describePlaces(drawn);
    });
    const unfound = asked.filter((one) => !hasCandidates(one));
    drawInSteps(byId("unfound"), unfound, (one) => this.drawUnfound(one), (drawn) => this.showChoices(drawn));
    drawInSteps(byId("found"), this.answers.filter(isCertain), (one) => this.drawFound(one));
    const apart = this.answers.filter((one) => one.isApart);
    byId("apart").getElementsByTagName("summary")[0].textContent = amount(apart.length, "oneApart", "severalApart");
    drawInSteps(byId("apart"), apart, (one) => this.drawRow(one, 1));
    this.showDecided();
  }

  // Rows with the same candidates and the same faults ask the same question; without candidates, those that say the same.
  keyOf({ outcome, candidates, sent }) {
    return JSON.stringify([outcome, candidates.length ? candidates : this.cellsOf(sent)]);
  }

  // Whether a row is a total, a source or a note below the table, or has nothing in the columns that tell the place.
  hasNoPlace(answer) {
    if (isCertain(answer) || !this.headers.length) return false;
    const cells = this.headers.map((header) => answer.sent[header]).filter(Boolean);
    const texts = cells.filter((cell) => /\p{L}/u.test(cell));
    return !cells.length || (texts.length === 1 && NOT_A_PLACE.test(texts[0].trim()));
  }

  showTotals() {
    const parts = OUTCOMES.map((outcome) =>
      [outcome, this.answers.filter((one) => one.outcome === outcome && !one.isApart).length]).filter(([, rows]) => rows);
    byId("shares").replaceChildren(...parts.map(([outcome, rows]) => {
      const part = element("span", { className: outcome });
      part.style.flexGrow = String(rows);
      return part;
    }));
    byId("totals").replaceChildren(...parts.map(([outcome, rows]) =>
      element("li", { className: outcome }, amount(rows, `${outcome}1`, outcome))));
  }

  showDecided() {
    const decided = this.asked.filter(({ key }) => this.choices.has(key));
    byId("decided").textContent = this.asked.length
      ? say("decided", { count: count(decided.length), all: count(this.asked.length) }) : "";
    const left = this.asked.filter(({ key }) => !this.choices.has(key));
    const rows = left.reduce((sum, question) => sum + question.rows, 0);
    const right = left.reduce((sum, { answer, rows: times }) => sum + times * answer.candidates[0].score, 0);
    byId("accept").hidden = !left.length;
    byId("accept").textContent = say("acceptLikeliest", { share: Math.round(right / rows) });
    const accepted = [...this.accepted].filter(([key, value]) => this.choices.get(key) === value).length;
    byId("undo").hidden = !accepted;
    byId("undo").textContent = say("undo", { count: count(accepted) });
  }

  acceptLikeliest() {
    const left = this.asked.filter(({ key }) => !this.choices.has(key));
    for (const { key, answer } of left) {
      const [{ cvegeo }] = answer.candidates;
      this.choices.set(key, cvegeo);
      this.accepted.set(key, cvegeo);
    }
    this.changed(left);
    byId("undo").focus();
  }

  // Takes back what was accepted at once, but for what the person has changed since.
  undoAccepted() {
    for (const [key, value] of this.accepted) if (this.choices.get(key) === value) this.choices.delete(key);
    this.accepted.clear();
    this.changed(this.asked);
    byId("accept").focus();
  }

  changed(questions) {
    this.isSaved = false;
    this.showChoices(questions);
    this.showDecided();
    byId("result").dispatchEvent(new CustomEvent("decide"));
  }

  drawQuestion({ key, answer, rows }) {
    const inputs = [];
    const choice = (value, number, ...content) => {
      const input = element("input", { type: "radio", name: `row-${answer.number}`, value });
      input.addEventListener("change", () => this.choose(key, value));
      inputs.push(input);
      const digit = element("kbd", { ariaHidden: "true" }, number);
      return element("label", {}, input, digit, element("span", {}, ...content));
    };
    const candidates = answer.candidates.map((one, at) => element("div", { className: "choice" },
      choice(one.cvegeo, at + 1, element("strong", {}, one.label), placeholder(one), ...drawFaults(one)),
      element("span", { className: "share" }, `${Math.round(one.score)} %`), this.link(one)));
    const said = element("strong", {}, this.describe(answer));
    const question = element("fieldset", { className: "question", tabIndex: -1 },
      element("legend", {}, `${words.row} ${count(answer.number)}: `, said, others(rows)),
      ...candidates, element("div", { className: "choice" }, choice(NONE, 0, words.noneOfThese)));
    const showSearch = this.drawSearch(question, key, answer);
    this.drawn.set(key, () => {
      for (const input of inputs) input.checked = this.choices.get(key) === input.value;
      showSearch();
    });
    return question;
  }

  // Who chooses none of the candidates, or has none, may search for the place. Returns what shows the search if the choice
  // asks for one.
  drawSearch(parent, key, { number, candidates }) {
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
      const { id, cvegeo, label } = event.detail;
      this.searched.set(cvegeo, { id, cvegeo, label });
      this.choose(key, cvegeo);
    });
    input.addEventListener("input", () => { // it is no longer the place that was chosen
      if (this.searched.has(this.choices.get(key))) this.choose(key, isAlone ? undefined : NONE);
    });
    parent.append(box);
    return () => {
      box.hidden = !isAlone && !this.isElsewhere(key, candidates);
      if (!box.hidden && !input.role) offerSuggestions(input);
    };
  }

  // Finds what the file says of the places that were searched for, by the names that a match has.
  async describeSearched() {
    const query = new URLSearchParams({ format: "json", release: this.release });
    for (const place of [...this.searched.values()].filter(({ nombre }) => nombre === undefined)) {
      const answer = await fetch(`${this.address}${place.id}/?${query}`);
      if (!answer.ok) throw new Error(String(answer.status));
      const { municipio, estado, ...found } = await answer.json();
      const key = place.cvegeo;
      const keys = { cve_ent: key.slice(0, 2), cve_mun: key.slice(2, 5), cvegeo_mun: key.slice(0, 5) };
      Object.assign(place, found, keys, { municipio: municipio.nombre, estado: estado.nombre });
    }
  }

  // Shows the choices of questions that are drawn.
  showChoices(questions) {
    for (const { key } of questions) this.drawn.get(key)?.();
  }

  // Whether none of a question's candidates is chosen, or a place that was searched for.
  isElsewhere(key, candidates) {
    const value = this.choices.get(key);
    return value !== undefined && !candidates.some(({ cvegeo }) => cvegeo === value);
  }

  // Says of the candidates how many live there; the answers have no room for that.
  async describePlaces(questions) {
    const keys = [...new Set(questions.flatMap(({ answer }) => answer.candidates.map(({ cvegeo }) => cvegeo)))];
    for (const { cvegeo, ambito, poblacion } of await this.ask(keys, "cvegeo,ambito,poblacion")) {
      const people = poblacion === null ? words.noData : amount(poblacion, "oneInhabitant", "inhabitants");
      for (const one of byId("decide").querySelectorAll(`[data-of="${cvegeo}"]`)) {
        one.textContent = [words[ambito], people].filter(Boolean).join(" · ");
      }
    }
  }

  // Returns what the catalogue says of places; nothing of those that it can't be asked for.
  async ask(keys, fields) {
    const found = [];
    for (let at = 0; at < keys.length; at += STEP) {
      const cvegeo = keys.slice(at, at + STEP).join(",");
      found.push(...await list(this.address, { cvegeo, fields, page_size: String(STEP), release: this.release }) ?? []);
    }
    return found;
  }

  // The places that are certain or chosen, each with the text of the first of its rows.
  places() {
    const found = new Map();
    for (const answer of this.answers) {
      const cvegeo = isCertain(answer) ? answer.cvegeo : this.choices.get(answer.key);
      if (cvegeo && cvegeo !== NONE && !found.has(cvegeo)) found.set(cvegeo, this.describe(answer));
    }
    return found;
  }

  drawRow(answer, rows, ...cells) {
    const row = element("tr", { role: "row" }, element("td", { className: "number" }, count(answer.number)),
      element("td", { className: "text" }, this.describe(answer), others(rows)), ...cells);
    for (const cell of row.children) cell.role = "cell";
    return row;
  }

  drawUnfound({ key, answer, rows }) {
    const cell = element("td", { className: "text" }, ...reasonOf(answer));
    this.drawn.set(key, this.drawSearch(cell, key, answer));
    return this.drawRow(answer, rows, cell);
  }

  drawFound(answer) {
    return this.drawRow(answer, 1, element("td", { className: "text" }, answer.label, ...drawFaults(answer)),
      element("td", {}, this.link(answer)));
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
    return element("a", { href: `${this.address}${id}/${this.detail}`, target: "_blank", rel: "noopener" }, cvegeo);
  }

  choose(key, value) {
    if (value === undefined) this.choices.delete(key);
    else this.choices.set(key, value);
    this.changed([{ key }]);
  }

  // Returns the cells of a row's answer that a choice changes; none if nobody has chosen. A row without a place is left as
  // it came.
  changesOf(index) {
    const { key, candidates, outcome, isApart } = this.answers[index];
    if (isApart) return Object.fromEntries([...COLUMNS, ...this.fields].map((name) => [name, ""]));
    const value = this.choices.get(key);
    if (value === undefined) return {};
    const place = candidates.find(({ cvegeo }) => cvegeo === value) ?? this.searched.get(value);
    const { cvegeo = "", label = "", score = "" } = place ?? {};
    const solved = outcome === "problem" ? { problem: "" } : {};
    const more = Object.fromEntries(this.fields.map((name) => [name, String(place?.[name] ?? "")]));
    return { outcome: place ? inFile.chosen : inFile.none, cvegeo, label, ...more, score: String(score), margin: "", faults: "", ...solved };
  }
}

// Where it will be said how many live at a place.
function placeholder({ cvegeo }) {
  const place = element("span", { className: "fault people" });
  place.dataset.of = cvegeo;
  return place;
}

// `after` is told what was drawn.
/** @param {(drawn: any[]) => void} after */
function drawInSteps(section, items, draw, after = () => {}) {
  const [place, more] = [".list", ".more"].map((one) => section.querySelector(one));
  let drawn = 0;
  const step = () => {
    const next = items.slice(drawn, drawn + STEP).map(draw);
    drawn += next.length;
    place.append(...next);
    after(items.slice(drawn - next.length, drawn));
    more.hidden = drawn === items.length;
    more.textContent = `${words.more} (${count(items.length - drawn)})`;
    return next[0];
  };
  place.replaceChildren();
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
