"""How a report looks: the reader's own fonts, light and dark as the reader has it, and readable on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --box: #f4f6f8;
  --line: #d0d7de; --good: #116329; --bad: #a40e26; --warn: #7d4e00; --bar: #0a58b3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa6b2; --paper: #0f1419; --box: #1a2129; --line: #38424d;
    --good: #57d27a; --bad: #ff8f98; --warn: #e8b04a; --bar: #6cb2ff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 2px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
a { color: var(--bar); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .6rem 1.5rem; margin: 1rem 0; }
dt { color: var(--soft); font-size: .85rem; }
dd { margin: 0; }
code, pre { font: .85em/1.45 ui-monospace, monospace; }
pre { white-space: pre-wrap; margin: 0; }
code { background: var(--box); padding: .05em .3em; border-radius: 3px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  min-width: 4rem; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
details { margin: .3rem 0; }
summary { cursor: pointer; color: var(--bar); }
blockquote, .box { margin: .5rem 0; padding: .5rem .8rem; background: var(--box); border: 1px solid var(--line);
  border-radius: 4px; }
blockquote { border-left: 4px dashed var(--soft); }
.label { display: block; color: var(--soft); font-size: .8rem; }
.state { white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.empty, .none { color: var(--soft); }
.alarm { border: 2px solid var(--bad); padding: .6rem .9rem; margin: 1rem 0; border-radius: 4px; }
.lane { position: relative; min-width: 12rem; height: 1rem; background: var(--box); border-radius: 2px; }
.lane span { position: absolute; top: 0; bottom: 0; min-width: 2px; background: var(--bar); border-radius: 2px; }
footer { margin-top: 3rem; padding-top: .6rem; border-top: 1px solid var(--line); color: var(--soft); }
@media (max-width: 40rem) { body { padding: .8rem; } }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --box: #fff; --line: #999; --good: #000; --bad: #000;
    --warn: #000; --bar: #555; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h2, h3 { break-after: avoid; }
  tr, blockquote { break-inside: avoid; }
  .wide { overflow: visible; }
  .lane span { print-color-adjust: exact; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
