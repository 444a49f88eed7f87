// Fragments that the page asks for again and again: rest while nobody looks, and keep open what
// the reader has opened.
(() => {
  "use strict";

  let open = [];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.target.hasAttribute("data-poll")) {
      event.preventDefault();
    }
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    open = Array.from(event.detail.target.querySelectorAll("details[id]"), (details) => [
      details.id,
      details.open,
    ]);
  });

  document.addEventListener("htmx:afterSwap", () => {
    for (const [id, wasOpen] of open) {
      const details = document.getElementById(id);
      if (details) {
        details.open = wasOpen;
      }
    }
  });
})();
