// The table of all rows, in which every row can be looked for and corrected.
import { drawFaults, drawInSteps, faultNames, inFile, isCertain, OUTCOMES, reasonOf } from "./match_answers.js";
import { byId, fold, words } from "./match_texts.js";
import { element } from "./page.js";

const section = byId("every");
const [search, outcome, fault, estado, municipio] = ["search", "outcome", "fault", "estado", "municipio"]
  .map((name) => /** @type {HTMLSelectElement} */ (section.querySelector(`[data-filter=${name}]`)));
const sorted = (texts) => [...new Set(texts)].filter(Boolean).sort((one, other) => one.localeCompare(other, "es"));

export class Rows {
  constructor(answers) {
    this.answers = answers;
    this.drawn = new Map(); // the row of each answer that is drawn
    section.addEventListener("toggle", () => this.draw());
    byId("look").addEventListener("click", () => this.look("typed"));
    byId("result").addEventListener("decide", (event) => this.redraw(/** @type {CustomEvent} */ (event).detail));
    addEventListener("beforeprint", () => {
      /** @type {HTMLDetailsElement} */ (section).open = true;
      this.draw();
      const more = /** @type {HTMLElement} */ (section.querySelector(".more"));
      while (!more.hidden) more.click();
    });
    for (const filter of [search, outcome, fault, estado, municipio]) filter.addEventListener("input", () => this.draw());
  }

  // Offers what the answers have to filter by.
  show() {
    const all = this.answers.answers;
    const places = all.map((answer) => (isCertain(answer) ? answer : answer.candidates[0] ?? {}));
    const fill = (select, options) => {
      const had = select.value;
      select.replaceChildren(select.options[0], ...options.map(([value, text]) => new Option(text, value)));
      if (options.some(([value]) => value === had)) select.value = had;
    };
    const codes = [...OUTCOMES, "apart", ...(all.some(({ typed }) => typed) ? ["typed"] : [])];
    fill(outcome, codes.map((code) => [code, inFile[code] ?? words[code]]));
    fill(fault, Object.entries(faultNames).filter(([code]) => places.some((place) => place.faults?.some((one) => one.code === code))));
    fill(estado, sorted(places.map((place) => place.estado)).map((name) => [name, name]));
    fill(municipio, sorted(places.map((place) => place.municipio)).map((name) => [name, name]));
    this.draw();
  }

  // Shows the rows of an outcome.
  look(code) {
    outcome.value = code;
    /** @type {HTMLDetailsElement} */ (section).open = true;
    this.draw();
    section.scrollIntoView();
    outcome.focus({ preventScroll: true });
  }

  draw() {
    this.drawn.clear();
    if (!/** @type {HTMLDetailsElement} */ (section).open) return;
    const text = fold(search.value);
    const found = this.answers.answers.filter((answer) => {
      const { outcome: state, place } = this.answers.stateOf(answer);
      const about = place ?? answer.candidates[0] ?? {};
      const isOfOutcome = !outcome.value || (outcome.value === "typed" ? answer.typed : state === outcome.value);
      return isOfOutcome && (!estado.value || about.estado === estado.value)
        && (!municipio.value || about.municipio === municipio.value)
        && (!fault.value || about.faults?.some(({ code }) => code === fault.value))
        && (!text || fold(`${this.answers.describe(answer)} ${about.label ?? ""} ${about.cvegeo ?? ""}`).includes(text));
    });
    drawInSteps(section, found, (answer) => this.drawRow(answer), (drawn) => {
      section.hidden = false; // a filter may leave no row
      for (const answer of drawn) this.drawn.set(answer.id, answer);
    });
    section.hidden = false;
  }

  // Draws again the rows that a decision has changed, where they are: a filter takes effect when it is used.
  redraw(questions) {
    for (const { answers } of questions) {
      for (const answer of answers.filter(({ id }) => this.drawn.has(id))) {
        const row = section.querySelector(`tr[data-row="${answer.number}"]`);
        row?.replaceChildren(...this.drawRow(answer).children);
      }
    }
  }

  drawRow(answer) {
    const { place } = this.answers.stateOf(answer);
    const said = place ? [place.label, ...drawFaults(place)] : isCertain(answer) || answer.candidates.length ? [] : reasonOf(answer);
    const change = element("button", { type: "button" }, words.change);
    change.addEventListener("click", () => this.ask(answer, change));
    const row = this.answers.drawRow(answer, 1, element("td", { className: "text" }, ...said),
      element("td", {}, ...(place ? [this.answers.link(place)] : [])),
      element("td", { className: "text" }, this.answers.outcomeInFile(answer) || words.apart), element("td", {}, change));
    for (const cell of row.children) cell.role = "cell";
    row.dataset.row = String(answer.number);
    return row;
  }

  // Opens the question of a row below it, or closes it.
  ask(answer, change) {
    const row = change.closest("tr");
    if (row.nextElementSibling?.className === "asking") return row.nextElementSibling.remove();
    const question = this.answers.drawQuestion(this.answers.questions.get(answer.key), "every");
    row.after(element("tr", { className: "asking", role: "row" }, element("td", { colSpan: row.children.length, role: "cell" }, question)));
    this.answers.showChoices([{ key: answer.key }]);
    this.answers.describePlaces([{ answer }]);
    question.querySelector("input").focus();
  }
}
