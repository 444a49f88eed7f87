// Light, dark, or what the system says. Runs before the page is drawn, so that nothing flashes.
(() => {
  "use strict";

  const KEY = "benchlab-theme";
  const ORDER = ["auto", "light", "dark"];
  const root = document.documentElement;

  function stored() {
    try {
      const theme = localStorage.getItem(KEY);
      return ORDER.includes(theme) ? theme : "auto";
    } catch {
      return "auto";
    }
  }

  function apply(theme) {
    if (theme === "auto") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
    document.dispatchEvent(new CustomEvent("benchlab:theme"));
  }

  function label(button, theme) {
    const text = button.querySelector("[data-theme-label]");
    text.textContent = button.dataset[`label${theme[0].toUpperCase()}${theme.slice(1)}`];
  }

  apply(stored());

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.hidden = false;
      label(button, stored());
      button.addEventListener("click", () => {
        const next = ORDER[(ORDER.indexOf(root.dataset.theme ?? "auto") + 1) % ORDER.length];
        try {
          localStorage.setItem(KEY, next);
        } catch {
          // Without storage the choice lasts as long as the page.
        }
        apply(next);
        label(button, next);
      });
    }
  });
})();
