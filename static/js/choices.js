// Buttons that tick all boxes of their group, folds that close when something is chosen, and what needs scripts.
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
  // A fold closes when something in it was chosen by a pointer; the arrow keys go on choosing.
  document.addEventListener("click", ({ target, detail }) => {
    const fold = target.closest("[data-closes]");
    if (fold && detail > 0 && target.matches("[type=radio]")) {
      fold.open = false;
    }
  });
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("htmx:afterSettle", show);
})();
