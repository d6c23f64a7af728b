// Patterns of laws of one score: section "Scores" of docs/drawing-protocol.md. Integers alone.

import { Categorical } from "./categorical.js";
import { hexInteger } from "./numbers.js";

const MOST_TABLED = 16; // attributes whose patterns are drawn at once
const MOST_SCORES = 65536;

/** Returns the coefficients of a polynomial times 1 + (a - 1) x^cost. */
function multiplied(counts, a, cost) {
  const found = [...counts, ...Array(cost).fill(0n)];
  const others = BigInt(a - 1);
  counts.forEach((count, s) => (found[s + cost] += others * count));
  return found;
}

/** Returns the coefficients of a polynomial divided by a factor 1 + (a - 1) x^cost that it has. */
export function divided(counts, a, cost) {
  const found = counts.slice(0, counts.length - cost);
  const others = BigInt(a - 1);
  for (let s = cost; s < found.length; s++) found[s] -= others * found[s - cost];
  return found;
}

/** Costs, densities, and the numbers of outputs with every score. */
export class Scores {
  constructor(plain, sizes) {
    this.sizes = sizes;
    this.costs = plain.costs;
    this.densities = plain.densities.map(hexInteger);
    const whole = (cost) => Number.isInteger(cost) && cost >= 1;
    if (this.costs.length !== sizes.length || !this.costs.every(whole)) {
      throw new Error("the costs of a law do not fit its attributes");
    }
    const most = this.costs.reduce((sum, cost) => sum + cost, 0);
    if (most >= MOST_SCORES || this.densities.length !== most + 1) {
      throw new Error("a law needs one density for every score");
    }
    const kinds = new Map();
    sizes.forEach((a, i) => {
      const key = `${a} ${this.costs[i]}`;
      if (!kinds.has(key)) kinds.set(key, { a, cost: this.costs[i], members: [] });
      kinds.get(key).members.push(i);
    });
    this.kinds = [...kinds.values()];
    this.later = [[1n]]; // later[t]: numbers of outputs of the kinds from t on, by score
    for (const { a, cost, members } of [...this.kinds].reverse()) {
      this.later.unshift(members.reduce((counts) => multiplied(counts, a, cost), this.later[0]));
    }
    this.outputs = this.later[0];
    if (this.outputs.some((count, s) => count > 0n !== this.densities[s] > 0n)) {
      throw new Error("a density is missing, or is not above zero");
    }
    if (sizes.length > MOST_TABLED) {
      this.score = new Categorical(this.outputs.map((count, s) => count * this.densities[s]));
    }
  }

  /** The weights of all patterns of few attributes, the first the most significant bit; or null. */
  patternWeights() {
    if (this.sizes.length > MOST_TABLED) return null;
    let patterns = [[0, 1n]];
    this.sizes.forEach((a, i) => {
      patterns = patterns.flatMap(([s, ways]) => [
        [s, ways],
        [s + this.costs[i], ways * BigInt(a - 1)],
      ]);
    });
    return patterns.map(([s, ways]) => ways * this.densities[s]);
  }

  /** Returns the weights of 0 ... m changes in kind t where the score left is given. */
  weights(t, score) {
    const { a, cost, members } = this.kinds[t];
    const rest = this.later[t + 1];
    let ways = 1n;
    return [0, ...members].map((_, n) => {
      if (n > 0) ways = (ways * BigInt(members.length - n + 1) * BigInt(a - 1)) / BigInt(n);
      const s = score - cost * n;
      return s >= 0 && s < rest.length ? ways * rest[s] : 0n;
    });
  }

  /** Yields for every attribute whether it changes. */
  *walk(source) {
    let score = this.score.draw(source);
    const left = this.kinds.map(({ members }) => ({ among: members.length, changes: null }));
    for (let i = 0; i < this.sizes.length; i++) {
      const t = this.kinds.findIndex(({ members }) => members.includes(i));
      if (left[t].changes === null) {
        const { cost } = this.kinds[t];
        const last = t === this.kinds.length - 1;
        const changes = last ? score / cost : new Categorical(this.weights(t, score)).draw(source);
        score -= cost * changes;
        left[t].changes = changes;
      }
      const { among, changes } = left[t];
      const pair = [BigInt(among - changes), BigInt(changes)];
      const changed = among > 1 ? new Categorical(pair).draw(source) : changes;
      left[t] = { among: among - 1, changes: changes - changed };
      yield changed === 1;
    }
  }
}
