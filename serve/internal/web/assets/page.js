// Icons of the list are loaded when they come into view.
const show = place => {
  seen.unobserve(place);
  const icon = new Image();
  icon.alt = "";
  icon.src = place.dataset.icon;
  place.replaceChildren(icon);
};
const seen = new IntersectionObserver(all => { for (const e of all) if (e.isIntersecting) show(e.target); });
const places = () => [...document.querySelectorAll("[data-icon]")].filter(place => !place.querySelector("img"));
const watch = () => { for (const place of places()) seen.observe(place); };
watch();
addEventListener("beforeprint", () => places().forEach(show));

// The list of packages without a new page for each letter and filter. Without this script the form does the same.
const form = document.getElementById("find"), results = document.getElementById("results");
document.documentElement.classList.add("js");
if (form && results && !form.hidden) { // a static site has its own
  let pending, wait;
  const says = document.createElement("span"); // what is read out must stay in the page
  says.className = "unseen";
  says.setAttribute("role", "status");
  form.append(says);
  const facets = document.querySelector(".facets");
  // renew shows the facets of another page. What has the focus keeps it and its place, and what is open stays open.
  const renew = page => {
    const key = e => e.tagName + e.closest("fieldset")?.querySelector("legend").textContent + e.value;
    const same = e => e && [...page.querySelectorAll("input,summary")].find(o => key(o) === key(e));
    const old = facets.contains(document.activeElement) && document.activeElement, top = old && old.getBoundingClientRect().top;
    for (const d of facets.querySelectorAll("[open]>summary")) same(d)?.parentNode.setAttribute("open", "");
    const now = same(old);
    facets.replaceChildren(...page.childNodes);
    if (!now) return;
    if (now.type) now.closest("fieldset>details")?.setAttribute("open", "");
    now.focus({preventScroll: true});
    scrollBy(0, now.getBoundingClientRect().top - top);
  };
  const ask = async () => {
    pending?.abort();
    pending = new AbortController();
    const query = new URLSearchParams();
    for (const [k, v] of new FormData(form)) if (v.trim()) query.append(k, v.trim());
    const to = "./" + (query.size ? "?" + query : "");
    try {
      const answer = await fetch(to, {signal: pending.signal});
      if (!answer.ok) return form.submit();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const focused = document.activeElement?.name === "sort";
      for (const n of page.querySelectorAll("noscript")) n.remove();
      results.replaceChildren(...page.getElementById("results").childNodes);
      if (focused) results.querySelector("select").focus();
      watch();
      says.textContent = document.getElementById("found").textContent;
      document.title = page.title;
      renew(page.querySelector(".facets"));
      history.replaceState(null, "", to);
    } catch (e) {
      if (e.name !== "AbortError") form.submit();
    }
  };
  const soon = e => {
    clearTimeout(wait);
    pending?.abort(); // its answer would take back what is chosen now
    wait = setTimeout(ask, e.target.type === "search" ? 120 : 0);
  };
  form.addEventListener("input", soon);
  document.querySelector(".side").addEventListener("change", soon);
  results.addEventListener("change", soon);
  form.addEventListener("submit", e => { e.preventDefault(); clearTimeout(wait); ask(); });
}

// Buttons that copy manifests and images. Where a page may not write to the clipboard, the text is selected.
const copied = document.createElement("span");
copied.className = "unseen";
copied.setAttribute("role", "status");
document.body.append(copied);
const copies = (text, label, caption) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = caption ? "copy" : "copy small";
  button.textContent = caption;
  button.setAttribute("aria-label", "Copy " + label);
  text.after(button);
};
for (const snippet of document.querySelectorAll("[data-copy]")) copies(snippet.querySelector("pre"), snippet.dataset.copy, "Copy");
for (const image of document.querySelectorAll(".image>code,code.image")) copies(image, image.textContent, "");
document.addEventListener("click", async e => {
  const button = e.target.closest?.(".copy");
  if (!button) return;
  const text = button.previousElementSibling, caption = button.textContent;
  try {
    await navigator.clipboard.writeText(text.textContent);
    copied.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(text);
    copied.textContent = "Selected";
  }
  button.classList.add("done");
  if (caption) button.textContent = copied.textContent;
  setTimeout(() => { button.classList.remove("done"); if (caption) button.textContent = "Copy"; copied.textContent = ""; }, 2000);
});

// The fields of a definition: buttons that unfold and fold all; the field that the address names is unfolded.
for (const tree of document.querySelectorAll(".fields")) {
  for (const open of [false, true]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = open ? "Expand all" : "Collapse all";
    button.addEventListener("click", () => { for (const d of tree.querySelectorAll("details")) d.open = open; });
    tree.prepend(button);
  }
  const unfold = () => {
    const field = document.getElementById(location.hash.slice(1));
    for (let d = field?.querySelector(":scope>details") ?? field; d; d = d.parentElement?.closest("details")) d.open = true;
    field?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
}
