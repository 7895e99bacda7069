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
if (form && results) {
  let pending, wait;
  const says = document.createElement("span"); // what is read out must stay in the page
  says.className = "unseen";
  says.setAttribute("role", "status");
  form.append(says);
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
      const counts = {};
      for (const i of page.querySelectorAll(".pick input")) counts[i.name + "=" + i.value] = i.parentNode.lastChild.textContent;
      for (const i of document.querySelectorAll(".pick input")) i.parentNode.lastChild.textContent = counts[i.name + "=" + i.value] ?? "0";
      history.replaceState(null, "", to);
    } catch (e) {
      if (e.name !== "AbortError") form.submit();
    }
  };
  const soon = e => {
    clearTimeout(wait);
    wait = setTimeout(ask, e.target.type === "search" ? 120 : 0);
  };
  form.addEventListener("input", soon);
  document.querySelector(".side").addEventListener("change", soon);
  results.addEventListener("change", soon);
  form.addEventListener("submit", e => { e.preventDefault(); clearTimeout(wait); ask(); });
}

// A button that copies manifests. Where a page may not write to the clipboard, the text is selected.
for (const snippet of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button"), text = snippet.querySelector("code");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy " + snippet.dataset.copy);
  const says = document.createElement("span");
  says.className = "unseen";
  says.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = says.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = says.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; says.textContent = ""; }, 2000);
  });
  snippet.append(button, says);
}
