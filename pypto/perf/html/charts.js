"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svgNode(name, attributes, parent) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
}

function svgText(parent, x, y, text, anchor = "start") {
  svgNode("text", { x, y, "text-anchor": anchor }, parent).textContent = text;
}

function spread(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

/** Values per round on the left, how often they occur on the right. */
function drawSeries(host, values) {
  host.replaceChildren();
  const width = 1000, height = 220, left = 70, split = 760, top = 12, bottom = 190;
  const svg = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "xMinYMid meet" }, host);
  const [low, high] = spread(values);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  const x = (index) => left + (index / Math.max(1, values.length - 1)) * (split - left - 20);
  for (const value of [low, (low + high) / 2, high]) {
    svgNode("line", { class: "axis", x1: left, x2: width - 10, y1: y(value), y2: y(value) }, svg);
    svgText(svg, left - 6, y(value) + 4, value.toLocaleString("en", { maximumFractionDigits: 1 }), "end");
  }
  svgText(svg, left, height - 8, `round 0 … ${values.length - 1}`);
  svgNode("polyline", { class: "series", points: values.map((v, i) => `${x(i)},${y(v)}`).join(" ") }, svg);
  if (values.length <= 400) {
    values.forEach((value, index) => {
      const point = svgNode("circle", { class: "point", cx: x(index), cy: y(value), r: 3 }, svg);
      svgNode("title", {}, point).textContent = `round ${index}: ${value} us`;
    });
  }
  drawHistogram(svg, values, low, high, split, width - 10, y);
}

function drawHistogram(svg, values, low, high, left, right, y) {
  const bins = Math.min(30, Math.max(5, Math.ceil(Math.sqrt(values.length))));
  const counts = new Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins))] += 1;
  const most = Math.max(...counts);
  counts.forEach((count, bin) => {
    const from = low + (bin / bins) * (high - low), to = low + ((bin + 1) / bins) * (high - low);
    const size = (count / most) * (right - left);
    const column = svgNode("rect", { class: "column", x: left, y: y(to), width: size, height: Math.max(1, y(from) - y(to) - 1) }, svg);
    svgNode("title", {}, column).textContent = `${count} of ${values.length} between ${from.toFixed(1)} and ${to.toFixed(1)} us`;
  });
}

/** Kernels over operational intensity, both axes logarithmic. */
function drawRoofline(host, roofline) {
  const width = 1000, height = 220, left = 70, top = 12, bottom = 190, right = 980;
  const svg = svgNode("svg", { viewBox: `0 0 ${width} ${height}` }, host);
  const ridge = roofline.flops / roofline.bytes;
  const xs = roofline.kernels.map((k) => k.x).filter((v) => v > 0).concat(ridge / 8, ridge * 8);
  const ys = roofline.kernels.map((k) => k.y).filter((v) => v > 0).concat(roofline.flops * 1.5);
  const [x0, x1] = spread(xs.map(Math.log10)), [y0, y1] = spread(ys.map(Math.log10));
  const x = (v) => left + ((Math.log10(v) - x0) / (x1 - x0)) * (right - left);
  const y = (v) => bottom - ((Math.log10(v) - y0) / (y1 - y0)) * (bottom - top);
  const roof = (v) => Math.min(roofline.flops, v * roofline.bytes);
  const edge = [10 ** x0, ridge, 10 ** x1].filter((v) => roof(v) >= 10 ** y0);
  const start = Math.max(10 ** x0, 10 ** y0 / roofline.bytes);
  svgNode("polyline", { class: "series", points: [start, ...edge].sort((a, b) => a - b).map((v) => `${x(v)},${y(roof(v))}`).join(" ") }, svg);
  for (const kernel of roofline.kernels) {
    if (!(kernel.x > 0 && kernel.y > 0)) continue;
    const point = svgNode("circle", { class: "point", cx: x(kernel.x), cy: y(kernel.y), r: 4 }, svg);
    svgNode("title", {}, point).textContent = kernel.name;
    svgText(svg, x(kernel.x) + 6, y(kernel.y) - 5, kernel.name);
  }
  svgText(svg, left, height - 8, `${(10 ** x0).toPrecision(2)} flop/byte`);
  svgText(svg, right, height - 8, `${(10 ** x1).toPrecision(2)} flop/byte`, "end");
  svgText(svg, left - 6, y(roofline.flops) + 4, `${(roofline.flops / 1e9).toPrecision(3)} G`, "end");
}
