// Writes what `node --test` tells as JUnit XML, with the file of every test: node's own report leaves it out.
import { relative } from "node:path";

const SIGNS = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };

function safe(value, most = 2000) {
  return String(value ?? "")
    .slice(0, most)
    .replace(/[\u0000-\u001f\u007f-\u009f\ud800-\udfff\ufffe\uffff]/gu, " ")
    .replace(/[<>&"]/g, (sign) => SIGNS[sign]);
}

function marks(event, wholeFile) {
  const { data } = event;
  const said = (value) => value !== undefined && value !== false;
  if (said(data.skip)) return [`<skipped message="${safe(data.skip)}"/>`];
  const todo = said(data.todo) ? [`<skipped type="todo" message="${safe(data.todo)}"/>`] : [];
  if (event.type === "test:pass") return todo;
  const error = data.details?.error;
  const words = safe(error?.cause?.message ?? error?.cause ?? error?.message ?? "failed");
  return [...todo, wholeFile ? `<error message="${words}"/>` : `<failure message="${words}"/>`];
}

export default async function* report(source) {
  const counts = { skipped: 0, failure: 0, error: 0 };
  const cases = [];
  const open = new Map(); // for each file, the names that are around the test of each depth
  for await (const event of source) {
    const { data } = event;
    if (event.type === "test:start") {
      const names = open.get(data.file) ?? [];
      names.length = data.nesting;
      names.push(data.name);
      open.set(data.file, names);
    } else if (event.type === "test:pass" || event.type === "test:fail") {
      const ofTests = data.details?.error?.failureType === "subtestsFailed";
      // a group is told by its tests, unless it broke on its own
      if (data.details?.type === "suite" && (event.type === "test:pass" || ofTests)) continue;
      const file = data.file ? relative(process.cwd(), data.file) : "";
      const around = (open.get(data.file) ?? []).slice(0, data.nesting);
      const wholeFile = data.nesting === 0 && (data.name === data.file || data.name === file);
      // a file that did nothing but load has no test in it, and one whose tests failed is told by them
      if (wholeFile && (event.type === "test:pass" || ofTests)) continue;
      const inner = marks(event, wholeFile);
      for (const kind of Object.keys(counts)) counts[kind] += inner.some((mark) => mark.startsWith(`<${kind}`)) ? 1 : 0;
      const name = wholeFile ? file : [...around, data.name].join(" > ");
      const place = `classname="${safe(file)}" name="${safe(name)}" file="${safe(file)}" line="${data.line ?? 1}"`;
      cases.push(`<testcase ${place} time="${(data.details?.duration_ms ?? 0) / 1000}">${inner.join("")}</testcase>\n`);
    }
  }
  const { skipped, failure, error } = counts;
  const total = `tests="${cases.length}" failures="${failure}" errors="${error}" skipped="${skipped}"`;
  yield `<?xml version="1.0" encoding="utf-8"?>\n<testsuites ${total}>\n<testsuite name="node" ${total}>\n`;
  yield* cases;
  yield "</testsuite>\n</testsuites>\n";
}
