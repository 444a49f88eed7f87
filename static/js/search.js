// "/" leads to the search field at the top of each page.
document.addEventListener("keydown", (event) => {
  "use strict";

  const field = document.getElementById("search-everywhere");
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.altKey || event.metaKey || !field) {
    return;
  }
  event.preventDefault();
  field.focus();
});
