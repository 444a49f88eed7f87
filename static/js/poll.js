// Fragments that the page asks for again and again: rest while nobody looks or nobody answers,
// and leave the reader's place as it was: what is open, focused, selected and scrolled.
(() => {
  "use strict";

  const LONGEST_REST_MS = 60000;
  // A page that is long in the making is asked for less often: a reader costs 5 % of a processor.
  const REST_FOR_WORK = 20;
  const FOCUSABLE = "a[href], button, summary, input, select, textarea, [tabindex]";
  // The token of a form is masked differently in every answer.
  const TOKEN = /name="csrfmiddlewaretoken" value="[^"]*"/g;

  let asked = 0;
  let failures = 0;
  let restUntil = 0;
  let place = null;
  const last = new Map();
  const stamps = new Map();

  const isPoll = (element) => element?.hasAttribute("data-poll") ?? false;

  const named = (element) =>
    element.id ||
    [element.tagName, element.getAttribute("href"), element.name, element.textContent.trim()].join(
      "|",
    );

  const scrolled = (target) =>
    Array.from(target.querySelectorAll("*")).filter((each) => each.scrollTop || each.scrollLeft);

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (isPoll(event.target) && (document.hidden || Date.now() < restUntil)) {
      event.preventDefault();
    } else if (isPoll(event.target)) {
      asked = Date.now();
    }
  });

  // What a part was the last time: the server then says just that it is still so.
  document.addEventListener("htmx:configRequest", ({ detail }) => {
    const stamp = isPoll(detail.elt) && stamps.get(detail.elt.id);
    if (stamp) {
      detail.headers["X-Stamp"] = stamp;
    }
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isPoll(event.detail.elt)) {
      return;
    }
    failures = event.detail.successful ? 0 : failures + 1;
    const rest = failures ? 1000 * 2 ** failures : (Date.now() - asked) * REST_FOR_WORK;
    restUntil = Date.now() + Math.min(rest, LONGEST_REST_MS);
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, elt, serverResponse, xhr } = event.detail;
    place = null;
    if (!isPoll(elt) || elt !== target || xhr.status === 204) {
      return;
    }
    const answer = serverResponse.replace(TOKEN, "");
    const selection = document.getSelection();
    const isSelecting = selection && !selection.isCollapsed && selection.containsNode(target, true);
    if (last.get(target.id) === answer || isSelecting) {
      event.detail.shouldSwap = false;
      return;
    }
    last.set(target.id, answer);
    stamps.set(target.id, xhr.getResponseHeader("X-Stamp"));
    const active = target.contains(document.activeElement) ? document.activeElement : null;
    place = {
      id: target.id,
      open: Array.from(target.querySelectorAll("details[id]"), (each) => [each.id, each.open]),
      focus: active && named(active),
      scrolls: scrolled(target).map((each) => {
        const alike = Array.from(target.querySelectorAll(each.tagName));
        return [each.tagName, alike.indexOf(each), each.scrollTop, each.scrollLeft];
      }),
    };
  });

  document.addEventListener("htmx:afterSwap", () => {
    const fresh = place && document.getElementById(place.id);
    if (!fresh) {
      return;
    }
    for (const [id, wasOpen] of place.open) {
      const details = document.getElementById(id);
      if (details) {
        details.open = wasOpen;
      }
    }
    for (const [tag, index, top, left] of place.scrolls) {
      fresh.querySelectorAll(tag)[index]?.scrollTo({ top, left, behavior: "instant" });
    }
    const focusable = Array.from(fresh.querySelectorAll(FOCUSABLE));
    focusable.find((each) => named(each) === place.focus)?.focus({ preventScroll: true });
  });
})();
