// A [data-chart] is a picture that the server has drawn. When a reader asks, Plotly is loaded and draws
// the same figure (the JSON script within) for zooming and hiding lines, in the colours of the page's
// theme. A chart that htmx loads again is drawn into the existing plot. Charts can be saved as files.
// What is zoomed and hidden is in the address behind #, as ID.x, ID.y and ID.hide, for a link or a
// later visit.
(() => {
  "use strict";

  const CONFIG = { responsive: true, displaylogo: false };
  const PLOTLY = document.currentScript.dataset.plotly;
  // Pixels of a saved picture for each unit of the drawing.
  const SCALE = 2;
  const SLOTS = 8;
  // Below this many pixels labels beside the lines would take most of the room: a legend has them.
  const NARROW = 480;

  function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  function theme() {
    return {
      ink: colour("--ink"),
      soft: colour("--ink-soft"),
      line: colour("--line-strong"),
      grid: colour("--chart-grid"),
      surface: colour("--surface"),
      lines: Array.from({ length: SLOTS }, (_, index) => colour(`--chart-${index + 1}`)),
    };
  }

  function themedAxis(axis, colours) {
    return {
      automargin: true,
      ...axis,
      gridcolor: colours.grid,
      zerolinecolor: colours.grid,
      linecolor: colours.line,
      tickcolor: colours.line,
    };
  }

  function themedLayout(layout, colours) {
    const themed = {
      margin: { t: 16, r: 16, b: 48, l: 56 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      ...layout,
      title: undefined,
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      colorway: colours.lines,
      font: { ...layout.font, family: getComputedStyle(document.body).fontFamily, color: colours.soft, size: 12 },
      hoverlabel: { bgcolor: colours.surface, bordercolor: colours.line, font: { color: colours.ink } },
    };
    for (const key of Object.keys(themed)) {
      if (/^[xy]axis\d*$/.test(key)) {
        themed[key] = themedAxis(themed[key], colours);
      }
    }
    return themed;
  }

  // A figure says in `layout.meta.narrow` what of its layout is different there.
  function narrowed(layout, width) {
    if (width >= NARROW) {
      return layout;
    }
    const changed = { ...layout };
    for (const [key, value] of Object.entries(layout.meta?.narrow ?? {})) {
      changed[key] = Array.isArray(value) ? value : { ...layout[key], ...value };
    }
    return withoutNamesBesides(changed);
  }

  function withoutNamesBesides(layout) {
    const besides = (annotation) => annotation.showarrow === false && annotation.xshift;
    const names = layout.annotations?.filter(besides) ?? [];
    if (names.length === 0) {
      return layout;
    }
    return {
      ...layout,
      annotations: layout.annotations.filter((annotation) => !besides(annotation)),
      showlegend: names.some((name) => name.text),
      legend: { ...layout.legend, orientation: "h", y: -0.3, yanchor: "top" },
      margin: { ...layout.margin, r: 16 },
    };
  }

  // A trace that names a slot takes that colour of the theme, whatever its place.
  function themedTrace(trace, layout) {
    const slot = trace.meta?.slot;
    if (slot === undefined) {
      return trace;
    }
    const color = layout.colorway[slot % layout.colorway.length];
    return { ...trace, line: { ...trace.line, color }, marker: { ...trace.marker, color } };
  }

  // A point that has an address leads there.
  function follow(event) {
    const point = event.points[0];
    const url = point?.data.meta?.urls?.[point.pointNumber];
    if (url) {
      window.location.assign(url);
    }
  }

  let loading;
  function load() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = PLOTLY;
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    });
    return loading;
  }

  const AXES = { x: "xaxis", y: "yaxis" };

  function nameOf(plot) {
    return plot.id.replace(/-plot$/, "");
  }

  function state() {
    return new URLSearchParams(window.location.hash.slice(1));
  }

  function isAsked(id) {
    return [...state().keys()].some((key) => key.startsWith(`${id}.`));
  }

  // Ends of an axis are numbers or dates.
  function ends(text) {
    return text.split(",").map((end) => (Number.isNaN(Number(end)) ? end : Number(end)));
  }

  function asLeft(id, data, layout) {
    const left = state();
    const changed = { ...layout };
    for (const [letter, axis] of Object.entries(AXES)) {
      const range = left.get(`${id}.${letter}`);
      if (range) {
        changed[axis] = { ...layout[axis], range: ends(range), autorange: false };
      }
    }
    const hidden = left.get(`${id}.hide`)?.split(",").map(Number) ?? [];
    const traces = data.map((trace, place) => (hidden.includes(place) ? { ...trace, visible: "legendonly" } : trace));
    return [traces, changed];
  }

  function keep(plot, event) {
    const left = state();
    const id = nameOf(plot);
    for (const [letter, axis] of Object.entries(AXES)) {
      const range = event[`${axis}.range`] ?? [event[`${axis}.range[0]`], event[`${axis}.range[1]`]];
      if (event[`${axis}.autorange`]) {
        left.delete(`${id}.${letter}`);
      } else if (range[0] !== undefined) {
        left.set(`${id}.${letter}`, range.map((end) => (Number.isFinite(end) ? Number(end.toPrecision(6)) : end)));
      }
    }
    const hidden = plot.data.flatMap((trace, place) => (trace.visible === "legendonly" ? [place] : []));
    if (hidden.length) {
      left.set(`${id}.hide`, hidden);
    } else {
      left.delete(`${id}.hide`);
    }
    history.replaceState(history.state, "", left.size ? `#${left}` : window.location.pathname + window.location.search);
  }

  async function draw(container) {
    const source = container.querySelector('script[type="application/json"]');
    const plot = container.querySelector("[data-chart-plot]");
    if (!source || !plot) {
      return;
    }
    plot.hidden = false;
    container.querySelector(".chart__still").hidden = true;
    container.querySelector("[data-chart-explore]").hidden = true;
    const figure = JSON.parse(source.textContent);
    const layout = narrowed(themedLayout(figure.layout ?? {}, theme()), plot.clientWidth);
    const traces = figure.data.map((trace) => themedTrace(trace, layout));
    await window.Plotly.react(plot, ...asLeft(nameOf(plot), traces, layout), CONFIG);
    if (!plot.dataset.explored) {
      plot.dataset.explored = "true";
      plot.on("plotly_click", follow);
      plot.on("plotly_relayout", (event) => keep(plot, event));
      plot.on("plotly_restyle", () => keep(plot, {}));
    }
    container.dataset.drawn = "true";
  }

  function drawing(container) {
    const pictures = container.querySelectorAll(".chart__still svg");
    return [...pictures].find((picture) => picture.checkVisibility()) ?? pictures[0];
  }

  function wrapped(text, room, font) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font;
    const lines = [""];
    const words = new Intl.Segmenter(document.documentElement.lang, { granularity: "word" });
    for (const { segment } of words.segment(text)) {
      if (context.measureText(lines.at(-1) + segment).width > room) {
        lines.push("");
      }
      lines[lines.length - 1] += segment;
    }
    return lines;
  }

  // What leaves the page says what it shows above the picture, and where it is from below it.
  function asFile(picture) {
    const file = picture.cloneNode(true);
    const { width, height } = picture.viewBox.baseVal;
    const heading = document.querySelector("h1")?.innerText ?? "";
    const label = picture.getAttribute("aria-label").replace(heading, "").trim();
    const above = [[heading, "bold", 16], [label, "normal", 13]].flatMap(([text, weight, size]) =>
      text ? wrapped(text, width - 32, `${weight} ${size}px sans-serif`).map((line) => [line, weight, size]) : []);
    const top = 22 * above.length + 16;
    const address = window.location.host + window.location.pathname + window.location.search;
    const written = [
      ...above.map(([line, weight, size], place) => [line, weight, size, 22 * place + 24 - top]),
      [`BenchLab · ${decodeURI(address).slice(0, 120)}`, "normal", 11, height + 16],
    ];
    for (const [line, weight, size, y] of written) {
      const text = document.createElementNS(file.namespaceURI, "text");
      const given = { x: 16, y, "font-size": size, "font-weight": weight, fill: "#121820" };
      Object.entries(given).forEach(([name, value]) => text.setAttribute(name, value));
      text.textContent = line;
      file.append(text);
    }
    const size = { width, height: top + height + 28 };
    Object.entries(size).forEach(([name, value]) => file.setAttribute(name, value));
    file.setAttribute("viewBox", `0 ${-top} ${width} ${size.height}`);
    return [plain(file), size];
  }

  // A file has no theme: each colour is the one that its variable falls back to.
  function plain(file) {
    return new XMLSerializer()
      .serializeToString(file)
      .replace(/var\(--[\w-]+, (#\w+)\)/g, "$1")
      .replace(/ (href|tabindex)="[^"]*"/g, "");
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  async function save(container, format, name) {
    const [file, size] = asFile(drawing(container));
    const called = [window.location.pathname.split("/")[2], name].filter(Boolean).join("-");
    if (format === "svg") {
      download(new Blob([file], { type: "image/svg+xml" }), `${called}.svg`);
      return;
    }
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(file)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = size.width * SCALE;
    canvas.height = size.height * SCALE;
    const context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((drawn) => download(drawn, `${called}.png`));
  }

  function press(event) {
    const container = event.target.closest?.("[data-chart]");
    const button = event.target.closest?.("[data-chart-explore], [data-chart-save]");
    if (!container || !button) {
      return;
    }
    if (button.dataset.chartSave) {
      save(container, button.dataset.chartSave, button.closest("[data-chart-tools]").dataset.chartTools);
    } else {
      button.disabled = true;
      load().then(() => draw(container)).catch(() => { button.disabled = false; });
    }
  }

  function redraw() {
    for (const container of document.querySelectorAll("[data-chart]")) {
      container.querySelector("[data-chart-tools]").hidden = false;
      const plot = container.querySelector("[data-chart-plot]");
      if (plot && (plot.dataset.explored || isAsked(nameOf(plot)))) {
        load().then(() => draw(container));
      }
    }
  }

  document.addEventListener("click", press);
  document.addEventListener("DOMContentLoaded", redraw);
  document.addEventListener("htmx:afterSettle", redraw);
  document.addEventListener("benchlab:theme", () => document.body && redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
