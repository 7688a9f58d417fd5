// The work on lists, which lasts in this browser until the person discards it: what was given and how it is read, and what
// was decided of its rows. Nothing of it leaves the browser.

const DATABASE = "match";
const result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

const STORES = ["lists", "decisions"];

async function transaction(names, mode) {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => {
    for (const one of STORES) opening.result.createObjectStore(one, { keyPath: "key" });
  };
  return (await result(opening)).transaction(names, mode);
}

const stored = async (name, mode) => (await transaction(name, mode)).objectStore(name);

// Returns the digest of a list, SHA-256 where the page has a secure connection, and its length with a checksum elsewhere:
// rows are recognized by their cells besides.
export async function digestOf(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  if (crypto.subtle) return [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].join(",");
  return `${bytes.length}-${bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, 7)}`;
}

export async function find(name, key) {
  return result((await stored(name, "readonly")).get(key));
}

// Decisions are of rows, by id; one is of a place, of none of the options (`null`), or was taken back (no `place`).
export const isTaken = (decision) => decision !== undefined && decision.place !== undefined;

// Returns which of some rows were decided after what is known of them.
export function newer(rows, known) {
  return rows.filter(([id, { when = 0 }]) => when > (known.get(id)?.when ?? -1));
}

// Keeps a list and what is decided of its rows. What another tab has kept meanwhile stands if it is later; returns all
// rows, and those that this browser had not kept.
export async function keepWork(list, { left, rows, isListKept }) {
  const both = await transaction(STORES, "readwrite");
  const [lists, decisions] = STORES.map((name) => both.objectStore(name));
  const known = new Map((await result(decisions.get(list.key)))?.rows);
  const fresh = newer(rows, known);
  const all = [...new Map([...known, ...fresh])];
  if (all.some(([, decision]) => isTaken(decision))) {
    await result(decisions.put({ key: list.key, name: list.name, when: Date.now(), left, rows: all }));
    if (!isListKept || !(await result(lists.getKey(list.key)))) await result(lists.put(list));
  } else await Promise.all([lists, decisions].map((store) => result(store.delete(list.key))));
  return { all, fresh };
}

// Returns what was decided of the rows of other lists that say what some rows say, by what they say: each with the name of
// its list, the latest first; nothing of those that were decided in two ways in one list.
export async function findSame(key, said) {
  const found = new Map();
  for (const work of (await works()).filter((one) => one.key !== key)) {
    const own = new Map();
    for (const [, decision] of work.rows) {
      if (!isTaken(decision) || !said.has(decision.said) || found.has(decision.said)) continue;
      const other = own.get(decision.said);
      const isSame = !other || other.place?.cvegeo === decision.place?.cvegeo;
      own.set(decision.said, isSame ? { ...decision, from: work.name } : { place: undefined });
    }
    for (const [cells, decision] of own) if (isTaken(decision)) found.set(cells, decision);
  }
  return found;
}

async function works() {
  const all = await result((await stored("decisions", "readonly")).getAll());
  return all.sort((one, other) => other.when - one.when);
}

// Returns the decisions that were taken last on a list that is kept.
export const findLast = async () => (await works())[0];

// Forgets a list and its decisions, or neither if the page is left before.
export async function discard(key) {
  const both = await transaction(STORES, "readwrite");
  await Promise.all(STORES.map((name) => result(both.objectStore(name).delete(key))));
}
