// URL and URLSearchParams. Parsing is native (the url crate); a URL here is its text and the query's live view.

export default function install(native, { define }) {
  const { String, TypeError, Symbol } = globalThis;
  // How a URL tells its search params that the query changed, and the reverse.
  const attach = Symbol("attach");

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};

    constructor(init = "") {
      if (typeof init === "object" && init !== null) {
        if (typeof init[Symbol.iterator] === "function") {
          for (const pair of init) {
            const [name, value, ...rest] = pair;
            if (rest.length > 0 || [...pair].length !== 2) throw new TypeError("URLSearchParams needs pairs of name and value");
            this.#pairs.push([String(name), String(value)]);
          }
        } else {
          for (const name of Object.keys(init)) this.#pairs.push([name, String(init[name])]);
        }
      } else {
        this.#read(String(init));
      }
    }

    [attach](query, changed) {
      if (query !== undefined) this.#read(query);
      if (changed) this.#changed = changed;
    }
    #read(query) {
      this.#pairs = native.parseQuery(query.startsWith("?") ? query.slice(1) : query);
    }

    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#pairs.push([String(name), String(value)]);
      this.#changed();
    }
    delete(name, value) {
      name = String(name);
      this.#pairs = this.#pairs.filter(([n, v]) => n !== name || (value !== undefined && v !== String(value)));
      this.#changed();
    }
    get(name) {
      name = String(name);
      return this.#pairs.find(([n]) => n === name)?.[1] ?? null;
    }
    getAll(name) {
      name = String(name);
      return this.#pairs.filter(([n]) => n === name).map(([, value]) => value);
    }
    has(name, value) {
      name = String(name);
      return this.#pairs.some(([n, v]) => n === name && (value === undefined || v === String(value)));
    }
    set(name, value) {
      name = String(name);
      const first = this.#pairs.findIndex(([n]) => n === name);
      if (first < 0) {
        this.#pairs.push([name, String(value)]);
      } else {
        this.#pairs[first] = [name, String(value)];
        this.#pairs = this.#pairs.filter(([n], i) => i <= first || n !== name);
      }
      this.#changed();
    }
    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed();
    }
    forEach(callback, thisArg) {
      for (const [name, value] of this.#pairs) callback.call(thisArg, value, name, this);
    }
    *entries() {
      for (let i = 0; i < this.#pairs.length; i++) yield [...this.#pairs[i]];
    }
    *keys() {
      for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][0];
    }
    *values() {
      for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][1];
    }
    toString() {
      return native.formatQuery(this.#pairs);
    }
  }
  define(URLSearchParams.prototype, Symbol.iterator, URLSearchParams.prototype.entries);
  define(URLSearchParams.prototype, Symbol.toStringTag, "URLSearchParams");

  class URL {
    #href;
    #params;

    constructor(url, base) {
      const href = native.parseUrl(String(url), base === undefined ? undefined : String(base));
      if (href === undefined) {
        throw new TypeError(`Invalid URL: "${url}"` + (base === undefined ? "" : ` with the base "${base}"`));
      }
      this.#href = href;
    }
    static canParse(url, base) {
      return native.parseUrl(String(url), base === undefined ? undefined : String(base)) !== undefined;
    }
    static parse(url, base) {
      return URL.canParse(url, base) ? new URL(url, base) : null;
    }

    get href() {
      return this.#href;
    }
    set href(value) {
      const href = native.parseUrl(String(value));
      if (href === undefined) throw new TypeError(`Invalid URL: "${value}"`);
      this.#href = href;
      this.#params?.[attach](this.search);
    }
    get origin() {
      return native.urlPart(this.#href, "origin");
    }
    get searchParams() {
      if (!this.#params) {
        this.#params = new URLSearchParams(this.search);
        this.#params[attach](undefined, () => {
          this.#href = native.setUrlPart(this.#href, "search", String(this.#params));
        });
      }
      return this.#params;
    }
    toString() {
      return this.#href;
    }
    toJSON() {
      return this.#href;
    }

    static {
      for (const part of ["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]) {
        Object.defineProperty(URL.prototype, part, {
          configurable: true,
          enumerable: true,
          get() {
            return native.urlPart(this.#href, part);
          },
          set(value) {
            this.#href = native.setUrlPart(this.#href, part, String(value));
            if (part === "search") this.#params?.[attach](this.search);
          },
        });
      }
    }
  }
  define(URL.prototype, Symbol.toStringTag, "URL");

  return { URL, URLSearchParams };
}
