// A button that ticks all boxes of its group, or none once all are ticked, and others that need scripts.
(() => {
  "use strict";

  const show = () => {
    for (const button of document.querySelectorAll("[data-choose], [data-scripted]")) {
      button.hidden = false;
    }
  };

  document.addEventListener("click", ({ target }) => {
    if (!target.matches("[data-choose]")) {
      return;
    }
    const boxes = [...target.closest("fieldset").querySelectorAll("[type=checkbox]")];
    const isNone = boxes.every((box) => box.checked);
    for (const box of boxes) {
      box.checked = !isNone;
    }
    boxes[0]?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("htmx:afterSettle", show);
})();
