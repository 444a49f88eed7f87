// Saves a chart as a picture: the buttons of a [data-downloads] belong to the plot that it names.
(() => {
  "use strict";

  const SIZE = { width: 1200, height: 675 };

  function save(plot, format) {
    const drawn = plot._fullLayout?.height > SIZE.height ? plot._fullLayout.height : SIZE.height;
    window.Plotly.downloadImage(plot, { ...SIZE, height: drawn, format, filename: plot.id.replace(/-plot$/, "") });
  }

  function connect(group) {
    const plot = document.getElementById(group.dataset.downloads);
    if (!plot || !window.Plotly || group.dataset.connected) {
      return;
    }
    group.dataset.connected = "true";
    group.hidden = false;
    for (const button of group.querySelectorAll("[data-download]")) {
      button.addEventListener("click", () => save(plot, button.dataset.download));
    }
  }

  const connectAll = () => document.querySelectorAll("[data-downloads]").forEach(connect);

  document.addEventListener("DOMContentLoaded", connectAll);
  document.addEventListener("htmx:afterSettle", connectAll);
})();
