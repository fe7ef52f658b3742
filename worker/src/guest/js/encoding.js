// TextEncoder and TextDecoder. Decoding itself is native and knows every encoding of the WHATWG standard.

export default function install(native, { define }) {
  const { Uint8Array, ArrayBuffer, TypeError, String } = globalThis;
  const isView = ArrayBuffer.isView;

  function bytesOf(source) {
    if (source === undefined) return new Uint8Array(0);
    if (isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    if (source instanceof ArrayBuffer || source instanceof SharedArrayBuffer) return new Uint8Array(source);
    throw new TypeError("TextDecoder.decode needs an ArrayBuffer or a view of one");
  }

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return native.encode(String(text));
    }
    encodeInto(text, target) {
      if (!(target instanceof Uint8Array)) throw new TypeError("TextEncoder.encodeInto needs a Uint8Array");
      let read = 0;
      let written = 0;
      for (const character of String(text)) {
        const bytes = native.encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #label;
    #fatal;
    #ignoreBOM;
    #decode;
    constructor(label = "utf-8", options = {}) {
      this.#label = native.encodingName(String(label));
      if (this.#label === undefined) throw new RangeError(`TextDecoder knows no encoding "${label}"`);
      this.#fatal = Boolean(options?.fatal);
      this.#ignoreBOM = Boolean(options?.ignoreBOM);
    }
    get encoding() {
      return this.#label;
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(source, options) {
      const more = Boolean(options?.stream);
      const decode = this.#decode ?? native.decoder(this.#label, this.#fatal, this.#ignoreBOM);
      this.#decode = more ? decode : undefined;
      const text = decode(bytesOf(source), !more);
      if (text === undefined) {
        this.#decode = undefined;
        throw new TypeError(`TextDecoder: the bytes are not valid ${this.#label}`);
      }
      return text;
    }
  }

  define(TextEncoder.prototype, Symbol.toStringTag, "TextEncoder");
  define(TextDecoder.prototype, Symbol.toStringTag, "TextDecoder");
  return { TextEncoder, TextDecoder };
}
