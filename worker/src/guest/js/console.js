// console: formats what it is given the way people know it and hands the text to the parent.

export default function install(native, { define }) {
  const { Array, Date, Error, Map, Object, RegExp, Set, String, Symbol, performance } = globalThis;
  const deepest = 4;
  const mostItems = 100;
  const longestString = 10000;

  function cut(text) {
    return text.length > longestString ? `${text.slice(0, longestString)}… (${text.length} characters)` : text;
  }

  function list(open, items, total, close) {
    if (total > items.length) items.push(`… ${total - items.length} more`);
    if (items.length === 0) return open + close;
    const line = `${open} ${items.join(", ")} ${close}`;
    return line.length <= 76 && !line.includes("\n") ? line : `${open}\n  ${items.join(",\n").replaceAll("\n", "\n  ")}\n${close}`;
  }

  function inspect(value, above = []) {
    switch (typeof value) {
      case "string":
        return above.length === 0 ? cut(value) : JSON.stringify(cut(value));
      case "bigint":
        return `${value}n`;
      case "symbol":
        return value.toString();
      case "function":
        return `[Function: ${value.name || "(anonymous)"}]`;
      case "number":
        return Object.is(value, -0) ? "-0" : String(value);
      case "object":
        break;
      default:
        return String(value);
    }
    if (value === null) return "null";
    if (above.includes(value)) return "[Circular]";
    const inside = [...above, value];
    const show = (item) => inspect(item, inside);
    const property = (key) => {
      const { get, set } = Object.getOwnPropertyDescriptor(value, key) ?? {};
      const name = /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key);
      return `${name}: ${get || set ? "[Getter]" : show(value[key])}`;
    };

    if (value instanceof Error) {
      const cause = value.cause === undefined ? "" : `\n[cause] ${show(value.cause)}`;
      return `${value.name}: ${value.message}\n${value.stack ?? ""}`.trimEnd() + cause;
    }
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (above.length > deepest) return Array.isArray(value) ? "[Array]" : "[Object]";
    if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
      const items = Array.prototype.slice.call(value, 0, mostItems).map(show);
      return list(Array.isArray(value) ? "[" : `${value.constructor.name} [`, items, value.length, "]");
    }
    if (value instanceof Map) {
      const items = [...value].slice(0, mostItems).map(([k, v]) => `${show(k)} => ${show(v)}`);
      return list(`Map(${value.size}) {`, items, value.size, "}");
    }
    if (value instanceof Set) return list(`Set(${value.size}) {`, [...value].slice(0, mostItems).map(show), value.size, "}");
    if (value instanceof Promise) return "Promise {}";
    const keys = Object.keys(value);
    const maker = Object.getPrototypeOf(value)?.constructor?.name;
    const name = maker && maker !== "Object" ? `${maker} ` : "";
    return list(`${name}{`, keys.slice(0, mostItems).map(property), keys.length, "}");
  }

  function format(args) {
    let rest = args;
    let text = "";
    if (typeof args[0] === "string" && args.length > 1) {
      rest = args.slice(1);
      text = args[0].replace(/%([sdifjoOc%])/g, (whole, kind) => {
        if (kind === "%") return "%";
        if (rest.length === 0) return whole;
        const value = rest.shift();
        if (kind === "s") return typeof value === "string" ? value : inspect(value, [null]);
        if (kind === "d") return String(Number(value));
        if (kind === "i") return String(parseInt(value, 10));
        if (kind === "f") return String(parseFloat(value));
        if (kind === "j") return JSON.stringify(value) ?? "undefined";
        return kind === "c" ? "" : inspect(value, [null]);
      });
      if (rest.length > 0) text += " ";
    }
    return text + rest.map((value) => safely(value)).join(" ");
  }

  // A hostile toString or proxy must not turn a log line into a failure.
  function safely(value) {
    try {
      return inspect(value);
    } catch {
      return "[could not be shown]";
    }
  }

  let indent = "";
  const counts = new Map();
  const clocks = new Map();

  function write(level, args) {
    const text = format(args);
    native.log(level, indent === "" ? text : indent + text.replaceAll("\n", `\n${indent}`));
  }

  const console = {
    debug: (...args) => write("debug", args),
    info: (...args) => write("info", args),
    log: (...args) => write("log", args),
    warn: (...args) => write("warn", args),
    error: (...args) => write("error", args),
    dir: (value) => write("log", [value]),
    trace: (...args) => write("debug", [...args, `\n${new Error().stack}`]),
    assert: (condition, ...args) => {
      if (!condition) write("error", ["Assertion failed", ...args]);
    },
    group: (...args) => {
      if (args.length > 0) write("log", args);
      indent += "  ";
    },
    groupEnd: () => {
      indent = indent.slice(2);
    },
    table: (rows) => write("log", [rows]),
    count: (label = "default") => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      write("log", [`${label}: ${counts.get(label)}`]);
    },
    countReset: (label = "default") => void counts.delete(label),
    time: (label = "default") => void clocks.set(label, performance.now()),
    timeLog: (label = "default", ...args) => write("log", [`${label}: ${(performance.now() - clocks.get(label)).toFixed(3)}ms`, ...args]),
    timeEnd: (label = "default") => {
      console.timeLog(label);
      clocks.delete(label);
    },
  };
  console.groupCollapsed = console.group;
  define(console, Symbol.toStringTag, "console");
  return { console };
}
