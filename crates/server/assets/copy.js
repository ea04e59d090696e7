// Buttons that copy the command beside them. They are hidden without a script.

/** Shows the buttons that are new. */
export function offer(root) {
  for (const button of root.querySelectorAll("button[data-copy][hidden]")) {
    button.hidden = false;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    say(button, "Copied");
  } catch {
    getSelection().selectAllChildren(code); // the clipboard is only there on secure pages
    say(button, "Selected");
  }
});

function say(button, word) {
  button.textContent = word;
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
