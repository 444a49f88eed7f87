// The search of a published folder: looks for all words in the index, which is one file beside the page.
(() => {
  "use strict";

  const MOST = 50;
  const field = document.querySelector("[data-static-search]");
  const list = document.querySelector("[data-static-found]");
  const none = document.querySelector("[data-static-none]");
  const pages = (window.benchlabIndex || []).map((page) => ({
    ...page,
    title_words: page.title.toLowerCase(),
    all_words: `${page.title} ${page.words}`.toLowerCase(),
  }));

  function weight(page, words) {
    return words.filter((word) => page.title_words.includes(word)).length;
  }

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length
      ? pages.filter((page) => words.every((word) => page.all_words.includes(word)))
      : [];
    found.sort((left, right) => weight(right, words) - weight(left, words));
    list.replaceChildren(
      ...found.slice(0, MOST).map((page) => {
        const link = document.createElement("a");
        link.href = page.address;
        link.textContent = page.title;
        const row = document.createElement("li");
        row.append(link);
        return row;
      }),
    );
    none.hidden = !words.length || found.length > 0;
  }

  field.addEventListener("input", show);
})();
