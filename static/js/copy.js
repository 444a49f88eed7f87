// A button that puts the text of an element on the clipboard.
(() => {
  "use strict";

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    await navigator.clipboard.writeText(text.trim());
    const label = button.querySelector("[data-copy-label]");
    const before = label.textContent;
    label.textContent = button.dataset.copied;
    setTimeout(() => {
      label.textContent = before;
    }, 2000);
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!navigator.clipboard) {
      return;
    }
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", () => copy(button));
    }
  });
})();
