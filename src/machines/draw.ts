/** Numbers that look like chance and are the same for the same seed. */

/** sfc32 seeded by a 128-bit text hash. Stored runs replay with it: it must never change. */
export function createDraw(seed: string): () => number {
  let [a, b, c, d] = hash128(seed);
  const next = (): number => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let round = 0; round < 12; round++) next();
  return next;
}

/** cyrb128: not cryptographic; spreads neighbouring seeds. */
function hash128(text: string): [number, number, number, number] {
  let [a, b, c, d] = [1779033703, 3144134277, 1013904242, 2773480762];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = b ^ Math.imul(a ^ code, 597399067);
    b = c ^ Math.imul(b ^ code, 2869860233);
    c = d ^ Math.imul(c ^ code, 951274213);
    d = a ^ Math.imul(d ^ code, 2716044179);
  }
  a = Math.imul(c ^ (a >>> 18), 597399067);
  b = Math.imul(d ^ (b >>> 22), 2869860233);
  c = Math.imul(a ^ (c >>> 17), 951274213);
  d = Math.imul(b ^ (d >>> 19), 2716044179);
  a ^= b ^ c ^ d;
  return [a | 0, (b ^ a) | 0, (c ^ a) | 0, (d ^ a) | 0];
}
