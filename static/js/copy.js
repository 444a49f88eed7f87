// A button that puts the text of an element, or of a file, on the clipboard.
(() => {
  "use strict";

  const BUTTONS = "[data-copy], [data-copy-url]";

  async function textOf(button) {
    if (!button.dataset.copyUrl) {
      return document.getElementById(button.dataset.copy).textContent.trim();
    }
    const answer = await fetch(button.dataset.copyUrl);
    if (!answer.ok) {
      throw new Error(`${answer.status}`);
    }
    return answer.text();
  }

  async function copy(button) {
    const label = button.querySelector("[data-copy-label]");
    const before = label.textContent;
    try {
      await navigator.clipboard.writeText(await textOf(button));
      label.textContent = button.dataset.copied;
    } catch {
      label.textContent = button.dataset.copyFailed ?? before;
    }
    setTimeout(() => {
      label.textContent = before;
    }, 2000);
  }

  // Parts of a page that htmx loads bring new buttons.
  function show() {
    for (const button of document.querySelectorAll(BUTTONS)) {
      button.hidden = false;
    }
  }

  if (navigator.clipboard) {
    document.addEventListener("DOMContentLoaded", show);
    document.addEventListener("htmx:afterSettle", show);
    document.addEventListener("click", (event) => {
      const button = event.target.closest(BUTTONS);
      if (button) {
        copy(button);
      }
    });
  }
})();
