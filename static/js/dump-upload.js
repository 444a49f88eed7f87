// A dump is sent in parts, one after the other, and a part that gets lost once more.
(() => {
  "use strict";

  const TRIES = 5;
  const PAUSE_MS = 1000;

  async function send(form, file, number) {
    const most = Number(form.dataset.parts);
    const body = new FormData(form);
    body.set("part", file.slice(number * most, (number + 1) * most), "part");
    body.set("number", number);
    body.set("size", file.size);
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { Accept: "application/json" },
      body,
    });
    if (answer.status >= 500) {
      throw new Error(`${answer.status}`);
    }
    return (await answer.json()).faults;
  }

  async function sendAgain(form, file, number) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await send(form, file, number);
      } catch (error) {
        if (tries === TRIES) {
          return [`${error.message}`];
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
      }
    }
  }

  async function upload(form, file) {
    const problem = form.querySelector("[data-parts-problem]");
    const progress = form.querySelector("[data-parts-progress]");
    const reading = form.querySelector("[data-parts-reading]");
    const button = form.querySelector("button[type=submit]");
    const count = Math.ceil(file.size / Number(form.dataset.parts));
    problem.hidden = true;
    progress.hidden = false;
    button.disabled = true;
    let faults = [];
    for (let number = 0; number < count && !faults.length; number += 1) {
      progress.value = number / count;
      reading.hidden = number < count - 1;
      faults = await sendAgain(form, file, number);
    }
    if (!faults.length) {
      window.location.assign(form.dataset.next);
      return;
    }
    problem.textContent = faults.join(" ");
    problem.hidden = false;
    progress.hidden = true;
    reading.hidden = true;
    button.disabled = false;
  }

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-parts]");
    const file = form?.querySelector("input[type=file]").files[0];
    if (file?.size) {
      event.preventDefault();
      upload(form, file);
    }
  });
})();
