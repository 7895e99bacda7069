// The list of packages of a static site: what a server finds, counts and sorts (browse.go), from a script with all
// packages that is loaded when the search is first used. The fragment of the address has what is asked for.
const source = document.currentScript.dataset.list;
addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("find"), results = document.getElementById("results");
  const picks = [...document.querySelectorAll(".pick input")];
  const sort = results?.querySelector("select"), found = document.getElementById("found"), size = 24;
  if (!sort) return; // a catalog without packages
  const fold = text => text.trim().toLowerCase();
  const facets = [...new Set(picks.map(i => i.name))];
  const label = i => i.closest("fieldset").firstChild.textContent + ": " + i.nextElementSibling.textContent;
  let all, loading;
  const load = () => loading ??= new Promise(done => {
    window.packagesOfSite = list => { all = list; done(); };
    document.head.append(make("script", {src: source}));
  });
  const score = (p, words) => {
    const each = words.map(w => p.names.startsWith(w) || p.names.includes(" " + w) ? 8 : p.kinds.includes(" " + w + " ") ? 7 :
      p.names.includes(w) ? 5 : p.kinds.includes(w) ? 4 : p.keywords.includes(w) ? 2 : p.about.includes(w) ? 1 : -1000);
    return each.reduce((a, b) => a + b, 0);
  };
  const make = (tag, of, ...content) => {
    const e = Object.assign(document.createElement(tag), of);
    e.append(...content);
    return e;
  };
  const count = n => n + (n === 1 ? " package" : " packages");
  const link = (query, page) => {
    const to = new URLSearchParams(query);
    to.delete("page");
    if (page > 1) to.set("page", page);
    return "#" + (to.size ? to : "q=");
  };
  // arrange puts the values that lead to packages first and folds the others, as the server does (packages.go). What has
  // the focus keeps it and its place, and what is open stays open.
  const arrange = useful => {
    const old = document.activeElement, top = old.getBoundingClientRect().top;
    for (const set of document.querySelectorAll(".facets fieldset")) {
      const own = picks.filter(i => set.contains(i)), first = own.filter(useful), rest = own.filter(i => !useful(i));
      const shown = first.length > 10 ? 8 : first.length, more = set.querySelector("details") ?? make("details");
      const folded = [...first.slice(shown), ...rest];
      more.open ||= folded.some(i => i.checked || i === old);
      more.replaceChildren(make("summary", {}, folded.length + " more"), ...folded.map(i => i.parentNode));
      set.append(...first.slice(0, shown).map(i => i.parentNode), ...folded.length ? [more] : []);
      if (!folded.length) more.remove();
    }
    if (!old.form || old === document.activeElement) return;
    old.focus({preventScroll: true});
    scrollBy(0, old.getBoundingClientRect().top - top);
  };
  const show = () => {
    const query = new URLSearchParams(location.hash.slice(1)), text = (query.get("q") ?? "").trim();
    const words = text.toLowerCase().split(/\s+/).filter(w => w).slice(0, 12);
    const chosen = facets.map(f => new Set(query.getAll(f).map(fold).filter(v => v)));
    const field = form.elements.q;
    if (field.value.trim() !== text) field.value = text; // a space that is being typed stays
    for (const i of picks) i.checked = chosen[facets.indexOf(i.name)].has(fold(i.value));
    sort.options[0].textContent = words.length ? "Best match" : "Name";
    sort.options[1].hidden = !words.length;
    sort.value = query.get("sort") ?? "";
    if (sort.selectedIndex < 0) sort.value = "";
    const hits = [], counts = new Map();
    all.forEach((p, at) => {
      const s = score(p, words);
      if (s < 0) return;
      const missed = facets.filter((f, i) => chosen[i].size && !p[f].some(v => chosen[i].has(v)));
      if (!missed.length) hits.push({p, at, s});
      for (const f of missed.length ? missed.slice(0, missed.length === 1 ? 1 : 0) : facets) {
        for (const v of p[f]) counts.set(f + "=" + v, (counts.get(f + "=" + v) ?? 0) + 1);
      }
    });
    const by = {"": (a, b) => b.s - a.s, provider: (a, b) => a.p.byProvider - b.p.byProvider,
      newest: (a, b) => a.p.byDate - b.p.byDate}[sort.value] ?? (() => 0);
    hits.sort((a, b) => by(a, b) || a.at - b.at);
    for (const i of picks) i.parentNode.lastChild.textContent = counts.get(i.name + "=" + fold(i.value)) ?? 0;
    arrange(i => i.checked || i.parentNode.lastChild.textContent > 0);
    const narrowed = words.length || chosen.some(c => c.size);
    found.textContent = count(hits.length) + (narrowed ? " of " + all.length : "") + (text ? " for “" + text + "”" : "");
    const most = picks.filter(i => i.name === "category").map(i => [i, +i.parentNode.lastChild.textContent])
      .filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).slice(0, 3);
    if (text && !chosen[facets.indexOf("category")]?.size && 2 * hits.filter(h => h.p.category.length).length > hits.length) {
      found.append(" ", make("span", {className: "in"}, ...most.flatMap(([i, n], at) => [at ? ", " : "in\u00a0",
        make("a", {href: link(query) + "&" + new URLSearchParams({category: i.value})}, i.nextElementSibling.textContent), ` (${n})`])));
    }
    while (results.firstElementChild.nextSibling) results.firstElementChild.nextSibling.remove();
    const on = facets.flatMap(f => picks.filter(i => i.checked && i.name === f).sort((a, b) => fold(a.value) < fold(b.value) ? -1 : 1));
    if (on.length) {
      results.append(make("ul", {className: "chips", ariaLabel: "Filters that are on"}, ...on.map(i => {
        const less = new URLSearchParams(query);
        less.delete(i.name);
        for (const v of query.getAll(i.name)) if (fold(v) !== fold(i.value)) less.append(i.name, v);
        return make("li", {}, make("a", {className: "chip", href: link(less)},
          make("span", {className: "unseen"}, "Remove "), label(i) + " ", make("span", {ariaHidden: "true"}, "×")));
      }), make("li", {}, make("a", {className: "clear", href: "#q="}, "Clear all"))));
    }
    if (!hits.length) {
      results.append(make("div", {className: "empty"}, make("h2", {}, "Nothing matches"), make("p", {},
        "No package of the catalog has all of this. Fewer words or filters find more. ",
        make("a", {href: "#q="}, "Show all packages"))));
      return;
    }
    const pages = Math.ceil(hits.length / size), page = Math.min(Math.max(parseInt(query.get("page")) || 1, 1), pages);
    const cards = make("ul", {className: "cards", id: "packages"});
    cards.innerHTML = hits.slice((page - 1) * size, page * size).map(h => h.p.card).join("");
    results.append(cards);
    if (pages > 1) {
      const step = (to, text) => to < 1 || to > pages ? make("span", {className: "faint"}, text) :
        make("a", {href: link(query, to)}, text);
      results.append(make("nav", {className: "pager", ariaLabel: "Pages of the list"}, step(page - 1, "← Previous"),
        make("span", {}, `Page ${page} of ${pages}`), step(page + 1, "Next →")));
    }
    watch();
  };
  const ask = () => {
    const query = new URLSearchParams();
    for (const [k, v] of new FormData(form)) if (v.trim()) query.append(k, v.trim());
    history.replaceState(null, "", link(query));
    load().then(show);
  };
  const read = () => { if (location.hash.includes("=")) load().then(show); };
  sort.options[0].after(make("option", {value: "name", hidden: true}, "Name"));
  found.role = "status";
  for (const e of document.querySelectorAll("#find,.side,.sort")) {
    e.hidden = false;
    e.addEventListener("focusin", load);
    e.addEventListener("input", ask);
  }
  form.addEventListener("submit", e => { e.preventDefault(); ask(); });
  addEventListener("hashchange", read);
  read();
});
