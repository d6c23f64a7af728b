// Draws with exactly the stated probabilities: section "Draws" of docs/drawing-protocol.md.

import { exactRatio } from "./numbers.js";
import { bigWord, shortWord } from "./randomness.js";

const MOST_DIRECT = 4096;

/** Returns the number of ascending `values` at most `limit`. */
function countUpTo(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Draws outcome j with probability weights[j] / sum(weights); weights are BigInt. */
export class Categorical {
  constructor(weights, prefixBits = 16) {
    this.count = weights.length;
    this.edges = [];
    let total = 0n;
    for (const weight of weights) {
      if (weight < 0n) throw new Error("a weight is negative");
      total += weight;
      this.edges.push(total);
    }
    this.edges.pop();
    if (total <= 0n) throw new Error("no weight is above zero");
    this.total = total;
    this.prefixBits = this.count <= MOST_DIRECT ? prefixBits : 64;
    if (this.prefixBits < 64) {
      // With b_j = c_j 2^bits / total and U in [t, t + 1) / 2^bits: outcomes ceil(b_j) <= t are
      // certainly passed, those with floor(b_j) <= t possibly.
      const bits = BigInt(this.prefixBits);
      this.floors = this.edges.map((c) => Number((c << bits) / total));
      this.ceilings = this.edges.map((c) => Number(((c << bits) + total - 1n) / total));
    }
  }

  draw(source) {
    if (this.prefixBits === 64) return settled(this.edges, this.total, bigWord(source), source);
    if (this.count === 1) return 0;
    const prefix = shortWord(source, this.prefixBits);
    const least = countUpTo(this.ceilings, prefix);
    if (least === countUpTo(this.floors, prefix)) return least;
    const bits = BigInt(this.prefixBits);
    const value = (BigInt(prefix) << (64n - bits)) | (bigWord(source) >> bits);
    return settled(this.edges, this.total, value, source);
  }
}

/** Returns the number of boundaries c / total at or below U, whose first 64 bits are `value`;
 * further bits are drawn as needed. */
export function settled(edges, total, value, source) {
  let bits = 64n;
  for (;;) {
    const least = countUpTo(edges, (value * total) >> bits);
    const most = countUpTo(edges, ((value + 1n) * total - 1n) >> bits);
    if (least === most) return least;
    value = (value << 64n) | bigWord(source);
    bits += 64n;
  }
}

/** Returns a category below n, each as likely; one object for each n and width of the prefix. */
const uniforms = new Map();
export function uniform(n, prefixBits = 16) {
  const key = n * 64 + prefixBits;
  if (!uniforms.has(key)) uniforms.set(key, new Categorical(Array(n).fill(1n), prefixBits));
  return uniforms.get(key);
}

/** Returns the point of a number, by its units above the lowest point, of which a point has `step`:
 * section "Numbers" of docs/drawing-protocol.md. */
export function rounded(units, step, source) {
  const whole = (value, bits) => (value * step) >> bits;
  let value = bigWord(source);
  let bits = 64n;
  while (whole(value, bits) !== ((value + 1n) * step - 1n) >> bits) {
    value = (value << 64n) | bigWord(source);
    bits += 64n;
  }
  return Number(units / step) + (whole(value, bits) < units % step ? 1 : 0);
}

/** Draws "yes" with the probability of two positive doubles: section "Choices". */
export function choose(yes, no, source) {
  const flip = yes > no;
  const smaller = (flip ? no : yes) / (yes + no);
  const edge = Math.floor(smaller * 65536);
  const drawn = shortWord(source, 16);
  const first = flip ? 65535 - drawn : drawn;
  const below = first === edge ? decided(smaller, edge, source) : first < edge;
  return below !== flip;
}

function decided(smaller, edge, source) {
  let [top, bottom] = exactRatio(smaller);
  // rest = probability 2^16 - edge, as top / bottom
  top = (top << 16n) - BigInt(edge) * bottom;
  while (top > 0n) {
    top <<= 64n;
    const digit = top / bottom;
    const more = bigWord(source);
    if (more !== digit) return more < digit;
    top -= digit * bottom;
  }
  return false;
}
