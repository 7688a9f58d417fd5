// One question after the other: by keys, and on a telephone one at a time.
import { byId, count, say } from "./match_texts.js";

const [result, section, steps] = [byId("result"), byId("decide"), byId("steps")];
const [before, after] = steps.querySelectorAll("button");
/** @returns {HTMLElement[]} */
const questions = () => Array.from(section.querySelectorAll(".question"));

export class Steps {
  constructor() {
    this.total = 0;
    this.current = null;
    section.addEventListener("focusin", ({ target }) => {
      const question = /** @type {Element} */ (target).closest(".question");
      if (question) this.mark(question);
    });
    before.addEventListener("click", () => this.move(-1));
    after.addEventListener("click", () => this.move(1));
    document.addEventListener("keydown", (event) => this.press(event));
    result.addEventListener("undo", (event) => this.reopen(/** @type {CustomEvent} */ (event).detail));
    section.addEventListener("click", (event) => { // what differs is folded into a line there
      const faults = /** @type {Element} */ (event.target).closest(".faults");
      if (!faults || !this.isSingle) return;
      event.preventDefault();
      faults.classList.toggle("whole");
    });
    // Who points at an option on a telephone goes on; the keys of a radio button may pass over others.
    section.addEventListener("pointerdown", () => { this.isPointed = true; });
    section.addEventListener("keydown", () => { this.isPointed = false; });
    section.addEventListener("change", ({ target }) => {
      if (this.isPointed && this.isSingle && /** @type {HTMLInputElement} */ (target).value !== "none") this.move(1);
    });
  }

  // Whether one question is shown at a time.
  get isSingle() {
    return steps.offsetParent !== null;
  }

  // Begins with the first of some questions, which have been drawn.
  begin(total) {
    this.total = total;
    this.mark(questions()[0] ?? null);
  }

  mark(question) {
    this.current?.classList.remove("current");
    this.current = question;
    question?.classList.add("current");
    const at = questions().indexOf(question);
    steps.getElementsByTagName("span")[0].textContent = say("step", { number: count(at + 1), all: count(this.total) });
    before.disabled = at <= 0;
    after.disabled = at + 1 >= this.total;
  }

  // Goes to a question near the current one, which may have to be drawn first.
  move(step) {
    const at = questions().indexOf(this.current) + step;
    if (at === questions().length && at < this.total) /** @type {HTMLElement} */ (section.querySelector(".more")).click();
    this.go(questions()[at]);
  }

  // Goes to the question whose decision was undone, wherever it is drawn.
  reopen(question) {
    const input = question && section.querySelector(`input[name="row-${question.answer.number}"]`);
    this.go(input?.closest(".question"));
  }

  go(question) {
    if (!question) return;
    this.mark(question);
    question.classList.remove("folded");
    question.focus();
    question.scrollIntoView({ block: "nearest" });
  }

  // Keys count while there is a result, wherever the focus is, but not while somebody types.
  press(event) {
    const { target, key } = event;
    if (result.hidden || event.altKey) return;
    if (target.matches("textarea, select, input:not([type=radio], [type=checkbox], [type=file])")) return;
    if (event.ctrlKey || event.metaKey) {
      if (key !== "z" || byId("undo").disabled) return;
      event.preventDefault();
      return byId("undo").click();
    }
    if (target.closest("#every")) return;
    const isInside = Boolean(target.closest(".question"));
    const isArrow = target.matches(".question") && ["ArrowDown", "ArrowUp"].includes(key);
    if (key === "n" || key === "p" || isArrow) {
      event.preventDefault();
      const isNext = key === "n" || key === "ArrowDown";
      if (isInside) this.move(isNext ? 1 : -1);
      else this.current?.focus();
    } else if (isInside && /^[0-9]$/.test(key)) {
      this.pick(Number(key));
    }
  }

  // Chooses an option and goes on; who chooses none of them may want to search.
  pick(number) {
    const inputs = [...this.current.querySelectorAll("input[type=radio]")];
    const input = number ? inputs.slice(0, -1)[number - 1] : inputs.at(-1);
    input?.click();
    if (input) this.current.focus();
    if (input && number) this.move(1);
  }
}
