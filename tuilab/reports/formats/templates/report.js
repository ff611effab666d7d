// Lets a reader look closely at a chart: values along it, a part of it, the other scale, fewer lines. The page says all without it.
"use strict";
const parts = (text) => text?.split(" ").filter(Boolean) ?? [], numbers = (text) => parts(text).map(Number);
const write = (value, isBytes) => {
  const power = isBytes && Math.abs(value) >= 1024 ? Math.min(Math.floor(Math.log2(Math.abs(value)) / 10), 6) : 0;
  return Number((value / 1024 ** power).toPrecision(6)) + (power ? " " + "KMGTPE"[power - 1] + "iB" : "");
};
// Returns places of an axis that people would choose, and what they say; of a logarithmic one the ends are powers of ten.
const ticksOf = (low, high, isLog, isBytes) => {
  const isFar = isLog && high - low > 2, back = isLog && !isFar ? (at) => 10 ** at : (at) => at, raw = (back(high) - back(low)) / 5;
  const power = 10 ** Math.floor(Math.log10(raw)), nice = power * [1, 2, 5, 10].find((times) => times * power >= raw);
  const step = isFar ? Math.ceil(raw) : isBytes && raw > 1 ? 2 ** Math.ceil(Math.log2(raw)) : nice, found = [];
  for (let k = Math.ceil(back(low) / step); k * step <= back(high); k++)
    found.push([isLog && !isFar ? Math.log10(k * step) : k * step, write(isFar ? 10 ** (k * step) : k * step, isBytes)]);
  return found;
};
document.querySelectorAll("figure.chart > svg").forEach((svg) => {
  const make = (tag, has, parent) => { const made = Object.assign(document.createElement(tag), has); parent.append(made); return made; };
  const data = svg.dataset, n = (value) => value.toFixed(1);
  const [low, high, left, right, top, bottom] = numbers(data.frame), wide = right - left;
  const along = data.log ? Math.log10 : (x) => x, isBytes = data.y === "bytes", wasLog = "logy" in data;
  const [ticks, letters, cursor] = ["ticks", "letters", "cursor"].map((name) => svg.querySelector("." + name)), before = [ticks.innerHTML, letters.innerHTML];
  const curves = [...svg.querySelectorAll(".curve")].map((g) => {
    const has = g.dataset, lows = numbers(has.low), mids = has.mid ? numbers(has.mid) : lows, highs = has.mid ? numbers(has.high) : lows;
    const bads = parts(has.bad).map((pair) => pair.split(":")).map(([x, what]) => [+x, what]), kind = g.querySelector(".line")?.classList.value ?? "line s0";
    return { ...has, g, lows, mids, highs, bads, kind, colour: kind[6], xs: numbers(has.x), breaks: numbers(has.breaks), was: g.innerHTML };
  });
  const places = [...new Set(curves.flatMap((c) => [...c.xs, ...c.bads.map(([x]) => x)]))].sort((a, b) => a - b);
  let from = low, to = high, isLog = wasLog, at = null, began = NaN;
  const hidden = new Set(), shown = () => curves.filter((c) => !hidden.has(c.letter));
  const px = (x) => left + ((along(x) - from) / (to - from || 1)) * wide;

  const draw = () => {
    const isWhole = to - from > (high - low) * 0.999 && isLog === wasLog && !hidden.size;
    svg.classList.toggle("close", !isWhole);
    for (const c of curves) c.g.innerHTML = isWhole ? c.was : "";
    [ticks.innerHTML, letters.innerHTML] = before;
    if (isWhole) return;
    const scale = isLog ? Math.log10 : (y) => y, ends = [], isIn = (x) => along(x) >= from && along(x) <= to;
    const seen = shown().flatMap((c) => c.xs.flatMap((x, i) => (isIn(x) ? [c.lows[i], c.highs[i]] : []))).map(scale).filter(isFinite);
    let least = Math.min(...seen), most = Math.max(...seen);
    if (!(least < most)) [least, most] = seen.length ? [least - Math.abs(least || 1) / 10, most + Math.abs(most || 1) / 10] : [0, 1];
    const height = (y) => Math.min(Math.max(bottom - ((y - least) / (most - least)) * (bottom - top), -9999), 9999), py = (y) => n(height(scale(y)));
    for (const c of shown()) {
      let line = "", area = "", upper = [], lower = [], last = null;
      const end = () => { if (upper.length) area += "M" + [...upper, ...lower.reverse()].join("L") + "Z"; upper = []; lower = []; };
      c.xs.forEach((x, i) => {
        const mid = c.mids[i], isGone = isLog && !(mid > 0), here = n(px(x)) + " ";
        if (isGone || c.breaks.includes(i)) end();
        if (isGone) return;
        line += upper.length ? "L" + here + py(mid) : "M" + here + py(mid) + "h0";
        upper.push(here + py(c.highs[i]));
        lower.push(here + py(isLog && c.lows[i] <= 0 ? mid : c.lows[i]));
        if (isIn(x)) last = { c, x: px(x), y: height(scale(mid)) };
      });
      end();
      const marks = c.bads.map(([x, what]) => `M${n(px(x) - 3)} ${what === "-inf" ? bottom - 8 : top - 11}l6 6m0 -6l-6 6`).join("");
      c.g.innerHTML = (c.highs === c.lows ? "" : `<path class="area f${c.colour} s${c.colour}" d="${area}"/>`) + `<path class="${c.kind}" d="${line}"/><path class="mark" d="${marks}"/>`;
      if (last && !ends.some((e) => e.c.letter === c.letter)) ends.push(last);
    }
    const free = ends.sort((a, b) => a.y - b.y).filter((e, i) => !i || e.y - ends[i - 1].y > 12);
    const put = (kind, d, at, x, y, words) => `<path class="${kind}" d="M${d}"/><text class="${at}" x="${x}" y="${y}">${words}</text>`;
    if (before[1]) letters.innerHTML = free.map(({ c, x, y }) => put("axis", "0 0", "letter f" + c.colour, x + 8, y + 4, c.letter)).join("");
    const rows = ticksOf(least, most, isLog, isBytes).map(([y, words]) => put("gridline", `${left} ${height(y)}H${right}`, "end", left - 8, height(y) + 4, words));
    const columns = ticksOf(from, to, data.log).map(([x, words]) => [left + ((x - from) / (to - from)) * wide, words]);
    ticks.innerHTML = rows.concat(columns.map(([x, words]) => put("axis", `${x} ${bottom}v4`, "mid", x, bottom + 18, words))).join("");
  };

  const show = (middle, span) => {
    span = Math.min(span, high - low);
    from = Math.min(Math.max(middle - span / 2, low), high - span);
    to = from + span;
    draw();
  };
  const valueAt = (c, x) => {
    const i = c.xs.findLastIndex((at) => at <= x), gap = x > c.xs[i] && c.breaks.includes(i + 1);
    const bad = c.bads.findLast(([at]) => at <= x && at >= (gap ? c.xs[i] : x))?.[1];
    if (bad || gap || i < 0 || x > c.xs.at(-1)) return bad || gap && "n/a";
    const [a, mid, b] = [c.lows, c.mids, c.highs].map((ys) => write(ys[i], isBytes));
    return a === b ? a : `${mid} (${a} to ${b})`;
  };
  const read = (index) => {
    const x = places[(at = index)];
    const told = shown().map((c) => [c.letter, c.label, valueAt(c, x)]).filter((row) => row[2]).slice(0, 12);
    reading.textContent = [[data.unit, x], ...told].map((row) => row.join(" ")).join("\n");
    slider.value = index;
    slider.ariaValueText = reading.textContent;
    cursor.setAttribute("d", `M${px(x)} ${top}V${bottom}`);
    const share = px(x) / 6.4;
    reading.style.left = share > 50 ? "auto" : share + 2 + "%";
    reading.style.right = share > 50 ? 102 - share + "%" : "auto";
  };
  const leave = () => { reading.textContent = ""; cursor.setAttribute("d", ""); };
  const zoom = (times) => { show(at === null ? (from + to) / 2 : along(places[at]), (to - from) * times); if (at !== null) read(at); };

  const figure = svg.parentNode, tools = make("div", { className: "tools" }, figure), reading = make("div", { className: "reading" }, tools);
  svg.after(tools);
  const slider = make("input", { type: "range", max: places.length - 1, value: 0, ariaLabel: "values along " + data.unit }, tools);
  slider.oninput = slider.onfocus = () => {
    const place = along(places[slider.value]);
    if (place < from || place > to) show(place, to - from);
    read(+slider.value);
  };
  slider.onblur = leave;
  const button = (text, ariaLabel, onclick) => make("button", { textContent: text, ariaLabel, onclick }, tools);
  const log = button("log", "log scale", () => { log.ariaPressed = isLog = !isLog; draw(); });
  log.ariaPressed = isLog;
  button("+", "closer", () => zoom(0.5));
  button("−", "farther", () => zoom(2));

  const under = ({ clientX }) => {
    const box = svg.getBoundingClientRect(), spot = ((clientX - box.left) / box.width) * 640;
    return from + Math.min(Math.max((spot - left) / wide, 0), 1) * (to - from);
  };
  svg.onpointerdown = (event) => { if (event.pointerType === "mouse") began = under(event); };
  svg.onpointermove = (event) => {
    const x = under(event), far = (i) => Math.abs(along(places[i]) - x);
    read(places.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0));
  };
  svg.onpointerup = (event) => {
    const x = under(event), span = Math.abs(x - began);
    if (span > (to - from) / 50) show((x + began) / 2, span);
    began = NaN;
  };
  svg.onpointerleave = leave;
  const entries = figure.querySelectorAll(".legend li");
  for (const entry of entries.length > 1 ? entries : []) {
    const letter = entry.dataset.letter, inside = [...entry.childNodes], toggle = make("button", { ariaPressed: true }, entry);
    toggle.append(...inside);
    toggle.onclick = () => { toggle.ariaPressed = hidden.delete(letter) || !hidden.add(letter); draw(); };
  }
});
