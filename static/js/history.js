// The charts of a history share one cursor: the pointer, the arrow keys and a touch move it to a commit,
// whose figures stand below each chart. The figures are those of the page's table. Enter, or a click
// into a single chart, opens the run; a click into one of several enlarges it. The commit of the cursor
// is in the address behind #.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const NAME = "commit";

  function commitsOf(table) {
    return Array.from(table.tBodies[0].rows, (row) => {
      const [name, date, ...cells] = row.cells;
      return { at: Number(row.dataset.t), name: name.textContent, date: date.textContent, cells };
    });
  }

  function axesOf(picture) {
    const axes = {};
    for (const [name, value] of Object.entries(picture.dataset)) {
      axes[name] = Number(value);
    }
    return axes;
  }

  const xOf = (axes, at) => axes.left + ((at - axes.from) / (axes.to - axes.from)) * (axes.right - axes.left);

  function yOf(axes, value) {
    const share = (value / axes.reference - 1 - axes.low) / (axes.high - axes.low);
    const y = axes.bottom - share * (axes.bottom - axes.top);
    return Math.min(Math.max(y, axes.top), axes.bottom);
  }

  function drawn(picture, kind, attributes) {
    const element = picture.querySelector(`.${kind}`) ?? picture.appendChild(document.createElementNS(SVG, attributes.tag));
    element.setAttribute("class", kind);
    for (const [name, value] of Object.entries(attributes)) {
      if (name !== "tag") {
        element.setAttribute(name, value);
      }
    }
  }

  function start(wall) {
    const table = document.querySelector("[data-histories-figures]");
    if (!table?.tBodies[0]?.rows.length) {
      return;
    }
    const commits = commitsOf(table);
    const charts = Array.from(wall.querySelectorAll("[data-series]"), (figure) => ({
      figure,
      number: Number(figure.dataset.series),
      picture: figure.querySelector("svg"),
      readout: figure.querySelector("[data-readout]"),
      axes: axesOf(figure.querySelector("svg")),
    }));
    const told = document.querySelector("[data-histories-cursor]");
    const isOne = !("many" in wall.dataset);
    let place = -1;

    function show(next) {
      place = Math.min(Math.max(next, 0), commits.length - 1);
      const commit = commits[place];
      for (const { number, picture, readout, axes } of charts) {
        const text = commit.cells[isOne ? 0 : number]?.textContent ?? "";
        const x = xOf(axes, commit.at);
        drawn(picture, "history__cursor", { tag: "line", x1: x, x2: x, y1: axes.top, y2: axes.bottom });
        drawn(picture, "history__spot", { tag: "circle", cx: x, cy: text ? yOf(axes, Number(text)) : -20, r: 4 });
        readout.textContent = text ? `· ${Number(text).toLocaleString("en")}` : "· –";
      }
      told.textContent = `${commit.name} · ${commit.date}`;
      const left = new URLSearchParams(window.location.hash.slice(1));
      left.set(NAME, commit.name.split(" ")[0]);
      history.replaceState(history.state, "", `#${left}`);
    }

    function nearest(chart, event) {
      const box = chart.picture.getBoundingClientRect();
      const { width } = chart.picture.viewBox.baseVal;
      const x = ((event.clientX - box.left) / box.width) * width;
      const { left, right, from, to } = chart.axes;
      const at = from + ((x - left) / (right - left)) * (to - from);
      // Commits of one moment follow each other: the first that is as near wins.
      let low = 0;
      let high = commits.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (commits[middle].at < at) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low > 0 && at - commits[low - 1].at < commits[low].at - at ? low - 1 : low;
    }

    function open(chart) {
      const link = isOne ? commits[place]?.cells[0]?.querySelector("a") : chart.figure.querySelector("figcaption a");
      link?.click();
    }

    for (const chart of charts) {
      chart.picture.addEventListener("pointermove", (event) => show(nearest(chart, event)));
      chart.picture.addEventListener("click", (event) => {
        show(nearest(chart, event));
        open(chart);
      });
    }
    const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    wall.addEventListener("keydown", (event) => {
      if (event.target !== wall) {
        return;
      }
      if (event.key in STEPS) {
        const from = place < 0 && STEPS[event.key] < 0 ? commits.length : place;
        show(from + STEPS[event.key]);
        event.preventDefault();
      } else if (event.key === "Enter" && place >= 0) {
        const chart = charts.find(({ number }) => commits[place].cells[number]?.querySelector("a"));
        (isOne ? commits[place].cells[0] : commits[place].cells[chart?.number])?.querySelector("a")?.click();
      }
    });
    const asked = new URLSearchParams(window.location.hash.slice(1)).get(NAME);
    const found = asked ? commits.findIndex(({ name }) => name.startsWith(asked)) : -1;
    if (found >= 0) {
      show(found);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-histories]").forEach(start);
  });
})();
