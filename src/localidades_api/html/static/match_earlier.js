// What a file that the service has written says when it comes back, in either language: what was decided, and the keys that
// somebody has typed into it since.
import { byId, say, words } from "./match_texts.js";

const OWN_COLUMNS = [/^(Resultado|match\d*_outcome)( \(\d+\))?$/, /^(Clave INEGI \(CVEGEO\)|match\d*_cvegeo)( \(\d+\))?$/];
// A key, or an option with it in front; a spreadsheet drops the zero of one.
const TYPED = /^\D{0,2}(\d{8,9}|\d{4,5})(?!\d)/;
const SHOWN = 5; // cells that were not read
/** @type {HTMLElement[]} */
const outcomes = Array.from(byId("outcomes").content.querySelectorAll("[data-words]"));
const codes = outcomes.flatMap((one) => String(one.dataset.words).split("|").map((word) => [word, one.className]));

// Gives each answer of a row from such a file `earlier`: the cells `before` those of the answer, the `decision` in them, and
// whether its key `isTyped`. `lookUp` returns the places of keys. What can't be read is told.
export async function readEarlier(answers, lookUp) {
  const typed = [];
  for (const answer of answers) {
    const own = ownCells(answer.sent);
    if (!own) continue;
    answer.earlier = { before: own.before, decision: decisionOf(own), isTyped: false };
    if (isTypedInto(answer, own)) typed.push({ answer, text: own.cvegeo, key: own.cvegeo.match(TYPED)?.[1] });
  }
  const keys = [...new Set(typed.map(({ key }) => key).filter(Boolean))];
  const places = keys.length ? await lookUp(keys) : new Map();
  const unread = [];
  for (const { answer, text, key } of typed) {
    const place = places.get(key);
    if (place) Object.assign(answer.earlier, { decision: { place: { ...place } }, isTyped: true });
    else unread.push(say("unreadKey", { row: answer.number, text: text.slice(0, 100) }));
  }
  const taken = typed.length - unread.length;
  const told = [...(taken ? [say("typedKeys", { count: taken })] : []), ...unread.slice(0, SHOWN)];
  if (unread.length > SHOWN) told.push(say("moreUnread", { count: unread.length - SHOWN }));
  byId("typed").hidden = !told.length;
  byId("typed-said").textContent = told.join(" ");
  byId("look").hidden = !taken;
  byId("look").textContent = words.look;
}

// Returns the cells that an earlier answer has added to a row, and those before them; null if there are none.
function ownCells(sent) {
  const headers = Object.keys(sent);
  const at = headers.findLastIndex((one, index) => OWN_COLUMNS[0].test(one) && OWN_COLUMNS[1].test(headers[index + 1] ?? ""));
  if (at < 0) return null;
  const cells = Object.values(sent);
  const [outcome, cvegeo, label] = cells.slice(at).map((cell) => String(cell).trim());
  return { before: cells.slice(0, at), outcome, cvegeo, label };
}

// Returns the outcome that a cell says.
const codeOf = (text) => codes.find(([word, code]) => (code === "accepted" ? text.startsWith(word) : text === word))?.[1];

// Returns what a person had decided on the page.
function decisionOf({ outcome, cvegeo, label }) {
  const code = codeOf(outcome);
  if (code === "rejected" && !cvegeo) return { place: null };
  if (!cvegeo || (code !== "chosen" && code !== "accepted")) return null;
  const score = code === "accepted" ? { score: Number(outcome.match(/\d+/)?.[0]) } : {};
  return { place: { id: Number(cvegeo), cvegeo, label }, ...score };
}

// Whether a cell has a key that the service did not write: only a row that is certain or decided has one of its.
function isTypedInto({ outcome, cvegeo: found }, { outcome: said, cvegeo }) {
  const code = codeOf(said);
  if (code === "exact" || code === "sure") return cvegeo !== "" && (outcome === "exact" || outcome === "sure") && Number(cvegeo) !== Number(found);
  return cvegeo !== "" && code !== "chosen" && code !== "accepted";
}
