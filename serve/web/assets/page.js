// Filters the list of packages while one types. Without this script the form asks the server.
const input = document.getElementById("q"), list = document.getElementById("packages");
if (input && list && !new URLSearchParams(location.search).get("q")) {
  const cards = [...list.children].map(e => [e, e.dataset.text]), found = document.getElementById("found");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(w => w);
    let n = 0;
    for (const [card, text] of cards) {
      card.hidden = !words.every(w => text.includes(w));
      if (!card.hidden) n++;
    }
    found.hidden = words.length === 0;
    found.textContent = n + (n === 1 ? " package" : " packages") + " of " + cards.length + " found";
  };
  input.addEventListener("input", filter);
  filter();
}
