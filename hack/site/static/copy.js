// A button that copies, in every block of code; of a session the commands alone. Where a page may not write to the clipboard,
// the text is selected.
for (const code of document.querySelectorAll("pre > code")) {
  const button = document.createElement("button"), frame = document.createElement("div");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  frame.className = "frame";
  code.parentNode.replaceWith(frame);
  frame.append(code.parentNode, button);
  button.addEventListener("click", async () => {
    const session = code.className === "language-console" && code.textContent.match(/^\$ (.*\\\n)*.*/gm);
    try {
      await navigator.clipboard.writeText(session ? session.map((c) => c.slice(2)).join("\n") : code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
