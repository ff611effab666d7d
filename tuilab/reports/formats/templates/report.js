// Shows the values under the pointer. The page says everything without it.
"use strict";
for (const svg of document.querySelectorAll("figure.chart > svg")) {
  const figure = svg.parentElement;
  const low = Number(svg.dataset.low), high = Number(svg.dataset.high);
  const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
  const curves = Array.from(svg.querySelectorAll("g.curve"), (g) => ({
    label: g.dataset.letter + " " + g.dataset.label,
    xs: g.dataset.x.split(" ").filter(Boolean).map(Number),
    lows: g.dataset.low.split(" "),
    highs: (g.dataset.high || g.dataset.low).split(" "),
    bads: g.dataset.bad.split(" ").filter(Boolean).map((pair) => pair.split(":")),
  }));
  const along = svg.dataset.log ? Math.log10 : (x) => x, back = svg.dataset.log ? (at) => 10 ** at : (at) => at;
  const reading = document.createElement("div");
  reading.className = "reading";
  reading.hidden = true;
  figure.append(reading);
  const cursor = svg.querySelector(".cursor");
  const nearest = (xs, x) => {
    let from = 0, to = xs.length - 1;
    while (to - from > 1) { const mid = (from + to) >> 1; if (xs[mid] <= x) from = mid; else to = mid; }
    return to >= 0 && Math.abs(xs[to] - x) < Math.abs(xs[from] - x) ? to : from;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const share = Math.min(Math.max((at - left) / (right - left), 0), 1);
    const wanted = back(low + share * (high - low));
    const lines = [];
    let place = null;
    for (const curve of curves) {
      const i = curve.xs.length ? nearest(curve.xs, wanted) : -1;
      let x = i < 0 ? null : curve.xs[i];
      let value = i < 0 ? "" : curve.lows[i] === curve.highs[i] ? curve.lows[i] : curve.lows[i] + " to " + curve.highs[i];
      for (const [bad, what] of curve.bads) {
        if (x === null || Math.abs(bad - wanted) < Math.abs(x - wanted)) { x = Number(bad); value = what; }
      }
      if (x === null) continue;
      if (place === null || Math.abs(x - wanted) < Math.abs(place - wanted)) place = x;
      lines.push([x, curve.label + "  " + value]);
    }
    if (place === null) return;
    const near = lines.filter(([x]) => Math.abs(along(x) - along(place)) <= (high - low) / 50).slice(0, 12).map(([, words]) => words);
    reading.textContent = svg.dataset.unit + " " + place + "\n" + near.join("\n");
    reading.hidden = false;
    const shown = left + ((along(place) - low) / (high - low || 1)) * (right - left);
    cursor.setAttribute("x1", shown); cursor.setAttribute("x2", shown); cursor.setAttribute("visibility", "visible");
    const x = event.clientX - figure.getBoundingClientRect().left;
    reading.style.top = box.top - figure.getBoundingClientRect().top + 8 + "px";
    reading.style.left = Math.max(0, x > box.width / 2 ? x - reading.offsetWidth - 14 : x + 14) + "px";
  });
  svg.addEventListener("pointerleave", () => { reading.hidden = true; cursor.setAttribute("visibility", "hidden"); });
}
