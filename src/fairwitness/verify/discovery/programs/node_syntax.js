// Parses every JavaScript file below the working folder, and runs none; arguments are folders to leave out.
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const { wrap } = require("node:module");

const LEFT_OUT = new Set(["node_modules", "vendor", "third_party", "dist", "build", "fixtures", "__fixtures__", "testdata", "templates"]);
const LARGEST = 4 << 20;
const skipped = new Set(process.argv.slice(1).map((name) => path.normalize(name)));

function asScript(source, name) {
  new vm.Script(wrap(source.replace(/^#!.*/, "")), { filename: name });
}

function asModule(source, name) {
  new vm.SourceTextModule(source, { identifier: name });
}

// A file without a word on how it is written may be either; only what is neither is wrong.
function problem(name) {
  const source = fs.readFileSync(name, "utf8").replace(/^\uFEFF/, "");
  if (/@flow\b/.test(source.slice(0, 2000))) return null;
  const isModule = name.endsWith(".mjs") || (!name.endsWith(".cjs") && /^\s*(import|export)\b/m.test(source));
  const ways = isModule ? [asModule, asScript] : [asScript, asModule];
  let first = null;
  for (const way of ways) {
    try {
      way(source, name);
      return null;
    } catch (error) {
      first = first ?? error;
      if (name.endsWith(".mjs") || name.endsWith(".cjs")) break;
    }
  }
  const line = /^[^\n]*:(\d+)\n/.exec(String(first.stack))?.[1] ?? "1"; // of a module, node does not say it
  return `${line}:1: error: ${first.name}: ${first.message}`;
}

function* files(folder) {
  const entries = fs.readdirSync(folder || ".", { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!entry.name.startsWith(".") && !LEFT_OUT.has(entry.name) && !skipped.has(name)) yield* files(name);
    } else if (entry.isFile() && /\.[cm]?js$/.test(entry.name) && !entry.name.endsWith(".min.js")) {
      if (fs.statSync(name).size <= LARGEST) yield name;
    }
  }
}

let wrong = 0;
for (const name of files("")) {
  const found = problem(name);
  if (found !== null) {
    wrong += 1;
    process.stdout.write(`${name}:${found.replace(/\s+/g, " ")}\n`);
  }
}
process.exitCode = wrong ? 1 : 0;
