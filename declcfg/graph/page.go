package graph

// pageStyle is the CSS of a page around its drawings.
const pageStyle = `:root{color-scheme:light dark;--ground:#fff;--text:#1f2328;--faint:#59636e;--edge:#d8dee4;--link:#0058a3;--alert:#9a3412}
@media (prefers-color-scheme:dark){:root{--ground:#0d1117;--text:#e6edf3;--faint:#9aa4af;--edge:#2b333c;--link:#79b8ff;--alert:#fdba74}}
body{margin:0 auto;padding:1.5rem;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:1.6rem;margin:0}
h2{font-size:1.3rem;margin:2.5rem 0 0}
h1,h2,a{overflow-wrap:anywhere}
td{overflow-wrap:break-word;max-width:40rem}
p{margin:.2rem 0;color:var(--faint)}
a{color:var(--link)}
nav ul{columns:16rem;list-style:none;padding:0;margin:1rem 0}
nav label{color:var(--text)}
input{font:inherit;padding:.2rem .5rem}
.mark{color:var(--alert);font-size:.85em}
.description{white-space:pre-wrap;max-width:50rem}
.scroll{overflow-x:auto;margin:.8rem 0}
svg{display:block;max-width:none}
summary{cursor:pointer;color:var(--faint)}
table{border-collapse:collapse;font-size:13px}
th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-top:1px solid var(--edge)}
td:nth-child(5){min-width:14rem}
td:last-child{min-width:18rem}
.legend{margin-top:2rem;max-width:100%}
[hidden]{display:none}
.hot [data-ends]:not(.on){opacity:.12}
.hot text[data-row]:not(.on){opacity:.4}
[data-row]{cursor:default}
@media print{nav,details{display:none}section{break-inside:avoid}}
`

// script filters packages and highlights lines. The page works without it.
const script = "\"use strict\";\n" + hoverScript + filterScript

const hoverScript = `for (const svg of document.querySelectorAll("svg.upgrades")) {
  const lines = [...svg.querySelectorAll("[data-ends]")].map(e => [e, e.dataset.ends.split(" ")]);
  const rows = [...svg.querySelectorAll("text[data-row]")];
  svg.addEventListener("mouseover", event => {
    const target = event.target.closest("[data-row]");
    svg.classList.toggle("hot", !!target);
    if (!target) return;
    const row = target.dataset.row, near = new Set([row]);
    for (const [line, ends] of lines) {
      const on = ends.includes(row);
      line.classList.toggle("on", on);
      if (on && ends[0] === row) ends.forEach(e => near.add(e));
      else if (on) near.add(ends[0]);
    }
    for (const text of rows) text.classList.toggle("on", near.has(text.dataset.row));
  });
  svg.addEventListener("mouseleave", () => svg.classList.remove("hot"));
}
`

const filterScript = `const filter = document.getElementById("filter");
if (filter) {
  filter.closest("p").hidden = false;
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const e of document.querySelectorAll("[data-name]")) e.hidden = !e.dataset.name.toLowerCase().includes(wanted);
  });
}
`
