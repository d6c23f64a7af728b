// The only access to random bits: no other module uses crypto.getRandomValues.

/** Uniform bits from the browser's generator, in the order of docs/drawing-protocol.md. */
export class SystemBits {
  /** Returns `count` random bytes. */
  bytes(count) {
    return crypto.getRandomValues(new Uint8Array(count));
  }
}

/** Returns an unsigned integer of 8 or 16 bits, least significant byte first, as a number. */
export function shortWord(source, bits) {
  const bytes = source.bytes(bits / 8);
  return bits === 8 ? bytes[0] : bytes[0] + 256 * bytes[1];
}

/** Returns an unsigned integer of 64 bits as a BigInt. */
export function bigWord(source) {
  const bytes = source.bytes(8);
  const half = (at) =>
    bytes[at] + 256 * bytes[at + 1] + 65536 * bytes[at + 2] + 16777216 * bytes[at + 3];
  return (BigInt(half(4)) << 32n) | BigInt(half(0));
}
