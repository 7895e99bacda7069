// Search over all pages in the browser. The index is a script and no JSON, so that it loads from a disk, too.
(() => {
  const root = new URL(".", document.currentScript.src), input = document.getElementById("site-query"), found = document.getElementById("site-found");
  const nav = document.querySelector("nav details");
  if (window.matchMedia("(max-width: 50em)").matches) nav.open = false;
  let loading;
  const load = () => loading ??= new Promise((done, fail) => {
    const s = document.createElement("script");
    s.src = new URL("pages.js", root);
    s.onload = () => done(window.docPages.map((p) => ({ ...p, lower: p.text.toLowerCase() })));
    s.onerror = fail;
    document.head.append(s);
  });

  // score weighs a page: words in its title count most, then those in headings, then those in its text. Every word of the
  // query must be there.
  function score(page, words) {
    let sum = 0, heading = null;
    for (const w of words) {
      const h = page.headings.find((h) => h.text.toLowerCase().includes(w));
      const n = (page.title.toLowerCase().includes(w) ? 20 : 0) + (h ? 8 : 0) + Math.min(page.lower.split(w).length - 1, 6);
      if (!n) return null;
      sum += n;
      heading ??= h;
    }
    return { page, sum, heading };
  }

  function excerpt(page, word) {
    const at = Math.max(page.lower.indexOf(word), 0), from = Math.max(at - 60, 0);
    return (from ? "… " : "") + page.text.slice(from, at + 120).replace(/\s+/g, " ") + " …";
  }

  async function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter((w) => w.length > 1);
    found.hidden = !words.length;
    if (!words.length) return;
    const hits = (await load()).map((p) => score(p, words)).filter(Boolean).sort((a, b) => b.sum - a.sum).slice(0, 12);
    found.replaceChildren(...(hits.length ? hits : [null]).map((hit) => {
      const p = document.createElement("p");
      if (!hit) {
        p.textContent = "No page has all of these words.";
        return p;
      }
      const a = document.createElement("a");
      a.href = new URL(hit.page.url, root) + (hit.heading ? "#" + hit.heading.id : "");
      a.textContent = hit.page.title + (hit.heading && hit.heading.text !== hit.page.title ? " – " + hit.heading.text : "");
      p.append(a, document.createElement("br"), excerpt(hit.page, words[0]));
      return p;
    }));
  }
  input.form.addEventListener("submit", (e) => e.preventDefault());
  input.addEventListener("input", search);
  input.addEventListener("focus", load);
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  if (input.value) search();
})();
