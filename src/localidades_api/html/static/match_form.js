// Matches a pasted list or a file: what the form does.
import { Source, lacksColumns } from "./match_source.js";
import { amount, byId, say, sentenceOf, words } from "./match_texts.js";

const [form, file, meter] = [byId("match"), byId("file"), byId("meter")];
const [progress, error] = [byId("progress"), byId("error")];
const source = new Source(form.dataset.resource, (problem) => {
  if (!problem) error.textContent = "";
  else if (problem.error) explain(problem.error);
  else explain(problem);
});
// The rest of the script; a browser that has loaded it does not again.
const load = () => import("./match_result.js");
/** @type {AbortController} */
let stopping;

// Browsers refuse to read a file that was written to after it was chosen.
async function hasChanged(chosen) {
  try {
    await chosen?.slice(0, 1).arrayBuffer();
    return false;
  } catch {
    return true;
  }
}

// Says what went wrong, and what to do.
async function explain(problem) {
  if (lacksColumns(problem)) {
    const others = (problem.sheets ?? []).filter((name) => name !== problem.sheet).slice(0, 10);
    error.textContent = words.noColumn + (others.length ? say("orSheet", { sheets: others.join(", ") }) : ".");
  } else if (problem.sentence) error.textContent = problem.sentence;
  else if (problem.detail) {
    error.replaceChildren(...sentenceOf(problem.detail));
  } else error.textContent = await hasChanged(file.files[0]) ? words.changed : words.unreachable;
}

// Runs a task with its buttons off, in place of the one before; an error is shown, and nothing that was entered is lost.
async function run(task) {
  stopping?.abort();
  const { signal } = (stopping = new AbortController());
  const buttons = [byId("send"), byId("workbook"), byId("csv"), byId("open"), byId("copy")];
  for (const button of buttons) button.disabled = true;
  [byId("stop").hidden, meter.hidden] = [false, false];
  meter.removeAttribute("value");
  [progress.textContent, error.textContent] = [words.sending, ""];
  try {
    await task(signal);
    if (progress.textContent === words.sending) progress.textContent = "";
  } catch (problem) {
    if (signal !== stopping.signal) return;
    const isStopped = problem.name === "AbortError";
    progress.textContent = isStopped ? words.stopped : "";
    if (!isStopped) {
      await explain(problem);
      error.focus();
    }
  }
  for (const button of buttons) button.disabled = false;
  [byId("stop").hidden, meter.hidden] = [true, true];
}

function acceptDrops() {
  const [area] = form.getElementsByClassName("drop");
  const mark = (isOver) => area.classList.toggle("over", isOver);
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(Boolean(event.dataTransfer?.types.includes("Files")));
  });
  form.addEventListener("dragleave", ({ relatedTarget }) => {
    if (!form.contains(/** @type {Node | null} */ (relatedTarget))) mark(false);
  });
  form.addEventListener("drop", (event) => {
    mark(false);
    const { files } = /** @type {DataTransfer} */ (event.dataTransfer);
    if (!files.length) return; // a dropped text goes where it is dropped
    event.preventDefault();
    if (files.length > 1) {
      error.textContent = say("oneFile", { names: [...files].map(({ name }) => name).slice(0, 5).join(", ") });
      return;
    }
    file.files = files;
    source.begin();
  });
}

// Offers to go on with the list that was decided last, which this browser has kept.
async function offerWork() {
  const { discard, find, findLast } = await import("./match_storage.js");
  const last = await findLast();
  if (!last) return;
  byId("resume-said").textContent = `${last.name ? `“${last.name}”: ` : ""}${amount(last.left, "leftOne", "left")}`;
  byId("resume").hidden = false;
  byId("continue").onclick = async () => {
    await source.restore(await find("lists", last.key));
    form.requestSubmit(byId("send"));
  };
  byId("discard").onclick = async () => {
    await discard(last.key);
    byId("resume").hidden = true;
    file.value = "";
    byId("rows").value = ""; // which a browser may have kept as well
    source.begin();
  };
}

acceptDrops();
offerWork().catch(() => {}); // a private window may keep nothing
form.addEventListener("submit", (event) => {
  event.preventDefault();
  run(async (signal) => (await load()).match(source, signal));
});
form.addEventListener("input", () => { load().catch(() => {}); }, { once: true }); // before it is needed
byId("sure").addEventListener("input", () => { byId("sure-shown").textContent = `${byId("sure").value} %`; });
byId("try").addEventListener("click", () => {
  [file.value, byId("rows").value] = ["", byId("example").content.textContent];
  source.begin();
  form.requestSubmit(byId("send"));
});
byId("stop").addEventListener("click", () => stopping.abort());
byId("workbook").addEventListener("click", () => run(async (signal) => (await load()).downloadWorkbook(signal)));
byId("csv").addEventListener("click", () => run(async (signal) => (await load()).downloadText(signal)));
byId("open").addEventListener("click", () => run(async (signal) => (await load()).downloadText(signal, true)));
byId("copy").hidden = !navigator.clipboard;
byId("copy").addEventListener("click", () => run(async () => (await load()).copy()));
byId("save-decisions").addEventListener("click", async () => (await load()).saveDecisions());
byId("open-decisions").addEventListener("click", () => byId("decisions").click());
byId("decisions").addEventListener("change", () => run(async () => {
  const [chosen] = byId("decisions").files;
  if (chosen) await (await load()).openDecisions(chosen);
  byId("decisions").value = ""; // the same may be opened again
}));
byId("restart").addEventListener("click", async () => (await load()).restart());
