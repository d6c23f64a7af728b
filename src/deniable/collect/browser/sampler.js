// The laws, each as a draw of one record: docs/drawing-protocol.md, section "Laws".

import { Categorical, choose, rounded, settled, uniform } from "./categorical.js";
import { doublesFromBase64, hexDouble, hexInteger } from "./numbers.js";
import { bigWord } from "./randomness.js";
import { Scores } from "./scores.js";
import { Blend, GatedSum } from "./votes.js";

/** A block of the mechanism record, decoded: sizes, integers, tables. */
export function readBlock(plain, gates, sizes) {
  const law = LAWS[plain.family];
  if (law === undefined) throw new Error("this page does not know the law of this study");
  return law(plain, sizes, gates.map(doublesFromBase64));
}

const total = (plain) => {
  if (!Number.isInteger(plain.bits) || plain.bits < 1) throw new Error("a width is missing");
  return 1n << BigInt(plain.bits);
};

const sum = (weights) => weights.reduce((all, weight) => all + weight, 0n);

function addUp(weights, plain) {
  if (sum(weights) !== total(plain)) throw new Error("the weights of a law do not add up");
  return weights;
}

function shifting(sizes, shifts) {
  return (codes, source) => shifts(source).map((shift, i) => (codes[i] + shift) % sizes[i]);
}

const differently = (sizes) => new Set(sizes).size;

function product(plain, sizes) {
  const all = total(plain);
  const weights = plain.keep_weights.map(hexInteger);
  if (weights.length !== sizes.length || weights.some((w) => w <= 0n || w >= all)) {
    throw new Error("a weight of a law is out of range");
  }
  const prefix = sizes.length < 512 ? 16 : 8;
  const tables = weights.map((weight, i) => {
    const others = Array(sizes[i] - 1).fill(all - weight);
    return new Categorical([weight * BigInt(sizes[i] - 1), ...others], prefix);
  });
  return {
    kind: "product", sizes, weights, all,
    draw: shifting(sizes, (source) => tables.map((table) => table.draw(source))),
  };
}

function patternTable(plain, sizes) {
  const k = sizes.length;
  const weights = addUp(plain.weights.map(hexInteger), plain);
  if (k > 20 || weights.length !== 1 << k || weights.some((weight) => weight <= 0n)) {
    throw new Error("a table of patterns does not fit its attributes");
  }
  return { kind: "patterns", sizes, weights, all: total(plain), draw: ofPatterns(sizes, weights) };
}

/** Draws a pattern, then another category of every attribute, used where it changes. */
function ofPatterns(sizes, weights) {
  const pattern = new Categorical(weights);
  const k = sizes.length;
  return shifting(sizes, (source) => {
    const drawn = pattern.draw(source);
    return sizes.map((n, i) => {
      const other = 1 + uniform(n - 1).draw(source);
      return (drawn >> (k - 1 - i)) & 1 ? other : 0;
    });
  });
}

function singleChange(plain, sizes) {
  const changes = plain.change_weights.map(hexInteger);
  const [whole, same] = [plain.uniform_weight, plain.unchanged_weight].map(hexInteger);
  const pieces = addUp([whole, same, ...changes], plain);
  if (changes.length !== sizes.length || whole <= 0n) throw new Error("a law does not fit");
  const piece = new Categorical(pieces);
  return {
    kind: "single change", sizes, whole, same, changes, all: total(plain),
    draw: shifting(sizes, (source) => {
      const drawn = piece.draw(source);
      return sizes.map((n, i) => {
        const anything = uniform(n).draw(source);
        const other = 1 + uniform(n - 1).draw(source);
        return drawn === 0 ? anything : drawn === i + 2 ? other : 0;
      });
    }),
  };
}

function matrix(plain, sizes) {
  const all = total(plain);
  const rows = plain.weights.map((row) => row.map(hexInteger));
  if (sizes.length !== 1 || rows.some((row) => row.length !== sizes[0])) {
    throw new Error("a matrix does not fit its attribute");
  }
  const edges = Array.from({ length: sizes[0] }, (_, x) => {
    let reached = 0n;
    const sums = rows.map((row) => (reached += row[x]));
    if (sums.pop() !== all || rows.some((row) => row[x] < 0n)) {
      throw new Error("a column of a matrix does not add up");
    }
    return sums;
  });
  return {
    kind: "matrix", sizes, rows, all,
    draw: ([code], source) => [settled(edges[code], all, bigWord(source), source)],
  };
}

function voted(kind, patterns) {
  return (plain, sizes, gates) => {
    const retention = plain.retention.map(hexDouble);
    if (retention.length !== sizes.length || retention.some((kept) => !(kept > 0 && kept <= 1))) {
      throw new Error("a retention is out of range");
    }
    const drawn = patterns(plain, sizes, gates);
    return { kind, sizes, retention, patterns: drawn, draw: ofWalks(sizes, retention, drawn) };
  };
}

/** Draws for one attribute after the other whether it changes, and another category. */
function ofWalks(sizes, retention, patterns) {
  const prefix = differently(sizes) < 64 ? 16 : 8;
  return shifting(sizes, (source) => {
    const changes = patterns.walk(source);
    return sizes.map((n, i) => {
      const changed = changes.next().value;
      const other = 1 + uniform(n - 1, prefix).draw(source);
      const shift = changed ? other : 0;
      if (retention[i] === 1) return shift;
      const anything = uniform(n, prefix).draw(source);
      return choose(retention[i], 1 - retention[i], source) ? shift : anything;
    });
  });
}

function scoreTable(plain, sizes) {
  const scores = new Scores(plain, sizes);
  const weights = scores.patternWeights();
  const draw = weights ? ofPatterns(sizes, weights) : ofWalks(sizes, sizes.map(() => 1), scores);
  return { kind: "scores", sizes, scores, draw };
}

const LAWS = {
  product,
  "pattern-table": patternTable,
  "score-table": scoreTable,
  "single-change-mixture": singleChange,
  matrix,
  "designed matrix": matrix,
  identity: (plain, sizes) => ({ kind: "identity", sizes, draw: (codes) => [...codes] }),
  "gated-sum": voted("gated sum", (plain, sizes, gates) => new GatedSum(plain, sizes, gates[0])),
  "blended-votes": voted("blend", (plain, sizes, gates) => new Blend(plain, sizes, gates)),
};

/** Returns the codes of a record of answers, one for each question: codes of its column, of a number
 * units, which are rounded to a point. */
export function codesOf(questions, names, answers, source) {
  const codes = names.map(() => 0);
  questions.forEach(({ attribute, stride, grid }, q) => {
    const code = grid ? rounded(answers[q], BigInt(grid.step), source) : answers[q];
    codes[names.indexOf(attribute)] += code * stride;
  });
  return codes;
}

/** Reads the law of a study and draws records from it.
 *
 * `blocks` and `gates` are those of study.json, `names` and `sizes` the attributes in order. */
export class Sampler {
  constructor(blocks, gates, names, sizes) {
    this.blocks = blocks.map((block, b) => {
      const places = block.attributes.map((name) => names.indexOf(name));
      if (places.includes(-1)) throw new Error("a law names an attribute that is not there");
      return { places, law: readBlock(block.law, gates[b], places.map((i) => sizes[i])) };
    });
    const covered = this.blocks.flatMap((block) => block.places).sort((i, j) => i - j);
    if (covered.length !== names.length || covered.some((place, i) => place !== i)) {
      throw new Error("every attribute needs exactly one law");
    }
  }

  /** Returns the randomized codes of one record of codes. */
  draw(codes, source) {
    const drawn = Array(codes.length);
    for (const { places, law } of this.blocks) {
      law.draw(places.map((i) => codes[i]), source).forEach((code, j) => (drawn[places[j]] = code));
    }
    return drawn;
  }
}
