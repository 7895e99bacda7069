package graph

// hues is the number of colours of lanes, used in turn. They are those of Okabe and Ito, which people with any kind of
// colour vision can distinguish; a line's lane is also visible by its position.
const hues = 6

// stylesheet is the CSS of drawings. All rules are below the class "upgrades", so that pages can have their own.
const stylesheet = `.upgrades{--bg:#fff;--ink:#1f2328;--soft:#59636e;--line:#d8dee4;--band:#f6f8fa;--warn:#9a3412;--h0:#0072b2;--h1:#c2410c;--h2:#00795a;--h3:#a8437f;--h4:#8a6100;--h5:#3d7ea6}
@media (prefers-color-scheme:dark){.upgrades{--bg:#0d1117;--ink:#e6edf3;--soft:#9aa4af;--line:#2b333c;--band:#151b23;--warn:#fdba74;--h0:#58a6ff;--h1:#ff8c5a;--h2:#2fcf9f;--h3:#e68cc0;--h4:#e3b341;--h5:#7cc7ee}}
.upgrades .bg{fill:var(--bg)}
.upgrades .band{fill:var(--band)}
.upgrades .rule{stroke:var(--line);fill:none}
.upgrades text{font:13px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",Consolas,monospace;fill:var(--ink);white-space:pre}
.upgrades .name{font:700 20px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.upgrades .says,.upgrades .note{font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--soft)}
.upgrades .warn{font:600 12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--warn)}
.upgrades .tag{fill:var(--soft);text-anchor:end}
.upgrades .v{font-weight:700}
.upgrades .absent{fill:var(--soft);font-style:italic}
.upgrades .lane,.upgrades .head{font-weight:600}
.upgrades .old{text-decoration:line-through}
.upgrades .h0{color:var(--h0)}.upgrades .h1{color:var(--h1)}.upgrades .h2{color:var(--h2)}.upgrades .h3{color:var(--h3)}.upgrades .h4{color:var(--h4)}.upgrades .h5{color:var(--h5)}
.upgrades .lane,.upgrades .head{fill:currentColor}
.upgrades .dot{fill:currentColor;stroke:currentColor;stroke-width:2}
.upgrades .hollow{fill:var(--bg)}
.upgrades .ring{fill:none;stroke:currentColor;stroke-width:2}
.upgrades .cross{stroke:var(--bg);stroke-width:2;fill:none}
.upgrades .hollow+.cross{stroke:currentColor}
.upgrades .ghost{fill:var(--bg);stroke:currentColor;stroke-width:1.5;stroke-dasharray:2 1.5}
.upgrades .tip{fill:currentColor}
.upgrades .replaces{fill:none;stroke:currentColor;stroke-width:2}
.upgrades .skips{fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:5 3}
.upgrades .dots{fill:none;stroke:currentColor;stroke-width:4.5;stroke-linecap:round}
.upgrades .range{fill:none;stroke:currentColor;stroke-width:2;stroke-dasharray:.1 4;stroke-linecap:round}
`
