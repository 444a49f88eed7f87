// Completes the name of a setting in the line that is being typed, with its default and range.
(() => {
  "use strict";

  const NAME = /(^|\n)[ \t]*([A-Za-z_][\w.]*)$/;

  function connect(editor) {
    const text = editor.querySelector("textarea");
    const list = editor.querySelector("[id=setting-names]");
    let names = [];
    let chosen = -1;
    let asked = 0;

    editor.querySelector("[data-names-help]").hidden = false;
    list.setAttribute("role", "listbox");
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", list.id);

    const typed = () => {
      if (text.selectionStart !== text.selectionEnd) {
        return null;
      }
      return NAME.exec(text.value.slice(0, text.selectionStart));
    };

    function close() {
      names = [];
      chosen = -1;
      list.hidden = true;
      list.replaceChildren();
      text.removeAttribute("aria-activedescendant");
    }

    function mark(index) {
      chosen = index;
      [...list.children].forEach((item, place) => {
        item.setAttribute("aria-selected", String(place === index));
      });
      const item = list.children[index];
      text.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    }

    function take(index) {
      const match = typed();
      if (match && names[index]) {
        const end = text.selectionStart;
        const start = end - match[2].length;
        const after = /^[ \t]*=/.test(text.value.slice(end)) ? "" : " = ";
        text.setRangeText(names[index].name + after, start, end, "end");
        text.dispatchEvent(new Event("input", { bubbles: true }));
      }
      close();
    }

    function item(found, index) {
      const line = document.createElement("li");
      line.id = `setting-name-${index}`;
      line.className = "code__name";
      line.setAttribute("role", "option");
      const name = document.createElement("span");
      name.className = "mono";
      name.textContent = found.name;
      const facts = document.createElement("span");
      facts.className = "code__facts";
      const told = [found.default && `= ${found.default}`, found.allowed, found.versions];
      facts.textContent = [...told, found.description].filter(Boolean).join(" · ");
      line.append(name, facts);
      // The text must not lose the focus before the name is in it.
      line.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(index);
      });
      return line;
    }

    function show(found) {
      names = found;
      if (!names.length) {
        close();
        return;
      }
      list.replaceChildren(...names.map(item));
      list.hidden = false;
      mark(0);
    }

    async function ask() {
      const match = typed();
      if (!match || match[2].length < 2) {
        close();
        return;
      }
      const query = new URLSearchParams({ prefix: match[2] });
      for (const box of document.querySelectorAll("[name=majors]:checked")) {
        query.append("majors", box.value);
      }
      asked += 1;
      const mine = asked;
      const answer = await fetch(`${editor.dataset.names}?${query}`).catch(() => null);
      if (mine !== asked || !answer || !answer.ok) {
        return;
      }
      const body = await answer.json();
      const now = typed();
      const isWhole = now && body.names.length === 1 && body.names[0].name === now[2];
      show(now && !isWhole ? body.names : []);
    }

    text.addEventListener("input", ask);
    text.addEventListener("blur", close);
    text.addEventListener("keydown", (event) => {
      if (list.hidden) {
        return;
      }
      const last = names.length - 1;
      const acts = {
        ArrowDown: () => mark(chosen === last ? 0 : chosen + 1),
        ArrowUp: () => mark(chosen <= 0 ? last : chosen - 1),
        Tab: () => take(chosen),
        Escape: close,
      };
      if (acts[event.key] && !event.shiftKey) {
        event.preventDefault();
        acts[event.key]();
      }
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-names]").forEach(connect);
  });
})();
