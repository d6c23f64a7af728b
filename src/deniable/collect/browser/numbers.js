// Numbers as records write them, exactly: hexadecimal integers and doubles.

/** Returns 2^exponent for -1022 <= exponent <= 1023, from its bits. */
function powerOfTwo(exponent) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(exponent + 1023) << 52n);
  return view.getFloat64(0);
}

/** Returns the units of a decimal text above the lowest point of a grid, as a BigInt; null for other
 * text and outside the range. Decimals that a unit does not have are rounded, ties to even. */
export function unitsOf(text, { lowest, step, decimals, points, clip }) {
  const [, sign, whole, part = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined) return null;
  const further = part.slice(decimals);
  const half = "5".padEnd(further.length, "0");
  let size = BigInt(whole + part.slice(0, decimals).padEnd(decimals, "0"));
  if (further > half || (further === half && size % 2n === 1n)) size += 1n;
  const units = ((sign ? -size : size) - BigInt(lowest)) * BigInt(points - 1);
  const most = BigInt(step) * BigInt(points - 1);
  if (units >= 0n && units <= most) return units;
  return clip ? (units < 0n ? 0n : most) : null;
}

/** Returns the integer of hexadecimal text. */
export function hexInteger(text) {
  if (typeof text !== "string" || !/^[0-9a-f]+$/.test(text)) {
    throw new Error("a weight is not a hexadecimal number");
  }
  return BigInt("0x" + text);
}

/** Returns the double of Python's float.hex: normal, or zero. */
export function hexDouble(text) {
  const parts = /^0x([01])\.([0-9a-f]{13}|0)p([+-]\d{1,4})$/.exec(text);
  if (parts === null) throw new Error("a number is not a hexadecimal double");
  const exponent = Number(parts[3]);
  if (parts[1] === "0") {
    if (parts[2] !== "0" && /[1-9a-f]/.test(parts[2])) throw new Error("a number is too small");
    return 0;
  }
  if (exponent < -1022 || exponent > 1023) throw new Error("a number is out of range");
  const fraction = parts[2].length === 13 ? parseInt(parts[2], 16) : 0;
  return (1 + fraction / 4503599627370496) * powerOfTwo(exponent);
}

/** Returns a positive finite double as numerator and denominator. */
export function exactRatio(value) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const biased = Number(bits >> 52n);
  const fraction = bits & 0xfffffffffffffn;
  const whole = biased === 0 ? fraction : fraction | 0x10000000000000n;
  const exponent = (biased === 0 ? 1 : biased) - 1075;
  return exponent >= 0 ? [whole << BigInt(exponent), 1n] : [whole, 1n << BigInt(-exponent)];
}

/** Returns doubles from their bits in base64, least significant byte first. */
export function doublesFromBase64(text) {
  const bytes = [];
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let held = 0;
  let bits = 0;
  for (const letter of text.replace(/=+$/, "")) {
    const digit = alphabet.indexOf(letter);
    if (digit < 0) throw new Error("a table is not base64");
    held = ((held << 6) | digit) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((held >> bits) & 255);
    }
  }
  if (bytes.length === 0 || bytes.length % 8) throw new Error("a table is cut off");
  const view = new DataView(new Uint8Array(bytes).buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}
