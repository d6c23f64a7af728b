// What the browser keeps of a study: one draw until it has arrived, then that it was answered.

/** The state of one study in this browser: null, {state: "drawn", body, receipt} or
 * {state: "answered", receipt}. True answers are never among it. */
export class Kept {
  constructor(study) {
    this.key = `deniable ${study}`;
    this.lasting = this.works();
    this.memory = null;
  }

  /** Whether this browser lets the page remember anything. */
  works() {
    try {
      const probe = `${this.key} probe`;
      localStorage.setItem(probe, "1".repeat(4096)); // room for a record, not just for a letter
      localStorage.removeItem(probe);
      return true;
    } catch {
      return false;
    }
  }

  read() {
    if (!this.lasting) return this.memory;
    try {
      return JSON.parse(localStorage.getItem(this.key));
    } catch {
      return this.memory;
    }
  }

  write(value) {
    this.memory = value;
    if (!this.lasting) return;
    try {
      localStorage.setItem(this.key, JSON.stringify(value));
    } catch {
      this.lasting = false;
    }
  }

  forget() {
    this.memory = null;
    try {
      localStorage.removeItem(this.key);
    } catch {
      this.lasting = false;
    }
  }

  /** Does something while no other tab of this study does. */
  alone(work) {
    return navigator.locks === undefined ? work() : navigator.locks.request(this.key, work);
  }
}
