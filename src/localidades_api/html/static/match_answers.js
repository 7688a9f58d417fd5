// The answers, and what the person has decided: a place of the options or of a search, or none of them.
import { isTaken, newer } from "./match_storage.js";
import { amount, byId, count, fold, say, sentenceOf, textsOf, words } from "./match_texts.js";
import { element, FOLDERS, list, offerSuggestions } from "./page.js";

const STEP = 100; // rows drawn at once: a browser freezes over ten thousand
const NONE = "none"; // the choice of none of the candidates
const KEY_FAULTS = new Set(["key", "unknown_key"]);
export const OUTCOMES = ["exact", "sure", "chosen", "accepted", "ambiguous", "rejected", "none", "problem"];
const DECIDED = new Set(["chosen", "accepted", "rejected"]);
const OWN_COLUMN = /^(Resultado|match\d*_outcome)( \(\d+\))?$/; // the first of an earlier answer
// What the service says of a key that somebody has typed into the file, and of a text there that is none.
const TYPED = /^Its key was typed into/;
const UNREAD = /^`(.|\n)*` is not the key of such a place/;
const SHOWN = 5; // texts that were not read
// What the service says of a row that is of no place.
const OF_NO_PLACE = /(says that no place is given|the row is of no place)\./;
// The columns of a row's answer, before those of its place.
const COLUMNS = ["outcome", "cvegeo", "label", "score", "margin", "faults", "candidates", "withdrawn", "problem"];

export const faultNames = textsOf("faults");
export const inFile = textsOf("outcomes"); // what a file says of a row; in English these are codes
const KINDS = { 2: "estado", 5: "municipio", 9: "localidad" }; // by the digits of a key
const alike = (one, other) => one.localeCompare(other, "es", { sensitivity: "base" }) === 0;
const hasWrongKey = ({ answer }) => answer.candidates[0]?.faults.some(({ code }) => KEY_FAULTS.has(code));
const hasCandidates = ({ answer }) => answer.candidates.length > 0;
const others = (rows) => (rows > 1 ? ` (${say("appliesTo", { count: count(rows) })})` : "");
export const isCertain = ({ outcome }) => outcome === "exact" || outcome === "sure";
// A percentage is never rounded across a bound.
export const percent = (score) => `${Math.floor(score)} %`;
const inhabitants = ({ poblacion = null }) => (poblacion === null ? words.noData : amount(poblacion, "oneInhabitant", "inhabitants"));
const likeliest = ({ answer }) => answer.candidates[0]?.score ?? 0;
// What differs between a row and its likeliest option.
const differenceOf = ({ answer }) => [...new Set(answer.candidates[0]?.faults.map(({ code }) => code))].sort().join(" ");
const ORDERS = {
  row: () => 0,
  rows: (one, other) => other.rows - one.rows,
  certainty: (one, other) => likeliest(other) - likeliest(one),
};

export class Answers {
  /** @type {string | undefined} */ kind; // of the places
  /** @type {Record<string, string>} */ roles = {}; // the header of the column of each role
  /** @type {Record<string, string>} */ areas = {}; // the estado and municipio of all rows
  /** @type {string[]} */ headers = [];

  constructor(address, detail) {
    this.address = address; // of the localities
    this.detail = detail; // the query of a locality's page, with its `?`
    // What is decided of each row, by its sheet, number and cells: it stands when rows are matched again.
    this.decisions = new Map();
    /** @type {Map<string, any>[]} */
    this.steps = []; // what each step has changed, with what was decided before
    this.conflicts = new Map(); // the decision of somebody else on a row that is decided otherwise here
    // The question that was decided last. It folds with the next one, or a click beside it would miss what then moves.
    this.latest = "";
    this.drawn = new Map(); // what shows the decision of each question that is drawn
    /** @type {Map<string, any>} */
    this.questions = new Map();
    /** @type {any[]} */
    this.answers = [];
    /** @type {any[]} */
    this.unfound = []; // those that have none
    /** @type {any[]} */
    this.asked = []; // the questions that have candidates
    for (const id of ["bound", "difference", "order"]) byId(id).addEventListener("input", () => this.showDecided());
    byId("order").addEventListener("change", () => this.drawQuestions());
    byId("accept").addEventListener("click", () => this.acceptLikeliest());
    byId("unaccept").addEventListener("click", () => this.undoAccepted());
    byId("undo").addEventListener("click", () => this.undo());
  }

  // `roles` has the headers of the columns that tell the place, `areas` what is so for all rows, `release` the one that answered, `fields` what the file says of
  // a place, and `sheet` that of a workbook.
  show(answers, { roles, areas, release, fields, kind, sheet }) {
    [this.kind, this.roles, this.areas, this.headers, this.steps] = [kind, roles, areas, Object.values(roles), []];
    this.release = release;
    this.fields = fields;
    this.answers = answers.map((answer) => ({ ...answer, number: answer.row }));
    this.questions = new Map();
    for (const answer of this.answers) {
      const own = Object.keys(answer.sent).findIndex((header) => OWN_COLUMN.test(header));
      answer.id = JSON.stringify([sheet, answer.number, Object.values(answer.sent).slice(0, own < 0 ? undefined : own)]);
      this.takeDecision(answer);
      answer.said = this.saidBy(answer.sent);
      answer.isApart = this.hasNoPlace(answer);
      answer.key = this.keyOf(answer);
      const question = this.questions.get(answer.key) ?? { key: answer.key, answer, rows: 0, answers: [] };
      question.rows += 1;
      question.answers.push(answer);
      this.questions.set(answer.key, question);
    }
    const doubts = [...this.questions.values()].filter(({ answer }) => !isCertain(answer) && !answer.isApart);
    const isOpen = ({ answer }) => answer.outcome === "ambiguous";
    const [open, unlikely] = [doubts.filter(isOpen), doubts.filter((one) => !isOpen(one) && hasCandidates(one))];
    byId("result").hidden = false;
    this.showTyped();
    this.asked = [...open, ...unlikely];
    this.unfound = doubts.filter((one) => !hasCandidates(one));
    const known = this.answers.filter(({ id }) => this.decisionOf(id)).length;
    byId("kept").textContent = known ? amount(known, "keptOne", "kept") : "";
    this.drawn.clear();
    const differences = [...new Set(open.map(differenceOf))].filter(Boolean).sort();
    byId("difference").replaceChildren(byId("difference").options[0], ...differences.map((codes) =>
      new Option(codes.split(" ").map((code) => faultNames[code] ?? code).join(", "), codes)));
    this.drawQuestions();
    drawInSteps(byId("unfound"), this.unfound, (one) => this.drawUnfound(one), (drawn) => this.showChoices(drawn));
    this.showDecided();
  }

  // Takes an answer that a person has decided in the file for a doubt with a decision.
  takeDecision(answer) {
    const { outcome, cvegeo, label, score, candidates } = answer;
    if (!DECIDED.has(outcome)) return;
    const place = { id: Number(cvegeo), cvegeo, label, ...Object.fromEntries(this.fields.map((name) => [name, answer[name]])) };
    answer.decided = { place: cvegeo && place, when: 0, ...(outcome === "accepted" ? { score } : {}) };
    if (!this.decisions.has(answer.id)) this.decisions.set(answer.id, answer.decided);
    answer.typed = TYPED.test(answer.problem) ? cvegeo : undefined;
    Object.assign(answer, { outcome: candidates.length ? "ambiguous" : "none", cvegeo: null, label: null, problem: null });
  }

  // Says how many keys were typed into the file, and which texts there are none.
  showTyped() {
    const typed = this.answers.filter((answer) => answer.typed).length;
    const unread = this.answers.filter(({ problem }) => UNREAD.test(problem));
    byId("typed").hidden = !typed && !unread.length;
    byId("typed-said").replaceChildren(typed ? say("typedKeys", { count: count(typed) }) : "",
      ...unread.slice(0, SHOWN).flatMap(({ number, problem }) => [` ${words.row} ${count(number)}: `, ...sentenceOf(problem)]),
      unread.length > SHOWN ? ` ${say("moreUnread", { count: count(unread.length - SHOWN) })}` : "");
    byId("look").hidden = !typed;
  }

  // Draws the questions in the order that the person has chosen.
  drawQuestions() {
    const sorted = [...this.asked].sort(ORDERS[byId("order").value]);
    drawInSteps(byId("decide"), sorted, (one) => this.drawQuestion(one), (drawn) => {
      this.showChoices(drawn);
      this.describePlaces(drawn);
    });
    byId("result").dispatchEvent(new CustomEvent("questions"));
  }

  // Rows with the same candidates and the same faults ask the same question; without candidates, those that say the same.
  // One with a key that somebody has typed is a question of its own, or the answer to another one would replace the key.
  keyOf({ outcome, candidates, sent, typed }) {
    return JSON.stringify([outcome, candidates.length ? candidates : this.cellsOf(sent), typed]);
  }

  decisionOf(id) {
    const decision = this.decisions.get(id);
    return isTaken(decision) ? decision : undefined;
  }

  // What a row has now: its outcome, its place if it has one, and the score of one that was accepted unseen.
  stateOf(answer) {
    const decision = this.decisionOf(answer.id);
    if (answer.isApart && !decision) return { outcome: "apart", place: null };
    if (!decision) return { outcome: answer.outcome, place: isCertain(answer) ? answer : null };
    const { place, score } = decision;
    return { outcome: !place ? "rejected" : score === undefined ? "chosen" : "accepted", place, score };
  }

  // What was decided of a question: the key of a place, `none`, or nothing if its rows differ.
  valueOf(key) {
    const { answers } = this.questions.get(key);
    const [first, ...rest] = answers.map(({ id }) => this.decisionOf(id)).map((one) => one && (one.place?.cvegeo ?? NONE));
    return rest.every((one) => one === first) ? first : undefined;
  }

  // Whether a row is a total or a note below the table, or has nothing in the columns that tell the place.
  hasNoPlace(answer) {
    if (isCertain(answer) || !this.headers.length) return false;
    if (OF_NO_PLACE.test(answer.problem) && !hasCandidates({ answer })) return true;
    return !this.headers.some((header) => answer.sent[header]);
  }

  showDecided() {
    const outcomes = this.answers.map((answer) => this.stateOf(answer).outcome);
    const parts = OUTCOMES.map((outcome) => ({ outcome, rows: outcomes.filter((one) => one === outcome).length })).filter(({ rows }) => rows);
    byId("shares").replaceChildren(...parts.map(({ outcome, rows }) => {
      const part = element("span", { className: outcome });
      part.style.flexGrow = String(rows);
      return part;
    }));
    byId("totals").replaceChildren(...parts.map(({ outcome, rows }) =>
      element("li", { className: outcome }, amount(rows, `${outcome}1`, outcome))));
    const all = [...this.asked, ...this.unfound];
    byId("decided").textContent = all.length
      ? say("decided", { count: count(all.length - this.left().length), all: count(all.length) }) : "";
    const within = this.acceptable();
    byId("accept").disabled = !within.length;
    byId("accept-count").textContent = amount(within.reduce((sum, { rows }) => sum + rows, 0), "oneRow", "severalRows");
    byId("accepting").hidden = !this.asked.some(({ key }) => this.valueOf(key) === undefined);
    const accepted = outcomes.filter((one) => one === "accepted").length;
    byId("unaccept").hidden = !accepted;
    byId("unaccept").textContent = say("unaccept", { count: count(accepted) });
    byId("undo").disabled = !this.steps.length;
  }

  // The questions that nobody has decided.
  left() {
    return [...this.asked, ...this.unfound].filter(({ key }) => this.valueOf(key) === undefined);
  }

  // The doubts whose likeliest option has the percentage and the difference that the person asks for; never a row that was
  // not found, nor one whose key is of no place or of another: somebody has to look which of the two is right.
  acceptable() {
    const bound = Math.max(50, byId("bound").valueAsNumber || 100);
    const difference = byId("difference").value;
    return this.asked.filter((question) => question.answer.outcome === "ambiguous" && likeliest(question) >= bound && !hasWrongKey(question)
      && (!difference || differenceOf(question) === difference) && this.valueOf(question.key) === undefined);
  }

  acceptLikeliest() {
    const within = this.acceptable();
    this.decide(within.flatMap(({ answers, answer: { candidates: [place] } }) =>
      answers.map(({ id }) => [id, { place, score: place.score }])));
    byId("unaccept").focus();
  }

  // Takes back what was accepted at once, but for what the person has changed since.
  undoAccepted() {
    const accepted = this.answers.filter(({ id }) => this.decisionOf(id)?.score !== undefined);
    this.decide(accepted.map(({ id }) => [id, {}]));
    byId("accept").focus();
  }

  forget() {
    this.decide(this.answers.filter(({ id }) => this.decisions.has(id)).map(({ id }) => [id, {}]));
    [this.steps, byId("kept").textContent, byId("undo").disabled] = [[], "", true];
  }

  // Decides rows, in a step that can be undone.
  decide(rows) {
    this.steps.push(new Map(rows.map(([id]) => [id, this.decisions.get(id)])));
    this.set(rows.map(([id, decision]) => [id, { ...decision, when: Date.now() }]));
  }

  undo() {
    const step = this.steps.pop();
    if (!step) return;
    const questions = this.set([...step].map(([id, decision]) => [id, { ...decision, when: Date.now() }]));
    byId("result").dispatchEvent(new CustomEvent("undo", { detail: questions[0] }));
  }

  // Takes the decisions of another tab that are later than its own.
  merge(rows) {
    const later = newer(rows, this.decisions);
    for (const step of this.steps) for (const [id] of later) step.delete(id);
    this.steps = this.steps.filter(({ size }) => size);
    if (later.length) this.set(later);
  }

  // Takes the decisions of somebody else on rows that nobody has decided here; where both have and differ, the person
  // sees both. Returns how many rows were decided, and the rows that are in conflict.
  adopt(decisionFor) {
    const found = this.answers.map((answer) => [answer, decisionFor(answer), this.decisionOf(answer.id)]).filter(([, one]) => one);
    const same = (one, other) => one.place?.cvegeo === other.place?.cvegeo;
    const taken = found.filter(([answer, one, own]) => !own && !(isCertain(answer) && same({ place: answer }, one)));
    const conflicts = found.filter(([, one, own]) => own && !same(own, one));
    for (const [{ id }, one] of conflicts) this.conflicts.set(id, one);
    if (taken.length) this.decide(taken.map(([{ id }, { place, score }]) => [id, { place, ...(score === undefined ? {} : { score }) }]));
    this.showChoices([...this.questions.values()]);
    return { taken: taken.length, conflicts: conflicts.map(([answer]) => answer) };
  }

  set(rows) {
    const ids = new Set(rows.map(([id]) => id));
    for (const [id, decision] of rows) {
      this.decisions.set(id, decision);
      this.conflicts.delete(id);
    }
    const changed = [...this.questions.values()].filter(({ answers }) => answers.some(({ id }) => ids.has(id)));
    this.changed(changed);
    return changed;
  }

  changed(questions) {
    this.showChoices(questions);
    this.showDecided();
    byId("result").dispatchEvent(new CustomEvent("decide", { detail: questions }));
  }

  drawQuestion({ key, answer, rows }, at = "row") {
    const inputs = [];
    const { point } = answer;
    const choice = (value, number, ...content) => {
      const input = element("input", { type: "radio", name: `${at}-${answer.number}`, value });
      input.addEventListener("change", () => this.choose(key, value));
      inputs.push(input);
      const digit = element("kbd", { ariaHidden: "true" }, number);
      return element("label", {}, input, digit, element("span", {}, ...content));
    };
    const candidates = optionsOf(answer).map((one, index) => element("div", { className: "choice" },
      choice(one.cvegeo, index + 1, element("strong", {}, one.label), placeholder(one), ...drawFaults(one)),
      element("span", { className: "share" }, [farFrom(point, one), percent(one.score)].filter(Boolean).join(" · ")), this.link(one)));
    const said = element("strong", {}, this.describe(answer));
    const open = element("button", { type: "button", className: "open" }, words.undecide);
    open.addEventListener("click", () => {
      inputs[0].focus();
      this.choose(key, undefined);
    });
    const conflict = element("p", { className: "notice" });
    const question = element("fieldset", { className: "question", tabIndex: -1 },
      element("legend", {}, `${words.row} ${count(answer.number)}: `, said, others(rows)),
      ...candidates, element("div", { className: "choice" }, choice(NONE, 0, words.noneOfThese), open), conflict);
    question.addEventListener("click", () => question.classList.remove("folded"));
    if ((candidates.length > 1 || point) && answer.candidates[0].cvegeo.length === 9 && !byId("placed").hidden) {
      const button = element("button", { type: "button", className: "on-map" }, words.onMap);
      const detail = { question, options: optionsOf(answer), point };
      button.addEventListener("click", () => byId("result").dispatchEvent(new CustomEvent("map", { detail })));
      question.append(button);
    }
    const showSearch = this.drawSearch(question, key, answer, at);
    this.onChoice(key, () => {
      const value = this.valueOf(key);
      const shown = value ?? (isCertain(answer) ? answer.cvegeo : undefined);
      for (const input of inputs) input.checked = shown === input.value;
      open.hidden = value === undefined;
      this.showConflict(conflict, key);
      question.classList.toggle("folded", value !== undefined && this.latest !== key && conflict.hidden);
      showSearch();
    });
    return question;
  }

  // Shows what somebody else has decided of a question that is decided otherwise here.
  showConflict(notice, key) {
    const other = this.questions.get(key).answers.map(({ id }) => this.conflicts.get(id)).find(Boolean);
    notice.hidden = !other;
    if (!other) return;
    const take = element("button", { type: "button" }, words.takeIt);
    take.addEventListener("click", () => this.choose(key, other.place?.cvegeo ?? NONE, other.place ?? undefined));
    const leave = element("button", { type: "button" }, words.leaveIt);
    leave.addEventListener("click", () => {
      for (const { id } of this.questions.get(key).answers) this.conflicts.delete(id);
      this.showChoices([{ key }]);
    });
    notice.replaceChildren(say("otherwise", { place: other.place?.label ?? words.noneOfThese }), take, leave);
  }

  // Has something shown again with each decision of a question, wherever it is drawn; `showChoices` does so first.
  onChoice(key, show) {
    this.drawn.set(key, [...(this.drawn.get(key) ?? []), show]);
  }

  // Who chooses none of the candidates, or has none, may search for the place. Returns what shows the search if the choice
  // asks for one.
  drawSearch(parent, key, answer, at = "row") {
    const options = optionsOf(answer);
    const isAlone = !options.length;
    const id = `search-${at}-${answer.number}`;
    const input = element("input", { id, type: "search", maxLength: 100, autocomplete: "off" });
    input.setAttribute("form", "match"); // which knows the release
    const kind = options.length ? KINDS[options[0].cvegeo.length] : this.kind;
    const { noResults: none, searchFailed: failed } = words;
    Object.assign(input.dataset, { suggest: this.address, none, failed, kinds: kind, near: near(options, kind) });
    const describe = (place) => [place.cvegeo, inhabitants(place), farFrom(answer.point, place)];
    const typing = element("div", { className: "typing" }, input);
    const label = element("label", { htmlFor: id, className: isAlone ? "visually-hidden" : "" }, words.search);
    const box = element("div", { className: "another" }, label, typing);
    if (isAlone) input.placeholder = words.search;
    input.value = this.searchedOf(key, options)?.label ?? "";
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
    input.addEventListener("choose", (event) => {
      event.preventDefault();
      const { id, cvegeo, label } = event.detail;
      this.choose(key, cvegeo, { id, cvegeo, label });
    });
    input.addEventListener("input", () => { // it is no longer the place that was chosen
      if (this.searchedOf(key, options)) this.choose(key, isAlone ? undefined : NONE);
    });
    parent.append(box);
    return () => {
      const value = this.valueOf(key);
      box.hidden = !isAlone && (value === undefined || options.some(({ cvegeo }) => cvegeo === value));
      if (!box.hidden && !input.role) offerSuggestions(input, describe);
    };
  }

  // The place that was searched for and chosen, if it is none of the options.
  searchedOf(key, options) {
    const value = this.valueOf(key);
    const { place } = this.decisionOf(this.questions.get(key).answers[0].id) ?? {};
    return place && place.cvegeo === value && !options.some(({ cvegeo }) => cvegeo === value) ? place : null;
  }

  // Finds what the file says of the places that were searched for, or chosen while it had other columns.
  async describeSearched() {
    const places = this.answers.map((answer) => this.stateOf(answer).place).filter(Boolean);
    const missing = places.filter((place) => this.fields.some((name) => place[name] === undefined));
    const keys = [...new Set(missing.map(({ cvegeo }) => cvegeo))];
    if (!keys.length) return;
    const query = new URLSearchParams({ fields: this.fields.join(","), release: this.release });
    const answer = await fetch(`${this.address}match/?${query}`, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ rows: keys.map((cvegeo) => ({ cvegeo })) }),
    });
    if (!answer.ok) throw new Error(String(answer.status));
    const { results } = await answer.json();
    const known = new Map(keys.map((key, at) => [key, isCertain(results[at]) ? results[at] : {}]));
    for (const place of missing) {
      const found = known.get(place.cvegeo);
      for (const name of ["label", ...this.fields]) place[name] = found[name] ?? place[name] ?? "";
    }
  }

  // The address of a place, which may be a municipio or an estado.
  addressOf(cvegeo) {
    return `${this.address}${FOLDERS[KINDS[cvegeo.length]]}${Number(cvegeo)}/`;
  }

  // Shows what was decided of questions that are drawn.
  showChoices(questions) {
    for (const { key } of questions) for (const show of this.drawn.get(key) ?? []) show();
  }

  // Says of the candidates how many live there, and of municipios how many localities they have; the answers have no room
  // for that.
  async describePlaces(questions) {
    const keys = [...new Set(questions.flatMap(({ answer }) => optionsOf(answer).map(({ cvegeo }) => cvegeo)))];
    const tell = (cvegeo, ...parts) => {
      for (const one of byId("result").querySelectorAll(`[data-of="${cvegeo}"]`)) one.textContent = parts.filter(Boolean).join(" · ");
    };
    for (const { cvegeo, ambito, poblacion } of await this.ask(keys, "cvegeo,ambito,poblacion")) {
      tell(cvegeo, words[ambito], inhabitants({ poblacion }));
    }
    const estados = new Set(keys.filter((key) => KINDS[key.length] === "municipio").map((key) => key.slice(0, 2)));
    for (const estado of estados) {
      const query = { estado_id: String(Number(estado)), page_size: "1000", release: this.release };
      for (const { id, localidades } of await list(`${this.address}${FOLDERS.municipio}`, query) ?? []) {
        tell(String(id).padStart(5, "0"), amount(localidades, "oneLocality", "localities"));
      }
    }
  }

  // Returns what the catalogue says of places; nothing of those that it can't be asked for.
  async ask(every, fields) {
    const keys = every.filter((key) => KINDS[key.length] === "localidad");
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
      const { cvegeo } = this.stateOf(answer).place ?? {};
      if (cvegeo && !found.has(cvegeo)) found.set(cvegeo, this.describe(answer));
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
    this.onChoice(key, this.drawSearch(cell, key, answer));
    return this.drawRow(answer, rows, cell);
  }

  describe({ sent }) {
    return this.cellsOf(sent).join(", ").slice(0, 200);
  }

  // What a row says of its place: the same in another list means the same.
  saidBy(sent) {
    const cells = Object.entries(this.roles).map(([role, header]) => [role, fold(sent[header] ?? "").trim()]);
    return JSON.stringify([this.kind, this.areas, cells.filter(([, text]) => text)]);
  }

  // Returns the cells that tell the place, or all if there are none.
  cellsOf(sent) {
    const cells = this.headers.map((header) => sent[header]).filter(Boolean);
    return cells.length ? cells : Object.values(sent).filter(Boolean);
  }

  link({ cvegeo }) {
    return element("a", { href: `${this.addressOf(cvegeo)}${this.detail}`, target: "_blank", rel: "noopener" }, cvegeo);
  }

  // Decides a question for all of its rows; `value` is as that of `valueOf`, and `place` what was found by a search.
  choose(key, value, place) {
    const question = this.questions.get(key);
    const chosen = place ?? optionsOf(question.answer).find(({ cvegeo }) => cvegeo === value) ?? null;
    const isOwn = isCertain(question.answer) && value === question.answer.cvegeo; // of a certain row
    if (isOwn && this.valueOf(key) === undefined) return;
    const former = this.latest === key ? undefined : this.questions.get(this.latest);
    this.latest = key;
    this.decide(question.answers.map(({ id }) => [id, value === undefined || isOwn ? {} : { place: chosen && { ...chosen } }]));
    if (former) this.showChoices([former]);
  }

  // Returns the cells of a row's answer that a decision changes; none if there is none. A row without a place is left as
  // it came.
  changesOf(index) {
    const answer = this.answers[index];
    const { outcome, place, score } = this.stateOf(answer);
    if (outcome === "apart") return Object.fromEntries([...COLUMNS, ...this.fields].map((name) => [name, ""]));
    if (answer.decided ? this.decisions.get(answer.id) === answer.decided : !this.decisionOf(answer.id)) return {};
    const more = Object.fromEntries(this.fields.map((name) => [name, String(place?.[name] ?? "")]));
    const solved = answer.outcome === "problem" || answer.decided ? { problem: "" } : {};
    return {
      outcome: this.outcomeInFile(answer), cvegeo: place?.cvegeo ?? "", label: place?.label ?? "", ...more,
      score: score === undefined ? "" : String(score), margin: "", faults: "", ...solved,
    };
  }

  // Whether a row has no key although it is about a place.
  isOpen(index) {
    const { outcome, place } = this.stateOf(this.answers[index]);
    return !place && outcome !== "apart";
  }

  // How many rows have each outcome, by the word that the file has for it; none for a row without a place.
  countInFile() {
    const counts = new Map();
    for (const answer of this.answers) {
      const word = inFile[this.stateOf(answer).outcome] ?? "";
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    return counts;
  }

  // What the file says of a row; of one that was accepted unseen, also how probable it is.
  outcomeInFile(answer) {
    const { outcome, score } = this.stateOf(answer);
    return score === undefined ? inFile[outcome] ?? "" : `${inFile[outcome]} (${percent(score)})`;
  }
}

// The options of a row: those that nobody would choose are not shown, and a certain row has its place.
function optionsOf(answer) {
  if (isCertain(answer)) return [answer];
  const likely = answer.candidates.filter(({ score }) => score >= 1);
  return likely.length ? likely : answer.candidates.slice(0, 1);
}

// Says how far a place is from a point, if both are known: on a plane, which differs by less than a thousandth within Mexico's
// municipios.
function farFrom(point, place) {
  if (!point || typeof place.latitud !== "number") return "";
  const [latitud, longitud] = ["latitud", "longitud"].map((name) => ((place[name] - point[name]) * Math.PI) / 180);
  const width = longitud * Math.cos((((place.latitud + point.latitud) / 2) * Math.PI) / 180);
  const metres = 6371e3 * Math.hypot(latitud, width);
  return metres < 1000 ? `${Math.round(metres)} m` : `${count(Number((metres / 1000).toFixed(1)))} km`;
}

// Where a search begins: in the municipio of the first option, then in its estado.
function near([first], kind) {
  if (!first || kind === "estado") return "";
  const estado = `estado_id=${Number(first.cvegeo.slice(0, 2))}`;
  return kind === "municipio" ? estado : `municipio_id=${Number(first.cvegeo.slice(0, 5))},${estado}`;
}

// Where it will be said how many live at a place.
function placeholder({ cvegeo }) {
  const place = element("span", { className: "fault people" });
  place.dataset.of = cvegeo;
  return place;
}

// `after` is told what was drawn.
/** @param {(drawn: any[]) => void} after */
export function drawInSteps(section, items, draw, after = () => {}) {
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

export function reasonOf({ problem, withdrawn }) {
  if (problem) return sentenceOf(problem);
  return [withdrawn ? `${words.withdrawn} ${withdrawn}.` : words.unlike];
}

// What only one side has is told at once: three words that the row has besides are one line.
export function drawFaults({ faults = [] }) {
  const lines = new Map();
  for (const { code, given, found } of faults) {
    const key = given && found ? JSON.stringify([code, given, found]) : `${code} ${given ? "given" : "found"}`;
    const line = lines.get(key) ?? { code, given: [], found: [] };
    if (given) line.given.push(given);
    if (found) line.found.push(found);
    lines.set(key, line);
  }
  const drawn = [...lines.values()].map(({ code, given, found }) =>
    element("span", { className: "fault" }, faultNames[code] ?? code,
      element("span", { className: "detail" }, ": ", ...partsOf(code, given, found))));
  return drawn.length ? [element("span", { className: "faults" }, ...drawn)] : [];
}

function partsOf(code, given, found) {
  const says = (word, texts) => [`${word} `, ...texts.flatMap((text, at) => [at ? ", " : "", element("q", {}, text)])];
  if (code === "distance") return given;
  if (code === "municipio" && alike(given[0], found[0] ?? "")) return says(words.elsewhere, found);
  if (given.length && found.length) return [...says(words.given, given), ", ", ...says(words.found, found)];
  return given.length ? says(words.onlyGiven, given) : says(words.onlyFound, found);
}
