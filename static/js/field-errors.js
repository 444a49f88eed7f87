// A field is marked when the reader leaves it: with the server's own words, which come with each
// estimate of the form in templates named by the field.
(() => {
  "use strict";

  const described = (input, id, isMarked) => {
    const ids = (input.getAttribute("aria-describedby") || "").split(" ");
    const others = ids.filter((each) => each && each !== id);
    const every = isMarked ? [...others, id] : others;
    if (every.length) {
      input.setAttribute("aria-describedby", every.join(" "));
    } else {
      input.removeAttribute("aria-describedby");
    }
  };

  const mark = (input, errors) => {
    const field = input.closest(".field");
    const id = `${input.id}_error`;
    document.getElementById(id)?.remove();
    if (errors) {
      field.append(errors.content.cloneNode(true));
      input.setAttribute("aria-invalid", "true");
    } else {
      input.removeAttribute("aria-invalid");
    }
    field.classList.toggle("field--invalid", Boolean(errors));
    described(input, id, Boolean(errors));
  };

  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (target.id !== "estimate") {
      return;
    }
    const errors = new Map();
    for (const each of target.querySelectorAll("template[data-errors-of]")) {
      errors.set(each.dataset.errorsOf, each);
    }
    for (const input of target.closest("form").elements) {
      const found = input.id && input.closest(".field") && errors.get(input.id);
      if (found && input !== document.activeElement) {
        mark(input, found);
      } else if (!found && input.ariaInvalid === "true" && input.value !== input.defaultValue) {
        mark(input, null);
      }
    }
  });
})();
