/**
 * Strings of one ledger row: a repeated one is written as a number, a SHA-256 in hex as base64. Whoever reads must meet
 * the strings in the order in which they were written.
 *
 * `~~…` a text that begins with `~` · `~` and 43 characters: a digest · `~` and a number: the string met as that one.
 */
const HEX_64 = /^[0-9a-f]{64}$/;
/** Shorter ones are not worth a reference. */
const SHORTEST = 6;

export class PackedStrings {
  readonly #places = new Map<string, number>();

  pack(text: string): string {
    if (text.length < SHORTEST) return text.startsWith('~') ? `~${text}` : text;
    const place = this.#places.get(text);
    if (place !== undefined) return `~${place}`;
    this.#places.set(text, this.#places.size);
    if (text.length === 64 && HEX_64.test(text)) return `~${Buffer.from(text, 'hex').toString('base64url')}`;
    return text.startsWith('~') ? `~${text}` : text;
  }
}

export class UnpackedStrings {
  readonly #texts: string[] = [];

  unpack(packed: string): string {
    if (packed.startsWith('~') && !packed.startsWith('~~') && packed.length < 44) {
      const text = this.#texts[Number(packed.slice(1))];
      if (text === undefined) throw new TypeError(`a ledger row refers to string ${packed}, which it does not hold`);
      return text;
    }
    const text = decode(packed);
    if (text.length >= SHORTEST) this.#texts.push(text);
    return text;
  }
}

function decode(packed: string): string {
  if (!packed.startsWith('~')) return packed;
  if (packed.startsWith('~~')) return packed.slice(1);
  return Buffer.from(packed.slice(1), 'base64url').toString('hex');
}
