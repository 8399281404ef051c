// The style sheet of a page: light or dark, as the reader's system is set.
#pragma once

namespace flow::tools {

inline constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --bg:#fff; --panel:#f6f7f9; --fg:#1c2430; --dim:#5b6675;
  --line:#d7dce3; --f:#4f8fd8; --b:#e58a3c; --w:#55a868; --u:#9673c8; --o:#9aa4b1; --x:#1f9c9c;
  --peak:#c62f3b; --ink:#101820;
  --m0:#4f8fd8; --m1:#e58a3c; --m2:#55a868; --m3:#9673c8; --m4:#c9a227; --m5:#1f9c9c; --m6:#d0648f;
  --m7:#b8c0ca; }
@media (prefers-color-scheme: dark) { :root { --bg:#14181e; --panel:#1d232c; --fg:#e4e9f0;
  --dim:#98a4b3; --line:#36404d; --peak:#ff6b75; --m7:#5b6675; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 20px 28px 60px; background: var(--bg);
  color: var(--fg); font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 2px; } h2 { font-size: 17px; margin: 34px 0 8px; }
h3 { font-size: 14px; margin: 20px 0 6px; }
p { margin: 4px 0 10px; } .sub, .note, small, th { color: var(--dim); }
.sub { overflow-wrap: anywhere; }
code { font: 12.5px ui-monospace, monospace; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 16px 0; }
.tiles div { flex: 1 1 auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px 14px; }
.tiles b { display: block; font-size: 18px; } .tiles span { color: var(--dim); font-size: 12.5px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; font-size: 12.5px; }
td, th { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th { white-space: nowrap; }
.n { text-align: right; white-space: nowrap; }
.facts td:first-child { width: 220px; color: var(--dim); }
.wide { overflow-x: auto; } .wide td { overflow-wrap: break-word; }
details { border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; padding: 0 16px; }
details[open] { padding-bottom: 14px; }
summary { cursor: pointer; padding: 10px 0; font-weight: 600; }
summary small { font-weight: 400; margin-left: 8px; }
i.f,i.b,i.w,i.u,i.o,i.x,i.m { display: inline-block; width: 11px; height: 11px; border-radius: 2px;
  margin-right: 5px; }
.legend span { margin-right: 16px; white-space: nowrap; font-size: 12.5px; }
i.f { background: var(--f); } i.b { background: var(--b); } i.w { background: var(--w); }
i.u { background: var(--u); } i.o { background: var(--o); } i.x { background: var(--x); }
rect.f { fill: var(--f); } rect.b { fill: var(--b); } rect.w { fill: var(--w); }
rect.u { fill: var(--u); } rect.o { fill: var(--o); } rect.x { fill: var(--x); }
rect { stroke: var(--bg); stroke-width: .5; } rect:hover { stroke: var(--fg); stroke-width: 1.5; }
.zooms > label { border: 1px solid var(--line); border-radius: 6px; padding: 2px 10px;
  margin-right: 6px; cursor: pointer; font-size: 12.5px; }
.zooms > input { position: absolute; opacity: 0; }
.zooms > input:checked + label { background: var(--fg); color: var(--bg); }
.zooms > input:focus-visible + label { outline: 2px solid var(--f); }
.lanes { display: grid; grid-template-columns: 150px minmax(0, 1fr); margin-top: 10px;
  border: 1px solid var(--line); border-radius: 8px; background: var(--panel); padding: 6px 10px; }
.names div { height: 40px; padding-top: 4px; line-height: 1.2; overflow: hidden; }
.names b { display: block; } .names small { font-size: 11.5px; }
.scroll { overflow-x: auto; } .time { width: 100%; display: block; overflow: visible; }
.z4:checked ~ .lanes .time { width: 400%; } .z16:checked ~ .lanes .time { width: 1600%; }
.l4, .l16 { display: none; }
.z4:checked ~ .lanes .l4, .z16:checked ~ .lanes .l4, .z16:checked ~ .lanes .l16 { display: inline; }
text { font: 11px system-ui, sans-serif; } text.l { text-anchor: middle; fill: var(--ink);
  pointer-events: none; } text.a { fill: var(--dim); }
.tick { stroke: var(--line); }
.memory { position: relative; height: 190px; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; padding: 22px 10px 22px 74px; }
.memory svg { width: 100%; height: 100%; display: block; overflow: visible; }
.memory path { stroke: none; } .memory .peak { stroke: var(--peak); stroke-dasharray: 3 3; }
.memory text.p { fill: var(--peak); font-weight: 600; } .memory .over { position: absolute; left: 74px;
  top: 22px; width: calc(100% - 84px); height: calc(100% - 44px); }
.m0 { fill: var(--m0); background: var(--m0); } .m1 { fill: var(--m1); background: var(--m1); }
.m2 { fill: var(--m2); background: var(--m2); } .m3 { fill: var(--m3); background: var(--m3); }
.m4 { fill: var(--m4); background: var(--m4); } .m5 { fill: var(--m5); background: var(--m5); }
.m6 { fill: var(--m6); background: var(--m6); } .m7 { fill: var(--m7); background: var(--m7); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 16px; }
.chart { min-width: 0; } .chart h3 { margin: 10px 0 2px; } .chart .legend { margin: 0 0 6px; }
.plot { position: relative; height: 230px; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; padding: 16px 18px 42px 62px; }
.tall .plot { height: 340px; }
.plot .over { position: absolute; left: 62px; top: 16px; width: calc(100% - 80px);
  height: calc(100% - 58px); overflow: visible; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.curve.faint { stroke-width: 1; opacity: .4; } i.faint { opacity: .4; }
.curve.c0 { stroke: var(--m0); } .curve.c1 { stroke: var(--m1); } .curve.c2 { stroke: var(--m2); }
.curve.c3 { stroke: var(--m3); } .curve.c4 { stroke: var(--m4); } .curve.c5 { stroke: var(--m5); }
.curve.c6 { stroke: var(--m6); }
circle.c0 { fill: var(--m0); } circle.c1 { fill: var(--m1); } circle.c2 { fill: var(--m2); }
circle.c3 { fill: var(--m3); } circle.c4 { fill: var(--m4); } circle.c5 { fill: var(--m5); }
circle.c6 { fill: var(--m6); }
line.level { stroke: var(--dim); stroke-dasharray: 5 4; } text.level { fill: var(--fg);
  font-weight: 600; paint-order: stroke; stroke: var(--panel); stroke-width: 4px; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; margin: 0;
  padding: 10px 14px; font: 12.5px/1.45 ui-monospace, monospace; overflow: auto; }
pre.text { white-space: pre-wrap; overflow-wrap: anywhere; } pre b { color: var(--dim);
  font-weight: 400; }
.bars { display: grid; grid-template-columns: max-content minmax(0, 1fr) max-content; gap: 6px 12px;
  align-items: center; margin: 8px 0; }
.bars .bar { display: flex; height: 20px; } .bars .bar span { height: 100%; min-width: 1px; }
)";

}  // namespace flow::tools
