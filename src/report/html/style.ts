/** The report's only style sheet. Series colours: one hue a target, told apart also by those who see few colours. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1d1f24; --soft: #5b616e; --faint: #8d93a0; --line: #e4e1d8; --wash: #f3f1ea;
  --good: #14794a; --bad: #b3372b; --accent: #2f5fd0; --warn-ink: #7a4b00; --warn: #fdf0d2;
  --s0: #0f8b8d; --s1: #d9822b; --s2: #7a4fc4; --s3: #c8324a; --s4: #7d8597; --s5: #4d8f3a; --s6: #2f6fde; --s7: #a5548c;
}
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {
  --paper: #14161b; --card: #1b1e25; --ink: #e8e9ec; --soft: #a4abb8; --faint: #737b8a; --line: #2c313b; --wash: #22262f;
  --good: #55c38b; --bad: #f0857a; --accent: #86a8ff; --warn-ink: #f3c878; --warn: #3a2f17;
  --s0: #3fc1c0; --s1: #f2a65a; --s2: #b08cf0; --s3: #f26d7d; --s4: #9aa3b5; --s5: #86c46f; --s6: #7fa9ff; --s7: #d990c0;
} }
:root[data-theme=dark] {
  --paper: #14161b; --card: #1b1e25; --ink: #e8e9ec; --soft: #a4abb8; --faint: #737b8a; --line: #2c313b; --wash: #22262f;
  --good: #55c38b; --bad: #f0857a; --accent: #86a8ff; --warn-ink: #f3c878; --warn: #3a2f17;
  --s0: #3fc1c0; --s1: #f2a65a; --s2: #b08cf0; --s3: #f26d7d; --s4: #9aa3b5; --s5: #86c46f; --s6: #7fa9ff; --s7: #d990c0;
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums; }
main, header.page { max-width: 1180px; margin: 0 auto; padding: 0 24px; }
header.page { padding-top: 40px; padding-bottom: 8px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.02em; margin: 0 0 6px; font-weight: 680; }
h2 { font-size: 19px; letter-spacing: -.01em; margin: 44px 0 4px; font-weight: 650; }
h3 { font-size: 13px; margin: 0 0 8px; font-weight: 600; color: var(--soft); }
p { margin: 0 0 12px; max-width: 78ch; }
.lede { color: var(--soft); margin-bottom: 14px; }
.meta { color: var(--soft); font-size: 13.5px; }
.meta b { color: var(--ink); font-weight: 600; }
a { color: var(--accent); }
code { font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code.block { display: block; background: var(--wash); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.partial { background: var(--warn); color: var(--warn-ink); border-radius: 8px; padding: 8px 14px; margin: 12px 0; font-weight: 600; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; background: var(--c); margin-right: 7px; vertical-align: 0; }
.key.dashed { background: repeating-linear-gradient(90deg, var(--c) 0 3px, transparent 3px 5px); }

.verdicts { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 12px; margin: 18px 0 14px; }
.verdict { padding: 14px 16px 12px; border-top: 3px solid var(--c); }
.verdict .name { font-weight: 600; }
.verdict .number { font-size: 28px; font-weight: 650; letter-spacing: -.02em; line-height: 1.25; }
.verdict .number small { font-size: 13px; font-weight: 400; color: var(--soft); letter-spacing: 0; }
.verdict .split { display: flex; height: 6px; border-radius: 3px; overflow: hidden; margin: 8px 0 6px; background: var(--wash); }
.verdict .split i { display: block; } .split .hi { background: var(--good); } .split .lo { background: var(--bad); } .split .no { background: var(--faint); opacity: .45; }
.verdict .words { font-size: 12.5px; color: var(--soft); }

.forest { padding: 14px 18px 10px; }
.forest .row { display: grid; grid-template-columns: 150px 1fr; align-items: center; border-top: 1px solid var(--line); }
.forest .row:first-child { border-top: 0; }
.forest .what { font-size: 13px; padding-right: 10px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.forest .track { position: relative; height: calc(8px + var(--lanes) * 7px); }
.forest .grid { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--line); }
.forest .grid.one { background: var(--soft); }
.forest .span { position: absolute; height: 2px; margin-top: -1px; background: var(--c); opacity: .5; border-radius: 1px; }
.forest .dot { position: absolute; width: 8px; height: 8px; margin: -4px 0 0 -4px; border-radius: 50%; background: var(--c); }
.forest .dot.open { background: var(--card); border: 2px solid var(--c); }
@media (max-width: 640px) { .forest .axis span:nth-child(even) { display: none; } }
.forest .dot.void { opacity: .45; } .forest .span.void { opacity: .18; }
.forest .axis { position: relative; height: 20px; font-size: 11px; color: var(--faint); }
.forest .axis span { position: absolute; transform: translateX(-50%); white-space: nowrap; }

.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--soft); margin: 8px 0 0; }

.controls { display: none; flex-wrap: wrap; gap: 10px 14px; align-items: center; margin: 14px 0 10px; }
.js .controls { display: flex; }
.segments { display: flex; flex-wrap: wrap; border: 1px solid var(--line); border-radius: 9px; overflow: hidden; background: var(--card); }
.segments button { border: 0; border-left: 1px solid var(--line); background: none; color: var(--soft); font: inherit; font-size: 13px; padding: 6px 11px; cursor: pointer; margin-left: -1px; }
.segments button[aria-pressed=true] { background: var(--ink); color: var(--paper); }
.segments button:focus-visible, .controls select:focus-visible, .controls input:focus-visible, th button:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.controls select, .controls input { font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 9px; padding: 6px 10px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
#cells thead th:not(:first-child) { width: calc(72% / var(--columns)); }
th, td { padding: 7px 12px; text-align: right; border-top: 1px solid var(--line); vertical-align: top; white-space: nowrap; }
thead th { border-top: 0; font-weight: 600; color: var(--soft); font-size: 12.5px; vertical-align: bottom; white-space: normal; min-width: 92px; }
thead th button { all: unset; cursor: pointer; } thead th[aria-sort] button::after { content: " ↓"; color: var(--accent); } thead th[aria-sort=ascending] button::after { content: " ↑"; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--card); z-index: 1; }
tbody th { font-weight: 600; }
tbody th small { display: block; font-weight: 400; color: var(--faint); font-size: 11.5px; }
td .value { font-size: 14.5px; } td.best .value { font-weight: 680; }
td .under { display: flex; gap: 5px; justify-content: flex-end; align-items: baseline; min-height: 18px; flex-wrap: wrap; }
td .ratio { font-size: 11.5px; color: var(--soft); } td .ratio:empty { display: none; } td .ratio.hi { color: var(--good); } td .ratio.lo { color: var(--bad); }
td .bar { height: 3px; border-radius: 2px; background: var(--wash); margin-top: 4px; overflow: hidden; } td .bar i { display: block; height: 100%; background: var(--c); margin-left: auto; }
td.failed .value { color: var(--bad); } td.missing .value, td.unsupported .value { color: var(--faint); } td .ratio.void { color: var(--faint); text-decoration: line-through; }
.badge { display: inline-block; font-size: 9.5px; letter-spacing: .03em; font-weight: 650; line-height: 1.5; padding: 0 5px; border-radius: 4px; background: var(--warn); color: var(--warn-ink); }
.text td, .text th { text-align: left; white-space: normal; } .text td { color: var(--soft); } .text td:first-child { color: var(--ink); white-space: nowrap; }

details.workload { margin: 10px 0; }
details.workload > summary { cursor: pointer; padding: 11px 16px; font-weight: 600; list-style: none; display: flex; gap: 10px; align-items: baseline; flex-wrap: wrap; }
details.workload > summary::-webkit-details-marker { display: none; }
details.workload > summary::before { content: "›"; color: var(--faint); font-weight: 400; transition: transform .15s; display: inline-block; width: 10px; }
details.workload[open] > summary::before { transform: rotate(90deg); }
details.workload > summary span { font-weight: 400; color: var(--faint); font-size: 12.5px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 18px 26px; padding: 6px 18px 18px; }
.charts figure { margin: 0; } .charts .course { grid-row: span 2; } figcaption { font-size: 12.5px; color: var(--soft); font-weight: 600; margin-bottom: 4px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 11.5px system-ui, sans-serif; fill: var(--faint); font-variant-numeric: tabular-nums; }
svg .gridline { stroke: var(--line); stroke-width: 1; } svg .axisline { stroke: var(--faint); stroke-width: 1; }
svg .curve { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; } svg .curve.dashed { stroke-dasharray: 5 3; } svg .curve.thin { stroke-width: 1.1; stroke-dasharray: 2 3; }
svg .point { fill: var(--c); } svg .lane-name { fill: var(--soft); font-weight: 600; } svg .median { stroke: var(--c); stroke-width: 2; }
.notes { margin: 8px 0; padding-left: 20px; } .notes li { margin: 3px 0; max-width: 84ch; }
.notes .warn { color: var(--warn-ink); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 20px; margin: 10px 0; font-size: 13.5px; }
dl.options { grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 6px 20px; margin-top: 16px; } .options div { display: flex; gap: 8px; justify-content: space-between; border-bottom: 1px solid var(--line); padding-bottom: 3px; }
.text code { display: block; min-width: 240px; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.guide { columns: 2; column-gap: 36px; font-size: 13.5px; } .guide div { break-inside: avoid; margin-bottom: 12px; } .guide b { display: block; }
footer { max-width: 1180px; margin: 48px auto 0; padding: 16px 24px 40px; color: var(--faint); font-size: 12.5px; border-top: 1px solid var(--line); }
@media (max-width: 640px) {
  main, header.page, footer { padding-left: 16px; padding-right: 16px; } header.page { padding-top: 24px; }
  h1 { font-size: 24px; } .guide { columns: 1; } .forest { padding: 12px; } .forest .row { grid-template-columns: 96px 1fr; } .forest .what { font-size: 11.5px; }
  .verdicts { grid-template-columns: 1fr 1fr; gap: 8px; } .verdict { padding: 10px 12px; } .verdict .number { font-size: 22px; }
  #cells tbody th small { display: none; } #cells tbody th, #cells thead th:first-child { white-space: normal; max-width: 104px; min-width: 96px; font-size: 12.5px; }
  .charts { padding: 4px 12px 14px; } th, td { padding: 6px 9px; } dl:not(.options) { grid-template-columns: 1fr; gap: 0; } dl:not(.options) dd { margin-bottom: 6px; }
  svg text { font-size: 13px; }
}
@media print {
  :root { --paper: #fff; --card: #fff; --ink: #000; --soft: #333; --faint: #666; --line: #ccc; --wash: #eee; }
  body { font-size: 11px; } main, header.page, footer { max-width: none; padding: 0; } .controls { display: none !important; } .scroll { overflow: visible; }
  details.workload::details-content { content-visibility: visible; block-size: auto; } .card { break-inside: avoid; } th, td { padding: 3px 6px; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
`;
