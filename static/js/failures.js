// Requests for parts of the page that failed: say so and what to do, as nothing else would.
(() => {
  "use strict";

  const box = document.getElementById("failure");
  const message = box.querySelector("[data-failure-message]");
  // Whether the failed request was an automatic, repeated one, or was made by a person.
  let wasPoll = false;

  const isPoll = (event) => event.detail.elt?.hasAttribute("data-poll") ?? false;

  const tell = (kind, event) => {
    if (!box.hidden && !wasPoll && isPoll(event)) {
      return;
    }
    wasPoll = isPoll(event);
    message.textContent = box.dataset[kind];
    box.hidden = false;
  };

  const kindOf = (status) => {
    if (status === 401 || status === 403) {
      return "login";
    }
    return status === 404 || status === 410 ? "gone" : "failed";
  };

  document.addEventListener("htmx:responseError", (event) => {
    tell(kindOf(event.detail.xhr.status), event);
  });
  document.addEventListener("htmx:sendError", (event) => tell("offline", event));
  document.addEventListener("htmx:timeout", (event) => tell("offline", event));

  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && (wasPoll || !isPoll(event))) {
      box.hidden = true;
    }
  });
})();
