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

export const keep = async (name, record) => result((await stored(name, "readwrite")).put(record));

export async function find(name, key) {
  return result((await stored(name, "readonly")).get(key));
}

// Returns the decisions that were taken last on a list that is kept.
export async function findLast() {
  const all = await result((await stored("decisions", "readonly")).getAll());
  return all.sort((one, other) => other.when - one.when)[0];
}

// Forgets a list and its decisions, or neither if the page is left before.
export async function discard(key) {
  const both = await transaction(STORES, "readwrite");
  await Promise.all(STORES.map((name) => result(both.objectStore(name).delete(key))));
}
