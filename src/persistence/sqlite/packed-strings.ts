/**
 * Strings of one ledger row: a repeated one is written as a number, digests and operation ids as base64. Whoever reads
 * must meet the strings in the order in which they were written.
 *
 * `~~…` a text that begins with `~` · `~` and 43 characters: a SHA-256 in hex · `~` and 22 characters: `op_` and 32 hex
 * digits · `~` and a number: the string met as that one.
 */
const HEX_64 = /^[0-9a-f]{64}$/;
const OPERATION_ID = /^op_[0-9a-f]{32}$/;
/** Shorter ones are not worth a reference. */
const SHORTEST = 6;

export class PackedStrings {
  readonly #places = new Map<string, number>();

  pack(text: string): string {
    if (text.length < SHORTEST) return escaped(text);
    const place = this.#places.get(text);
    if (place !== undefined) return `~${place}`;
    this.#places.set(text, this.#places.size);
    if (text.length === 64 && HEX_64.test(text)) return `~${Buffer.from(text, 'hex').toString('base64url')}`;
    if (text.length === 35 && OPERATION_ID.test(text)) {
      return `~${Buffer.from(text.slice(3), 'hex').toString('base64url')}`;
    }
    return escaped(text);
  }
}

export class UnpackedStrings {
  readonly #texts: string[] = [];

  unpack(packed: string): string {
    const isReference = packed.startsWith('~') && !packed.startsWith('~~') && packed.length < 20;
    if (isReference) {
      const text = this.#texts[Number(packed.slice(1))];
      if (text === undefined) throw new TypeError(`a ledger row refers to string ${packed}, which it does not hold`);
      return text;
    }
    const text = decoded(packed);
    if (text.length >= SHORTEST) this.#texts.push(text);
    return text;
  }
}

function escaped(text: string): string {
  return text.startsWith('~') ? `~${text}` : text;
}

function decoded(packed: string): string {
  if (!packed.startsWith('~')) return packed;
  if (packed.startsWith('~~')) return packed.slice(1);
  const hex = Buffer.from(packed.slice(1), 'base64url').toString('hex');
  return hex.length === 64 ? hex : `op_${hex}`;
}
