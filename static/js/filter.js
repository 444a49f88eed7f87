// A field that hides the rows of a table, or the items of a list, which do not contain what is typed.
(() => {
  "use strict";

  function connect(filter) {
    const input = filter.querySelector("input");
    const count = filter.querySelector("[data-filter-count]");
    const list = document.getElementById(filter.dataset.filter);
    if (!list || filter.dataset.connected) {
      return;
    }
    filter.dataset.connected = "true";
    filter.hidden = false;
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of list.tBodies?.[0].rows ?? list.querySelectorAll("[data-item]")) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = String(shown);
    });
  }

  const connectAll = () => document.querySelectorAll("[data-filter]").forEach(connect);

  document.addEventListener("DOMContentLoaded", connectAll);
  document.addEventListener("htmx:afterSettle", connectAll);
})();
