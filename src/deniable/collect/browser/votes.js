// Patterns of weighted votes: sections "Gated sums" and "Blends" of
// docs/drawing-protocol.md. Additions, multiplications and divisions of doubles, in the order of
// the specification; no exponential: the gate comes as a table.

import { Categorical, choose } from "./categorical.js";
import { exactRatio, hexDouble, hexInteger } from "./numbers.js";

const MEMORY = 48 * 1024 * 1024; // bytes of tables kept; more are built again for every draw
const LARGEST_WEIGHT = 268435456;

function clamp(value, low, high) {
  return value < low ? low : value > high ? high : value;
}

/** One vote or ramp over all attributes: bounds of its states, and its backward recursion. */
export class GatedSum {
  constructor(plain, sizes, gate) {
    this.sizes = sizes;
    this.weights = plain.weights.map((text) => Number(hexInteger(text)));
    this.dither = plain.dither.map(hexDouble);
    const start = hexDouble(plain.start);
    const width = hexDouble(plain.width);
    const k = sizes.length;
    if (this.weights.length !== k || this.dither.length !== k || start < 0 || width <= 0) {
      throw new Error("a vote does not fit its attributes");
    }
    if (this.dither.some((theta) => !(theta === 0 || (theta >= 8.673617379884035e-19 && theta < 1)))) {
      throw new Error("a dither is out of range");
    }
    this.bottom = Math.floor(start);
    this.top = Math.ceil(start + width);
    this.most = [0];
    for (let i = 0; i < k; i++) {
      this.most.push(this.most[i] + this.weights[i] + (this.dither[i] > 0 ? 1 : 0));
    }
    if (this.most[k] > LARGEST_WEIGHT) throw new Error("the weights of a vote are too large");
    this.gate = gate;
    const [low, high] = this.bounds(k);
    if (gate.length !== high - low + 1) throw new Error("a table does not fit its vote");
    this.keepTables();
  }

  /** The first and last distinguished state before attribute i. */
  bounds(i) {
    const k = this.sizes.length;
    const high = Math.min(this.most[i], this.top);
    return [Math.min(Math.max(0, this.bottom - (this.most[k] - this.most[i])), high), high];
  }

  /** G_i from G_{i+1}. */
  before(i, back) {
    const [low, high] = this.bounds(i);
    const table = new Float64Array(high - low + 1);
    for (let s = low; s <= high; s++) {
      const [stay, plain, extra] = this.parts(i, back, s);
      const a = this.sizes[i];
      table[s - low] = ((a - 1) / a) * stay + (plain / a + extra / a);
    }
    return table;
  }

  /** G_{i+1} after changing attribute i, and (1 - theta) G_{i+1} and theta G_{i+1} after keeping it
   * without and with dither, from state s. */
  parts(i, back, s) {
    const [low, high] = this.bounds(i + 1);
    const n = this.weights[i];
    const theta = this.dither[i];
    const at = (state) => back[clamp(state, low, high) - low];
    return [at(s), (1 - theta) * at(s + n), theta > 0 ? theta * at(s + n + 1) : 0];
  }

  keepTables() {
    const k = this.sizes.length;
    let states = 0;
    for (let i = 0; i <= k; i++) states += this.bounds(i)[1] - this.bounds(i)[0] + 1;
    this.stride = states * 8 <= MEMORY ? 1 : Math.max(1, Math.floor(Math.sqrt(k)));
    this.kept = new Map();
    let back = this.gate;
    for (let i = k; i > 0; i--) {
      if (i % this.stride === 0 || i === k) this.kept.set(i, back);
      back = this.before(i - 1, back);
    }
    this.first = back;
  }

  /** Yields G_1, ..., G_k in this order. */
  *tables() {
    const k = this.sizes.length;
    for (let start = 0; start < k; start += this.stride) {
      const end = Math.min(start + this.stride, k);
      const built = [this.kept.get(end)];
      for (let i = end - 1; i > start; i--) built.push(this.before(i, built[built.length - 1]));
      while (built.length) yield built.pop();
    }
  }

  /** Yields for every attribute whether it changes. */
  *walk(source) {
    let s = 0;
    let i = 0;
    for (const back of this.tables()) {
      const [stay, plain, extra] = this.parts(i, back, s);
      const a = this.sizes[i];
      const changed = choose(((a - 1) / a) * stay, plain / a + extra / a, source);
      let gain = this.weights[i];
      if (this.dither[i] > 0 && choose(extra, plain, source)) gain += 1;
      const [low, high] = this.bounds(i + 1);
      s = clamp(changed ? s : s + gain, low, high);
      i += 1;
      yield changed;
    }
  }
}

/** Returns a draw of doubles that are weights, exactly. */
function ofDoubles(values) {
  const ratios = values.map(exactRatio);
  let common = 1n;
  for (const [, bottom] of ratios) if (bottom > common) common = bottom;
  return new Categorical(ratios.map(([top, bottom]) => top * (common / bottom)));
}

/** Patterns of a blend of votes: a vote, then a pattern under it. */
export class Blend {
  constructor(plain, sizes, gates) {
    this.shares = plain.shares.map(hexDouble);
    if (plain.votes.length !== this.shares.length || gates.length !== this.shares.length) {
      throw new Error("a blend needs a share and a table for every vote");
    }
    this.parts = plain.votes.map((vote, c) => new GatedSum(vote, sizes, gates[c]));
    this.vote = ofDoubles(this.parts.map((part, c) => this.shares[c] * part.first[0]));
  }

  walk(source) {
    return this.parts[this.vote.draw(source)].walk(source);
  }
}
