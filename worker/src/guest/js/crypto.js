// crypto.randomUUID and crypto.getRandomValues, from the kernel's random numbers.

export default function install(native, { define }) {
  const { Uint8Array, ArrayBuffer, TypeError } = globalThis;
  const isView = ArrayBuffer.isView;
  const integerArrays = /^(?:Int|Uint|BigInt|BigUint)\d+(?:Clamped)?Array$/;
  const tagOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;

  const crypto = {
    getRandomValues(array) {
      if (!isView(array) || !integerArrays.test(tagOf.call(array) ?? "")) {
        throw new TypeError("crypto.getRandomValues needs an integer typed array");
      }
      if (array.byteLength > 65536) {
        throw new DOMException("crypto.getRandomValues gives at most 65536 bytes at a time", "QuotaExceededError");
      }
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(native.random(array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = native.random(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let text = "";
      for (let i = 0; i < 16; i++) {
        if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
        text += (bytes[i] < 16 ? "0" : "") + bytes[i].toString(16);
      }
      return text;
    },
  };
  define(crypto, Symbol.toStringTag, "Crypto");
  return { crypto };
}
