// What JSON gets of the objects that JSON.stringify would lose: collections, bytes, errors and boxed values.

export default function install() {
  const { Array, ArrayBuffer, DataView, Error, Map, Object, RegExp, Set, SharedArrayBuffer, String, Uint8Array } = globalThis;
  const { BigInt, Boolean, Number } = globalThis;
  const { isView } = ArrayBuffer;

  return function plain(value) {
    if (value instanceof Map) {
      const entries = Array.from(value);
      return entries.every(([key]) => typeof key === "string") ? Object.fromEntries(entries) : entries;
    }
    if (value instanceof Set) return Array.from(value);
    if (value instanceof DataView) return Array.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (isView(value)) return Array.from(value);
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return Array.from(new Uint8Array(value));
    if (value instanceof RegExp) return String(value);
    if (value instanceof Error) return { name: value.name, message: value.message, ...value };
    if (value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt) {
      return value.valueOf();
    }
    // A proxy around an array.
    return Array.isArray(value) ? Array.from(value) : value;
  };
}
