// AbortController and AbortSignal, with as much of Event and EventTarget as they need.

export default function install(native, { define }) {
  const { Symbol, TypeError, setTimeout } = globalThis;

  class Event {
    constructor(type, options = {}) {
      this.type = String(type);
      this.cancelable = Boolean(options?.cancelable);
      this.defaultPrevented = false;
      this.target = null;
    }
    preventDefault() {
      if (this.cancelable) this.defaultPrevented = true;
    }
  }

  class EventTarget {
    #listeners = [];
    addEventListener(type, listener, options) {
      if (listener === null || listener === undefined) return;
      if (this.#listeners.some((l) => l.type === type && l.listener === listener)) return;
      this.#listeners.push({ type, listener, once: typeof options === "object" && Boolean(options?.once) });
    }
    removeEventListener(type, listener) {
      this.#listeners = this.#listeners.filter((l) => l.type !== type || l.listener !== listener);
    }
    dispatchEvent(event) {
      event.target = this;
      const handler = this[`on${event.type}`];
      if (typeof handler === "function") handler.call(this, event);
      for (const { type, listener, once } of [...this.#listeners]) {
        if (type !== event.type) continue;
        if (once) this.removeEventListener(type, listener);
        if (typeof listener === "function") listener.call(this, event);
        else listener.handleEvent(event);
      }
      return !event.defaultPrevented;
    }
  }

  const key = Symbol("made by the sandbox");
  let abortSignal;

  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason;
    onabort = null;
    constructor(given) {
      if (given !== key) throw new TypeError("Illegal constructor: use new AbortController().signal");
      super();
    }
    get aborted() {
      return this.#aborted;
    }
    get reason() {
      return this.#reason;
    }
    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }
    static abort(reason) {
      const signal = new AbortSignal(key);
      abortSignal(signal, reason);
      return signal;
    }
    static timeout(milliseconds) {
      const signal = new AbortSignal(key);
      setTimeout(() => abortSignal(signal, new DOMException("The operation timed out", "TimeoutError")), milliseconds);
      return signal;
    }
    static any(signals) {
      const all = [...signals];
      const signal = new AbortSignal(key);
      const aborted = all.find((s) => s.aborted);
      if (aborted) abortSignal(signal, aborted.reason);
      else for (const s of all) s.addEventListener("abort", () => abortSignal(signal, s.reason), { once: true });
      return signal;
    }
    static {
      abortSignal = (signal, reason = new DOMException("The operation was aborted", "AbortError")) => {
        if (signal.#aborted) return;
        signal.#aborted = true;
        signal.#reason = reason;
        signal.dispatchEvent(new Event("abort"));
      };
    }
  }

  class AbortController {
    #signal = new AbortSignal(key);
    get signal() {
      return this.#signal;
    }
    abort(reason) {
      abortSignal(this.#signal, reason);
    }
  }

  for (const made of [Event, EventTarget, AbortSignal, AbortController]) {
    define(made.prototype, Symbol.toStringTag, made.name);
  }
  return { AbortController, AbortSignal, Event, EventTarget };
}
