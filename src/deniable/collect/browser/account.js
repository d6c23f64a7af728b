// Guarantee of a law, computed from the numbers of the draw, regardless of their origin:
// docs/proofs/collection.md. Levels are upper bounds in nats.

import { divided } from "./scores.js";

const UNIT = 2 ** -53;
const STEP_ROUNDINGS = 12;

const bitLength = (value) => value.toString(16).length * 4;

/** Returns numerator / denominator as a double times a power of two. */
function quotient(top, bottom) {
  const shift = 80 + bitLength(bottom) - bitLength(top);
  const whole = shift >= 0 ? (top << BigInt(shift)) / bottom : top / (bottom << BigInt(-shift));
  return [Number(whole), -shift];
}

/** Returns the logarithm of a ratio of positive integers, without cancellation near one. */
export function logRatio([top, bottom]) {
  if (top < bottom) return -logRatio([bottom, top]);
  if (top === bottom) return 0;
  if ((top - bottom) * 2n < bottom) {
    const [value, power] = quotient(top - bottom, bottom);
    return Math.log1p(power < -1100 ? 0 : value * 2 ** (power / 2) * 2 ** (power - power / 2));
  }
  const [value, power] = quotient(top, bottom);
  return Math.log(value) + power * Math.LN2;
}

const up = (ratio) => Math.abs(logRatio(ratio));
const fraction = (top, bottom) => Math.exp(logRatio([top, bottom]));
const positions = (law) => law.sizes.map((_, i) => i);
const most = (values) => values.reduce((a, b) => (b > a ? b : a), -Infinity);
const least = (values) => values.reduce((a, b) => (b < a ? b : a), Infinity);

function productAccount(law) {
  const { sizes, weights, all } = law;
  const alone = weights.map((weight, i) => up([weight * BigInt(sizes[i] - 1), all - weight]));
  return {
    epsilon: alone.reduce((sum, level) => sum + level, 0),
    alone,
    rest: alone,
    keep: weights.map((weight) => fraction(weight, all)),
  };
}

function patternAccount(law) {
  const { sizes, weights, all } = law;
  const k = sizes.length;
  const bit = (i) => 1 << (k - 1 - i);
  const logs = weights.map((weight, pattern) => {
    const outputs = positions(law).reduce((n, i) => (pattern & bit(i) ? n * (sizes[i] - 1) : n), 1);
    return logRatio([weight, all]) - Math.log(outputs);
  });
  const kept = positions(law).map((i) =>
    weights.reduce((sum, weight, pattern) => (pattern & bit(i) ? sum : sum + weight), 0n),
  );
  return {
    epsilon: most(logs) - least(logs),
    alone: kept.map((weight, i) => up([weight * BigInt(sizes[i] - 1), all - weight])),
    rest: positions(law).map((i) =>
      most(logs.map((log, pattern) => (pattern & bit(i) ? 0 : Math.abs(log - logs[pattern | bit(i)])))),
    ),
    keep: kept.map((weight) => fraction(weight, all)),
  };
}

function scoreAccount({ scores }) {
  const { densities, kinds, outputs } = scores;
  const weighed = (counts, from) =>
    counts.reduce((sum, count, s) => sum + count * densities[s + from], 0n);
  const total = weighed(outputs, 0);
  const rows = [];
  for (const { a, cost, members } of kinds) {
    const others = divided(outputs, a, cost);
    const [kept, changed] = [weighed(others, 0), weighed(others, cost)];
    const steps = others.map((n, s) => (n > 0n ? up([densities[s], densities[s + cost]]) : 0));
    const row = { alone: up([kept, changed]), rest: most(steps), keep: fraction(kept, total) };
    members.forEach((i) => (rows[i] = row));
  }
  const attained = densities.filter((density) => density > 0n);
  return {
    epsilon: up([most(attained), least(attained)]),
    alone: rows.map((row) => row.alone),
    rest: rows.map((row) => row.rest),
    keep: rows.map((row) => row.keep),
  };
}

function singleChangeAccount(law) {
  const { sizes, whole, same, changes, all } = law;
  const outputs = sizes.reduce((n, a) => n * BigInt(a), 1n);
  const kept = whole + same * outputs;
  const single = changes.map((weight, i) => {
    const others = BigInt(sizes[i] - 1);
    return [whole * others + weight * outputs, others];
  });
  // Over the uniform part: no, one, two or more changes.
  const logs = single.map(([top, bottom]) => logRatio([top, bottom * whole]));
  const keptLog = logRatio([kept, whole]);
  const all2 = sizes.length > 1 ? [0] : [];
  const keep = changes.map((weight, i) => {
    const n = BigInt(sizes[i]);
    return [whole + (all - whole - weight) * n, n * all];
  });
  return {
    epsilon: most([keptLog, ...logs, ...all2]) - least([keptLog, ...logs, ...all2]),
    alone: keep.map(([top, bottom], i) => up([top * BigInt(sizes[i] - 1), bottom - top])),
    rest: logs.map((log, i) =>
      most([Math.abs(keptLog - log), ...logs.filter((_, j) => j !== i)]),
    ),
    keep: keep.map(([top, bottom]) => fraction(top, bottom)),
  };
}

function matrixAccount(law) {
  const levels = law.rows
    .filter((row) => row.some((weight) => weight > 0n))
    .map((row) => {
      const high = row.reduce((a, b) => (b > a ? b : a));
      const low = row.reduce((a, b) => (b < a ? b : a));
      return low > 0n ? logRatio([high, low]) : Infinity;
    });
  const epsilon = most(levels);
  const send = law.rows.map((row) => row.map((weight) => (weight > 0n ? fraction(weight, law.all) : 0)));
  const square = send.length === law.sizes[0];
  const trace = send.reduce((sum, row, y) => sum + (square ? row[y] : 0), 0);
  return {
    epsilon,
    alone: [epsilon],
    rest: [epsilon],
    keep: [square ? trace / law.sizes[0] : NaN],
    send: [send],
  };
}

/** Forward sums: keep and change probability of each attribute. */
function forwards(vote) {
  let mass = new Float64Array([1]);
  const keep = [];
  const change = [];
  let widest = 1;
  let i = 0;
  for (const back of vote.tables()) {
    const [low, high] = vote.bounds(i);
    const [nextLow, nextHigh] = vote.bounds(i + 1);
    const next = new Float64Array(nextHigh - nextLow + 1);
    const put = (s, amount) => (next[Math.min(Math.max(s, nextLow), nextHigh) - nextLow] += amount);
    const a = vote.sizes[i];
    const n = vote.weights[i];
    let kept = 0;
    let changed = 0;
    for (let s = low; s <= high; s++) {
      const here = mass[s - low];
      if (here === 0) continue;
      const [stay, plain, extra] = vote.parts(i, back, s);
      const yes = ((a - 1) / a) * stay;
      const no = plain / a + extra / a;
      const goes = here * (yes / (yes + no)); // a product of masses first may underflow
      const stays = here * (no / (yes + no));
      changed += goes;
      kept += stays;
      put(s, goes);
      put(s + n, stays * (plain / (plain + extra)));
      if (extra > 0) put(s + n + 1, stays * (extra / (plain + extra)));
    }
    keep.push(kept);
    change.push(changed);
    widest = Math.max(widest, next.length);
    mass = next;
    i += 1;
  }
  return { keep, change, wrong: 1.01 * (20 * vote.sizes.length + widest + 8) * UNIT };
}

/** Returns the least nondecreasing table above the gate, and the excess of its logarithm. */
function rising(gate) {
  let reached = 0;
  let drop = 0;
  const table = gate.map((value) => {
    reached = Math.max(reached, value);
    drop = Math.max(drop, Math.log(reached) - Math.log(value));
    return reached;
  });
  return { table, drop };
}

/** Factors of a kept and of a changed attribute at the largest density after retention, with all
 * kept, and at the smallest. */
function endWeights(a, stays) {
  const blur = 1 - stays;
  return [
    [stays + blur / a, blur * ((a - 1) / a)],
    [blur / a, stays + blur * ((a - 1) / a)],
  ];
}

/** Backward, with a nondecreasing gate: the two extremes of the density after retention. */
function extremes(vote, gate, retention) {
  let ends = [gate, gate];
  for (let j = vote.sizes.length - 1; j >= 0; j--) {
    const [low, high] = vote.bounds(j);
    const weights = endWeights(vote.sizes[j], retention[j]);
    ends = ends.map((back, end) => {
      const [ifKept, ifChanged] = weights[end];
      return Float64Array.from({ length: high - low + 1 }, (_, s) => {
        const [stay, plain, extra] = vote.parts(j, back, low + s);
        return ifKept * (plain + extra) + ifChanged * stay;
      });
    });
  }
  return ends;
}

/** The largest height of a law in nats (`LARGEST_NORMAL` of deniable.laws.votes); tables contain its
 * exponential from the negative to the positive half. */
const LARGEST_HEIGHT = 640;

function checkTable({ gate }) {
  if (gate.some((value) => !(Math.abs(Math.log(value)) <= LARGEST_HEIGHT / 2 + 1e-9))) {
    throw new Error("a table holds something that is no density");
  }
}

/** One vote, from its tables: keep and change probabilities, extremes, levels. */
function voteAccount(vote, retention) {
  checkTable(vote);
  const { table, drop } = rising(vote.gate);
  const [[allKept], [allChanged]] = extremes(vote, table, retention);
  return {
    ...forwards(vote),
    weight: vote.first[0],
    high: most(vote.gate),
    low: least(vote.gate),
    allKept,
    allChanged,
    drop,
  };
}

/** Largest rise and fall of the log density when attribute i is kept instead of changed. */
function shiftLevel(vote, i) {
  const k = vote.sizes.length;
  const [low, high] = vote.bounds(k);
  const [n, theta] = [vote.weights[i], vote.dither[i]];
  const others = vote.most[k] - n - (theta > 0 ? 1 : 0);
  const first = Math.min(Math.max(0, low - n - 1), others);
  const last = Math.min(high, others);
  const at = (s) => vote.gate[Math.min(Math.max(s, low), high) - low];
  let rise = 0;
  let fall = 0;
  for (let s = first; s <= last; s++) {
    const kept = (1 - theta) * at(s + n) + (theta > 0 ? theta * at(s + n + 1) : 0);
    const level = Math.log(kept) - Math.log(at(s));
    rise = Math.max(rise, level);
    fall = Math.max(fall, -level);
  }
  return { rise, fall };
}

/** A level given the rest, after the attribute's own response. */
function afterResponse({ rise, fall }, a, stays) {
  if (stays === 1 || fall > 8 * UNIT) return Math.max(rise, fall);
  const part = Math.exp(-Math.min(rise, 700));
  const blur = (1 - stays) * (1 / a + (1 - 1 / a) * part);
  return Math.min(rise, Math.log((stays + blur) / (stays * part + blur)));
}

/** Combines retention, slack and votes. `shares` are those of the votes, as drawn. */
function votesAccount({ sizes, retention }, votes, shares) {
  const parts = votes.map((vote) => voteAccount(vote, retention));
  const drawn = parts.map((part, c) => shares[c] * part.weight);
  const total = drawn.reduce((sum, weight) => sum + weight, 0);
  const mean = (read) => parts.reduce((sum, part, c) => sum + (drawn[c] / total) * read(part), 0);
  const over = (read) => parts.reduce((sum, part, c) => sum + shares[c] * read(part), 0);
  const logs = 4 * (Math.abs(Math.log(most(parts.map((part) => part.high)))) + 8);
  const slack = 2.02 * (STEP_ROUNDINGS * (sizes.length + 2) + parts.length + logs) * UNIT;
  const log = (read) => Math.log(over(read)); // a quotient could overflow
  const height = log((part) => part.high) - log((part) => part.low);
  const ends = log((part) => part.allKept) - log((part) => part.allChanged);
  const drop = most(parts.map((part) => part.drop));
  const epsilon = Math.min(height, ends + drop + slack) + slack;
  const wrong = most(parts.map((part) => part.wrong)) + (parts.length + 8) * 2 * UNIT;
  const keep = sizes.map((a, i) => retention[i] * mean((part) => part.keep[i]) + (1 - retention[i]) / a);
  const change = sizes.map(
    (a, i) => retention[i] * mean((part) => part.change[i]) + (1 - retention[i]) * (1 - 1 / a),
  );
  return {
    epsilon,
    alone: sizes.map((a, i) => Math.abs(Math.log((keep[i] * (a - 1)) / change[i])) + 2.02 * wrong),
    rest: sizes.map((a, i) => {
      const levels = votes.map((vote) => afterResponse(shiftLevel(vote, i), a, retention[i]));
      return Math.min(most(levels) + slack, epsilon);
    }),
    keep,
    bounded: true,
  };
}

const ACCOUNTS = {
  product: productAccount,
  patterns: patternAccount,
  scores: scoreAccount,
  "single change": singleChangeAccount,
  matrix: matrixAccount,
  identity: (law) => ({
    epsilon: 0, asItIs: true,
    alone: law.sizes.map(() => Infinity), rest: law.sizes.map(() => Infinity),
    keep: law.sizes.map(() => 1),
  }),
  "gated sum": (law) => votesAccount(law, [law.patterns], [1]),
  blend: (law) => votesAccount(law, law.patterns.parts, law.patterns.shares),
};

/** Returns the levels of all attributes in order, and that of the record. */
export function account(sampler) {
  const rows = [];
  let epsilon = 0;
  let bounded = false;
  for (const { places, law } of sampler.blocks) {
    const own = ACCOUNTS[law.kind](law);
    epsilon += own.epsilon;
    bounded = bounded || own.bounded === true;
    places.forEach((place, i) => {
      rows[place] = {
        alone: own.alone[i],
        rest: own.rest[i],
        keep: own.keep[i],
        send: own.send === undefined ? null : own.send[i],
        asItIs: own.asItIs === true,
      };
    });
  }
  return { epsilon, rows, bounded };
}

/** Returns the largest belief of an observer afterwards, in per cent, for a belief before: rounded
 * up, as in the report; 100 is near certainty. */
export function posterior(prior, epsilon) {
  const share = prior / (prior + (1 - prior) * Math.exp(-epsilon));
  const places = share < 0.99 ? 1 : Math.min(4, Math.ceil(-Math.log10(Math.max(1 - share, 1e-9))) - 1);
  return Math.min(100, Math.ceil(100 * share * 10 ** places) / 10 ** places);
}

/** Compares the stated levels of a study with those of its law; throws if one is too low. */
export function checkStatements(sampler, stated) {
  const found = account(sampler);
  const room = found.bounded ? 1e-9 : 1e-12;
  const compare = (what, level, claim) => {
    if (!(Number.isFinite(level) && typeof claim === "number" && level <= claim + room * Math.max(1, claim))) {
      throw new Error(`the study states too low a level: ${what}`);
    }
  };
  compare("the whole record", found.epsilon, stated.epsilon);
  found.rows.forEach((row, i) => {
    const claim = stated.attributes[i];
    if (row.asItIs) {
      if (claim.epsilon !== null) throw new Error(`the study states a level for ${claim.name}`);
      return;
    }
    compare(claim.name, row.alone, claim.epsilon);
    compare(claim.name, row.rest, claim.epsilon_given_rest);
    const keep = claim.keep_probability;
    if (Number.isNaN(row.keep) ? keep !== null : !(Math.abs(keep - row.keep) <= 1e-9)) {
      throw new Error(`the study states another chance of being kept: ${claim.name}`);
    }
  });
  return found;
}
