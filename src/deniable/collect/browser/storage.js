// Stored state of a study: one draw until it has arrived, then the fact of an answer. In IndexedDB:
// localStorage reaches the disk seconds later, and a browser killed meanwhile would draw again.

const NAME = "kept";

/** Waits for a request or a transaction of the database. */
const settling = (waited, event) =>
  new Promise((done, failed) => {
    waited[event] = () => done(waited.result);
    waited.onerror = waited.onabort = () => failed(waited.error);
  });

/** The state of one study in this browser: null, {state: "drawn", body, receipt} or
 * {state: "answered", receipt}, never true answers. */
export class Kept {
  constructor(study) {
    this.key = `deniable ${study}`;
    this.lasting = false;
    this.memory = null;
  }

  /** Returns the state of a study; `lasting`: whether this browser stores it. */
  static async of(study) {
    const kept = new Kept(study);
    try {
      const opening = indexedDB.open("deniable", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(NAME);
      kept.database = await settling(opening, "onsuccess");
      const probe = `${kept.key} probe`;
      await kept.change((store) => store.put("1".repeat(4096), probe)); // room for a record
      await kept.change((store) => store.delete(probe));
      kept.lasting = true;
    } catch {
      kept.lasting = false;
    }
    return kept;
  }

  /** Changes the stored state; on the disk when done. */
  change(work) {
    const transaction = this.database.transaction(NAME, "readwrite", { durability: "strict" });
    work(transaction.objectStore(NAME));
    return settling(transaction, "oncomplete");
  }

  async read() {
    if (!this.lasting) return this.memory;
    try {
      const store = this.database.transaction(NAME).objectStore(NAME);
      return (await settling(store.get(this.key), "onsuccess")) ?? this.memory;
    } catch {
      return this.memory;
    }
  }

  async write(value) {
    this.memory = value;
    if (!this.lasting) return;
    try {
      await this.change((store) => (value === null ? store.delete(this.key) : store.put(value, this.key)));
    } catch {
      this.lasting = false;
    }
  }

  /** Runs exclusively among the tabs of this study. */
  alone(work) {
    return navigator.locks === undefined ? work() : navigator.locks.request(this.key, work);
  }
}
