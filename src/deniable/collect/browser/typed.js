// A typed number, in the digits of any script, and its interval.

const DIGIT = /\p{Decimal_Number}/u;

/** Returns the value of a decimal digit: the number of consecutive digits before it. */
function digitValue(letter) {
  const code = letter.charCodeAt(0);
  let value = 0;
  while (value < 9 && DIGIT.test(String.fromCharCode(code - value - 1))) value += 1;
  return value;
}

/** Returns a typed number as decimal text, empty if invalid or ambiguous: three digits after a comma or
 * a point may be thousands, unless preceded by `decimal`, the decimal mark of the page's language. */
export function decimalFrom(typed, decimal) {
  const plain = typed
    .replace(/\p{Cf}/gu, "") // marks of direction
    .replace(/\p{Decimal_Number}/gu, (letter) => (letter.length === 1 ? digitValue(letter) : letter))
    .replace("\u2212", "-")
    .trim();
  const [, whole, sign, part] = /^(-?\d+)(?:([.,\u066b])(\d+))?$/.exec(plain) ?? [];
  if (whole === undefined) return "";
  if (part === undefined) return whole;
  const meant = sign === decimal || sign === "\u066b";
  if (!meant && part.length === 3 && /^-?[1-9]\d{0,2}$/.test(whole)) return "";
  return `${whole}.${part}`;
}

/** Returns a date as the days since 1970-01-01, as text. */
export const daysFrom = (date) => String(Date.parse(date) / 86400000);

/** Returns the index of the interval of a number, the last one closed; -1 without one. A first or
 * last edge of null is an open end. */
export function intervalOf(edges, value) {
  const last = edges.length - 2;
  if (value === edges[last + 1]) return last;
  return edges.findIndex((edge, j) =>
    j <= last && (edge ?? -Infinity) <= value && value < (edges[j + 1] ?? Infinity));
}
