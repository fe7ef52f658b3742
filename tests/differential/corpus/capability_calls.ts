const s = await capabilities.summarize({ text: "long" });
const t = await capabilities["text:sum_up"]({ value: s.target });
return [s.target, t.value];
